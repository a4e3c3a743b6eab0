"""Calendar links as they are stored and returned."""

from __future__ import annotations

from typing import Annotated, TypedDict

from marshmallow import fields

from coaching_service.core.database.models import Stored
from coaching_service.core.fields import Description
from coaching_service.core.ids import ObjectId


class StoredCalendarLink(Stored):
    """The link to a client's calendar, signed by its `_id`. It works for as long as this document exists."""

    customerId: ObjectId


class CalendarLink(TypedDict):
    """The link to a client's calendar."""

    url: Annotated[
        str,
        fields.Url(),
        Description("An iCalendar file. Anyone who has the address can read it, until the link is revoked."),
    ]
