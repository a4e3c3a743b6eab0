"""The coaching service: clients, training and progress over REST, MCP and a small web application."""

__version__ = "0.1.0"
