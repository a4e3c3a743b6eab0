"""The share of scheduled work that a client completed."""
