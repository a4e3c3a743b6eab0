"""The open coaching service: clients, training and progress over REST, MCP and a web application."""

__version__ = "0.3.0.dev0"
