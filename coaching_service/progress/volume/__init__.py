"""Which muscles a client trained, and how much."""
