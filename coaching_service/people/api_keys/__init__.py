"""API keys: secrets with which a backend acts as a coach."""
