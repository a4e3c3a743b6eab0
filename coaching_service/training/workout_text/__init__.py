"""Workouts as text for assistants: a line for each item, with its sets in the grammar of set_text."""
