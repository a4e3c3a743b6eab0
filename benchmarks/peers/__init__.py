"""Peers: what people would use instead of the service, in production settings, on the same database."""
