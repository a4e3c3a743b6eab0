"""Stories of the coach application."""
