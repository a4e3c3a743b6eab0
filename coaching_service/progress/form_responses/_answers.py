"""Validation of answers to the questions of a form."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from coaching_service.library.forms.models import Question, QuestionType

MAX_LENGTH = 10_000
MAX_NUMBER = 1e15
LOWEST_RATING, HIGHEST_RATING = 1, 10


def find_error(question: Question, value: Any) -> str | None:
    """Return what is wrong with an answer, such as "must be a number", or None. Null is valid for every question."""
    return None if value is None else _VALIDATORS[question["type"]](question, value)


def is_blank(value: Any) -> bool:
    """Return whether a value does not answer a required question: null, an empty list or only white space."""
    return value is None or value == [] or (isinstance(value, str) and not value.strip())


def _find_text_error(_: Question, value: Any) -> str | None:
    if not isinstance(value, str):
        return "must be a string"
    return None if len(value) <= MAX_LENGTH else f"must not be longer than {MAX_LENGTH} characters"


def _find_number_error(_: Question, value: Any) -> str | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return None if is_number and abs(value) <= MAX_NUMBER else "must be a number"


def _find_rating_error(_: Question, value: Any) -> str | None:
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if is_integer and LOWEST_RATING <= value <= HIGHEST_RATING:
        return None
    return f"must be an integer from {LOWEST_RATING} to {HIGHEST_RATING}"


def _find_choice_error(question: Question, value: Any) -> str | None:
    return None if isinstance(value, str) and value in question["options"] else "must be one of the question's options"


def _find_multi_error(question: Question, value: Any) -> str | None:
    if not isinstance(value, list) or any(_find_choice_error(question, option) for option in value):
        return "must be an array of the question's options"
    return None if len(set(value)) == len(value) else "must name each option only once"


_VALIDATORS: dict[QuestionType, Callable[[Question, Any], str | None]] = {
    "text": _find_text_error,
    "number": _find_number_error,
    "rating": _find_rating_error,
    "choice": _find_choice_error,
    "multi": _find_multi_error,
}
