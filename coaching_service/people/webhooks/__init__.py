"""Webhooks: the events of a company sent to its own systems, as Standard Webhooks describes it."""
