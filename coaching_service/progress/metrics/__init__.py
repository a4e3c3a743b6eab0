"""A client's metrics: which sets are assigned, and what was recorded."""
