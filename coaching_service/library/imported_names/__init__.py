"""Names of exercises in files that are imported, and what a company has answered about them."""
