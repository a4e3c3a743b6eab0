"""One change to many clients at once."""
