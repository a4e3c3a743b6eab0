"""Notifications to clients and coaches: what is due is stored once, and sent by mail and to devices."""
