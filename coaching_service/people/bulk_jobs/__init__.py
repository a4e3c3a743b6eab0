"""Bulk operations, and undoing them, as background jobs."""
