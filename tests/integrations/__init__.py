"""Behaviour of the integrations over HTTP."""
