"""Progress photos: front, back and side of a client on a date."""
