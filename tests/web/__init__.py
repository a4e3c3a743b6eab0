"""The coach web application."""
