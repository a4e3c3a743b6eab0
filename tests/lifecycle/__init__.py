"""Bulk changes and erasure."""
