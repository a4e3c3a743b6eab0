"""What clients are reminded of: reminders in their plan, the workout of the day, and check-ins of the day."""
