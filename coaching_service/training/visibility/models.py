"""Visibility of calendar days as it is sent, stored and read."""

from __future__ import annotations

from typing import Annotated, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import Period
from coaching_service.core.validation import CalendarDate


class HiddenDay(Stored):
    """A day that is hidden from a client."""

    customerId: ObjectId
    date: Annotated[str, CalendarDate()]


class DayVisibility(TypedDict):
    """Whether the client sees a day."""

    date: Annotated[str, CalendarDate()]
    isVisible: bool


class VisibilityChange(Period):
    """The days to show or hide."""

    isVisible: bool
