"""The company's history of changes, its events, and undo."""
