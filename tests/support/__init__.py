"""Fixtures, clients and builders shared by the tests."""
