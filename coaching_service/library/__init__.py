"""Libraries: what training is made of."""
