"""What was scheduled and done, as other features read it."""
