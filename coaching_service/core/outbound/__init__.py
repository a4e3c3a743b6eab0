"""Requests of the service to addresses that its users enter: webhooks, and metadata of OAuth applications."""
