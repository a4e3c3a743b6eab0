"""Coaches of a company: the owner and the employees."""
