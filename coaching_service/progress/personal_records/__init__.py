"""Personal records of a client: entered by a coach or derived from logs."""
