"""Clients of a company, called customers in the REST interface."""
