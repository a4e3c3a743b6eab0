"""What clients answered."""
