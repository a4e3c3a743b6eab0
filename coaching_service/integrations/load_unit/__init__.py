"""Converting all loads of a company to another unit."""
