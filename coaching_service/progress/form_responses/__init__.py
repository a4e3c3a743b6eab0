"""Clients' responses to forms."""
