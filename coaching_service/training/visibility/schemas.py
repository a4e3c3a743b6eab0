"""Request and response schemas of visibility."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.query import DateRange
from coaching_service.core.validation import Boolean, Date, DryRun, Output


class VisibilityChange(DateRange, DryRun):
    """The days to show or hide."""

    isVisible = Boolean(required=True)


class DayVisibility(Output):
    """Whether the client sees a day."""

    date = Date()
    isVisible = fields.Boolean()
