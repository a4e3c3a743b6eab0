"""Metric sets: what a company measures, and in which units."""
