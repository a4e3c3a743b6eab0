"""One client with the compliance rates as of today."""
