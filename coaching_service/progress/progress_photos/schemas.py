"""Requests of the progress photo operations."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from marshmallow import ValidationError, fields

from coaching_service.core.query import FormVersion
from coaching_service.core.validation import CalendarDate, Choice


class DateOrDateTime(fields.Field[Any]):
    """A date, or a time in ISO 8601: read as a `datetime` in UTC, or as its date if it has no time zone."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str | datetime:
        if not isinstance(value, str) or "T" not in value:
            return CalendarDate().deserialize(value, attr, data, **kwargs)
        try:
            time = datetime.fromisoformat(value)
        except ValueError:
            raise ValidationError("must be a date in the form YYYY-MM-DD, or a time in ISO 8601") from None
        day: str = CalendarDate().deserialize(str(time.date()), attr)
        return day if time.tzinfo is None else time.astimezone(UTC)


_Side = Annotated[
    Literal["1", "2", "3"],
    Choice(
        *("1", "2", "3"),
        metadata={"description": '"1" front, "2" back, "3" side.', "x-enum-varnames": ["Front", "Back", "Side"]},
    ),
]


class NewPhoto(TypedDict):
    """The side of a new photo, and when it was taken."""

    createdAt: Annotated[
        str | datetime,
        DateOrDateTime(metadata={"description": "A date, or a time in ISO 8601.", "example": "2026-03-02"}),
    ]
    imageSideIndex: _Side


class PhotoReplacement(TypedDict):
    """The side whose photo is replaced."""

    imageSideIndex: _Side
    version: NotRequired[Annotated[int, FormVersion()]]
