"""Long-running work of a company, whose progress is stored and can be read."""
