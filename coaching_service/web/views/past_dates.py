"""Dates that clients enter."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.errors import invalid_field

_FIRST_DATE = "1900-01-01"


def require_past_date(ctx: Context, field: str, date: str) -> None:
    """Raise InvalidFields for `field` unless a date is from 1900 on and not after the client's today."""
    if not _FIRST_DATE <= date <= str(ctx.caller.today()):
        raise invalid_field(field, f"must be a date from {_FIRST_DATE[:4]} on and not after today")
