"""Training workload of a client by period."""
