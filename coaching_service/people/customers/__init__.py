"""Clients of a company, called customers on the wire."""
