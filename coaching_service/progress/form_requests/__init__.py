"""Scheduled forms that clients have not answered."""
