"""Workout templates: blocks that can be copied to any calendar."""
