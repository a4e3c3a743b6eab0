"""The open coaching service: clients, training and progress over REST, MCP and a web application."""

__version__ = "0.2.0"
