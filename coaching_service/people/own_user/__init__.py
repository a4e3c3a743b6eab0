"""The authenticated user: who it is, and what it chooses for itself."""
