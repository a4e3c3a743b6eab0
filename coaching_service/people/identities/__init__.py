"""Sign-in addresses and passwords: one identity across the service."""
