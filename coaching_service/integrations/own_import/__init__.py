"""A client imports the own training history."""
