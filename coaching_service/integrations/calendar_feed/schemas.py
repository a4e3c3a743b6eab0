"""Responses of calendar links."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import Output


class CalendarLink(Output):
    """The link to a client's calendar."""

    url = fields.Url(
        metadata={
            "description": "An iCalendar file. Anyone who has the address can read it, until the link is revoked."
        }
    )
