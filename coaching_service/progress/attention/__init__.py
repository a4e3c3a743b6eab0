"""Which clients need a coach, and why."""
