"""Metric sets assigned to a client, and the recorded values."""
