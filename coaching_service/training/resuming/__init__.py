"""What becomes of a client's calendar when the client returns from an absence."""
