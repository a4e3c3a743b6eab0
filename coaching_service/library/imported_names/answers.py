"""Answers about names of exercises in files, as they are sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coaching_service.core.errors import invalid_field
from coaching_service.core.ids import ObjectId
from coaching_service.library.imported_names.models import CREATE, SKIP, NameAnswer


def read_answers(sent: Mapping[str, Any]) -> dict[str, NameAnswer]:
    """Return answers about names as a request sends them: identifiers, `create` or `skip`. Raises InvalidFields."""
    answers: dict[str, NameAnswer] = {}
    for name, answer in sent.items():
        if answer in (CREATE, SKIP):
            answers[name] = CREATE if answer == CREATE else SKIP
        elif isinstance(answer, str) and ObjectId.is_valid(answer) and len(answer) == 24:
            answers[name] = ObjectId(answer)
        else:
            message = f"{name[:50]}: must be the identifier of an exercise, create or skip"
            raise invalid_field("names", message, code="INVALID_ANSWER")
    return answers
