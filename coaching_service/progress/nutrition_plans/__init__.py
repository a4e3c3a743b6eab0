"""Nutrition plans: numbered versions of a client's plan."""
