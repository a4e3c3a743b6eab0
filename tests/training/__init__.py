"""Workouts, programs, templates and visibility."""
