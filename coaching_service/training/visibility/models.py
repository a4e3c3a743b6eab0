"""Visibility of calendar days as it is stored and read."""

from __future__ import annotations

from typing import TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.ids import ObjectId


class HiddenDay(Stored):
    """A day that is hidden from a client."""

    customerId: ObjectId
    date: str


class DayVisibility(TypedDict):
    """Whether a client sees a day."""

    date: str
    isVisible: bool
