"""Workout templates: blocks to be put onto any calendar."""
