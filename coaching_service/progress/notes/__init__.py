"""Notes of coaches on a client."""
