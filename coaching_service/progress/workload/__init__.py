"""How much a client trained, period by period."""
