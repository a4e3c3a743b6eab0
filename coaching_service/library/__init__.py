"""Reusable content of a company: exercises, forms and metric sets."""
