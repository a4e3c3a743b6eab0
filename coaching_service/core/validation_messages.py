"""Messages of validation errors, each with a stable code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from marshmallow import ValidationError

from coaching_service.core.errors import FieldError

DEFAULT_CODE = "INVALID"


class Message(str):
    """The text of a validation error with its `code`, which marshmallow passes through unchanged.

    The text continues the name of the field: "must be a number".
    """

    code: str

    def __new__(cls, text: str, code: str) -> Message:
        """Create a message; `code` is UPPER_SNAKE."""
        message = super().__new__(cls, text)
        message.code = code
        return message

    def __deepcopy__(self, memo: dict[int, Any]) -> Message:
        """Return itself: messages are immutable, and schemas are copied."""
        return self

    def format(self, *args: object, **kwargs: object) -> Message:
        """Format like a string and keep the code: marshmallow formats every message."""
        return Message(super().format(*args, **kwargs), self.code)


REQUIRED = Message("is required", "REQUIRED")
NULL = Message("must not be null", "NULL")
UNKNOWN_FIELD = Message("is not a known field", "UNKNOWN_FIELD")
NOT_AN_OBJECT = Message("must be an object", "NOT_AN_OBJECT")
EMPTY = Message("should not be empty", "EMPTY")
BEFORE_START = Message("must not be before startDate", "BEFORE_START")


def invalid(text: str, code: str, field: str = "_schema") -> ValidationError:
    """Return the error to raise for an invalid value; in a schema's validator, `field` names the field."""
    return ValidationError(Message(text, code), field)


def field_errors(error: ValidationError) -> list[FieldError]:
    """Return every error of a validated object, with paths such as `exerciseSets.0.load`."""
    return list(_flatten(error.messages, ""))


def body_messages(error: ValidationError) -> list[str]:
    """Return one sentence per error, each naming its field (`exerciseSets.0.load must be a number`)."""
    return [sentence(each) for each in field_errors(error)]


def sentence(error: FieldError) -> str:
    """Return the error as a sentence that names its field."""
    return f"{error['field']} {error['message']}".strip()


def _flatten(messages: Any, path: str) -> Iterator[FieldError]:
    if isinstance(messages, dict):
        for key, inner in messages.items():
            yield from _flatten(inner, path if key == "_schema" else f"{path}.{key}".lstrip("."))
        return
    for message in messages:
        code = message.code if isinstance(message, Message) else DEFAULT_CODE
        yield {"field": path, "code": code, "message": str(message)}
