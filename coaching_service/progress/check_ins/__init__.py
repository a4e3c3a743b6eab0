"""Recurring check-ins: a form, a metric set or a task that is scheduled for a client repeatedly."""
