"""Programs: workout blocks by day number, assigned to clients' calendars."""
