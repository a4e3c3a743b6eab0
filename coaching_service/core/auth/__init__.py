"""Principals, permissions, access rules, and the encryption and signing of secrets."""
