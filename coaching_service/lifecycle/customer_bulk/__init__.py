"""Changes of many clients in one request."""
