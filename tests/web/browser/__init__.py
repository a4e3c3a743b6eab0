"""Stories told to a real browser; collected with `scripts/test --browser` alone."""
