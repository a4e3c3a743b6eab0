"""Erasing a client: gone at once, and everything of theirs removed in the background."""
