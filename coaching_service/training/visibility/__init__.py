"""Which days of their calendar a client sees."""
