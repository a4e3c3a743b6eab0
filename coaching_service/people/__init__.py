"""People: companies, their coaches and keys, their clients."""
