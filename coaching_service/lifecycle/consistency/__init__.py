"""Checks across features: references between documents, and files."""
