"""Exercises, forms and metric sets."""
