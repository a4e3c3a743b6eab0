"""Programs: workout blocks by day, to be put onto clients' calendars."""
