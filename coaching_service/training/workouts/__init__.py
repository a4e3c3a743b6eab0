"""Workout blocks on a client's calendar, and their items."""
