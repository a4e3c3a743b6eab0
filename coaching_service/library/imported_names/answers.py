"""Answers about names of exercises in files, as they are sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from coaching_service.core.errors import invalid_field
from coaching_service.core.ids import ObjectId
from coaching_service.library.imported_names.models import CREATE, SKIP, NameAnswer


def read_answers(sent: Mapping[str, Any], field: Literal["names", "customers"] = "names") -> dict[str, NameAnswer]:
    """Return answers about names as a request sends them: identifiers, `create` or `skip`. Raises InvalidFields."""
    kind = "an exercise" if field == "names" else "a client"
    answers: dict[str, NameAnswer] = {}
    for name, answer in sent.items():
        if answer in (CREATE, SKIP):
            answers[name] = CREATE if answer == CREATE else SKIP
        elif isinstance(answer, str) and ObjectId.is_valid(answer) and len(answer) == 24:
            answers[name] = ObjectId(answer)
        else:
            message = f"{name[:50]}: must be the identifier of {kind}, create or skip"
            raise invalid_field(field, message, code="INVALID_ANSWER")
    return answers
