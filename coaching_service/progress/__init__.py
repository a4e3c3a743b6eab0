"""Progress: what clients did, and what it amounts to."""
