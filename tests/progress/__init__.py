"""Logs and everything derived from them."""
