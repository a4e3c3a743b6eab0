"""Workout blocks: stored, written and read."""
