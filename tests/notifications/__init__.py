"""Proof that reminders are sent once and in time, with a clock that is moved."""
