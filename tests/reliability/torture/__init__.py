"""Faults under load for as long as you like: scripts/torture. It is a program with a report, not a test."""
