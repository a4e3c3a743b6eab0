"""What requests for items have that no type says: times of reminders, and forms of the library or made for an item."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from marshmallow import ValidationError, validates_schema

from coaching_service.core.validation import Identifier, Input, Text
from coaching_service.library.forms.models import questions_field

_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d", re.ASCII)
_DATE_TIME = re.compile(r"[0-9W-]+[Tt ][0-9.,]+:[0-9:.,]+(Z|[+-][0-9:.]+)?", re.ASCII)


class ScheduledTime(Text):
    """A time of day `HH:MM` or a date-time in ISO 8601, in the client's time zone unless it names an offset."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=40, metadata={"example": "08:30"} | options.pop("metadata", {}), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> str:
        text = super()._deserialize(value, attr, data)
        if not _TIME.fullmatch(text) and not _is_date_time(text):
            raise ValidationError("must be a time HH:MM, or a date-time in ISO 8601")
        return text


def _is_date_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return _DATE_TIME.fullmatch(text) is not None  # Python takes any character between date and time


class NewWorkoutForm(Input):
    """A form of the library, or one made for this item."""

    formId = Identifier(allow_none=True)
    name = Text()
    questions = questions_field()

    @validates_schema
    def has_form_or_questions(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require name and questions unless there is a `formId`."""
        if data.get("formId") is not None:
            return
        for name in ("name", "questions"):
            if name not in data:
                raise ValidationError("is required (or a formId)", name)
