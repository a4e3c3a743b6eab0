"""What is wrong with an input, in sentences that name the field."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError


def body_messages(error: ValidationError) -> list[str]:
    """What is wrong with a body, one sentence a field, each naming its field (`exerciseSets.0.load must be ...`)."""
    return _flat(error.messages, "")


def query_message(error: ValidationError) -> str:
    """What is wrong with a query: the first failure, in the specification's words where it has some."""
    sentence = _flat(error.messages, "")[0]
    return sentence[at:] if (at := sentence.find("Validation failed (")) >= 0 else sentence


def _flat(messages: Any, path: str) -> list[str]:
    if isinstance(messages, dict):
        found = []
        for key, inner in messages.items():
            found += _flat(inner, path if key == "_schema" else f"{path}.{key}".lstrip("."))
        return found
    return [f"{path} {_WORDS.get(text, text)}".strip() for text in messages]


_WORDS = {
    "Missing data for required field.": "is required",
    "Field may not be null.": "must not be null",
    "Unknown field.": "is not a known field",
    "Invalid input type.": "must be an object",
}
