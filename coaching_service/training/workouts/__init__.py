"""Workout blocks on a client's calendar, and the items in them."""
