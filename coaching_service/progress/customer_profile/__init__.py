"""A client with figures computed as of today."""
