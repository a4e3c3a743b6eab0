"""Logs: what a client did, and all that follows from it."""
