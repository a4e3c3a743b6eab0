"""Planned and logged sets of exercises."""
