"""Calendar links as they are stored and returned."""

from __future__ import annotations

from typing import TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.ids import ObjectId


class StoredCalendarLink(Stored):
    """The link to a client's calendar, signed by its `_id`. It works for as long as this document exists."""

    customerId: ObjectId


class CalendarLink(TypedDict):
    """The address of a client's calendar, for calendar applications."""

    url: str
