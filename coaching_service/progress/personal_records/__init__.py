"""A client's personal records: typed in, and found in logs."""
