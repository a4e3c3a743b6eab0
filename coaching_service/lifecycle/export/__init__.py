"""Everything of a client's in one ZIP."""
