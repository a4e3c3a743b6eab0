"""Fields of requests about sign-in sessions with limits of their own."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError

from coaching_service.core.validation import Message, Text
from coaching_service.people.identities.passwords import MAX_LENGTH, MIN_LENGTH, is_common


class NewPassword(Text):
    """A password to set: 12 to 200 characters, not trimmed; the most common ones are refused."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_LENGTH, trim=False, metadata={"minLength": MIN_LENGTH}, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> str:
        text = super()._deserialize(value, attr, data)
        if not text.strip():
            raise ValidationError("should not be empty")
        if len(text) < MIN_LENGTH:
            raise self.make_error("short")
        if is_common(text):
            raise self.make_error("common")
        return text

    default_error_messages = {
        "short": f"must be at least {MIN_LENGTH} characters long",
        "common": Message("is a password that many people use; use several unrelated words", "COMMON_PASSWORD"),
    }
