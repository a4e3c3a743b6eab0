"""The profile of a client in the client's own session."""
