"""Importing programs from sheets."""
