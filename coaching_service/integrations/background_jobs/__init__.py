"""Long-running work of a company whose progress its owner can read."""
