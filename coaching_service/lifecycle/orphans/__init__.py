"""Cleanup of files that no document refers to."""
