"""Who is asking, what they may do, and the secrets that prove it."""
