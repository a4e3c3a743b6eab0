"""Requests of clients that change their calendar."""

from __future__ import annotations

from coaching_service.core.validation import Date, Input, Version


class WorkoutMove(Input):
    """The day to move a workout to."""

    date = Date(required=True)
    version = Version()
