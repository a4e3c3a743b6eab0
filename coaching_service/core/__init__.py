"""Foundations of all features: authentication, database, HTTP, jobs, tools, validation. Imports no feature."""
