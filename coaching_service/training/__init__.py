"""Training: what clients are asked to do, and when."""
