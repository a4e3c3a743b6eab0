"""Bringing the calendars of all clients who are on a program up to date with it."""
