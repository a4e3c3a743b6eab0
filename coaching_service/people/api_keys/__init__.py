"""API keys: secrets by which a backend acts as a coach."""
