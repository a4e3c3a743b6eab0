"""The days of a calendar that a client may see."""
