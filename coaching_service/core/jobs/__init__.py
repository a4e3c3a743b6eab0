"""Background jobs stored in the database, and outgoing mail."""
