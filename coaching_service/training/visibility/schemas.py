"""What the visibility operations read and answer."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.kernel.query import DateRange
from coaching_service.kernel.validation import Answer, Day, Flag


class VisibilityChange(DateRange):
    """The days to show or hide."""

    isVisible = Flag(required=True)


class DayVisibility(Answer):
    """Whether the client sees a day."""

    date = Day()
    isVisible = fields.Boolean()
