"""Whether an answer fits its question."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

MAX_LENGTH = 10_000
LOWEST_RATING, HIGHEST_RATING = 1, 10


def objection(question: Mapping[str, Any], value: Any) -> str | None:
    """Why `value` is no answer to the question, or None when it is. No answer (null) fits every question."""
    return None if value is None else _CHECKS[question["type"]](question, value)


def _text(_: Mapping[str, Any], value: Any) -> str | None:
    if not isinstance(value, str):
        return "must be a string"
    return None if len(value) <= MAX_LENGTH else f"must not be longer than {MAX_LENGTH} characters"


def _number(_: Mapping[str, Any], value: Any) -> str | None:
    finite = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return None if finite and abs(value) <= 1e15 else "must be a number"


def _rating(_: Mapping[str, Any], value: Any) -> str | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if whole and LOWEST_RATING <= value <= HIGHEST_RATING:
        return None
    return f"must be an integer from {LOWEST_RATING} to {HIGHEST_RATING}"


def _choice(question: Mapping[str, Any], value: Any) -> str | None:
    return None if isinstance(value, str) and value in question["options"] else "must be one of the question's options"


def _multi(question: Mapping[str, Any], value: Any) -> str | None:
    if not isinstance(value, list) or any(_choice(question, each) for each in value):
        return "must be an array of the question's options"
    return None if len(set(value)) == len(value) else "must name each option only once"


_CHECKS: dict[str, Callable[[Mapping[str, Any], Any], str | None]] = {
    "text": _text,
    "number": _number,
    "rating": _rating,
    "choice": _choice,
    "multi": _multi,
}
