"""A coach's notes on a client."""
