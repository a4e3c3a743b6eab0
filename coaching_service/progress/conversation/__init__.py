"""Messages between a client and the coaches: one conversation for each client."""
