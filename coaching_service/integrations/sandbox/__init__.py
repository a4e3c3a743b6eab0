"""A company for tests, with sample data."""
