"""Whether a client did what was scheduled."""
