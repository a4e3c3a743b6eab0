"""Tests without a database."""
