"""A client's calendar for calendar applications: a signed link to an iCalendar file."""
