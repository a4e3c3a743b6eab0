"""Suggestions for a name in a submitted text: buttons of the form, which write the name that is clicked and send it."""

from __future__ import annotations

import re
from typing import Annotated, TypedDict

import orjson
from marshmallow import ValidationError
from multidict import MultiDict

from coaching_service.core.field_schemas import input_of
from coaching_service.core.validation import Integer
from coaching_service.training.workout_text.lines import Problem

FIELD = "correction"
_NEEDS_MARKS = re.compile(r"[:|\[«»]|^\s*-")


class Suggestion(TypedDict):
    """A name to click, and the value of its button."""

    name: str
    value: str


class _Correction(TypedDict):
    field: str
    line: Annotated[int, Integer(minimum=1)]
    name: str
    replacement: str


_SCHEMA = input_of(_Correction)()


def suggest(problem: Problem) -> list[Suggestion]:
    """Return the names to click for an unknown name in a text."""
    correction = {"field": problem.path, "line": problem.line, "name": problem.name}
    return [
        {"name": name, "value": orjson.dumps({**correction, "replacement": name}).decode()}
        for name in problem.suggestions
    ]


def apply(data: MultiDict[str]) -> None:
    """Write the name that was clicked into the text of a form; nothing changes if its line was changed meanwhile."""
    for value in data.popall(FIELD, []):
        try:
            correction: _Correction = _SCHEMA.load(orjson.loads(value))
        except (orjson.JSONDecodeError, ValidationError):
            continue
        name = correction["field"]
        lines = data.get(name, "").splitlines(keepends=True)
        at = correction["line"] - 1
        if at < len(lines):
            lines[at] = _replace(lines[at], correction["name"], correction["replacement"])
            data[name] = "".join(lines)


def _replace(line: str, name: str, replacement: str) -> str:
    """Replace the name at its place, before the colon of the sets, a note or the end of the line."""
    marked = f"«{replacement}»" if _NEEDS_MARKS.search(replacement) else replacement
    place = re.compile(rf"(«\s*)?{re.escape(name)}(?(1)\s*»)(?=\s*(?:[:|]|$))")
    return place.sub(lambda _: marked, line, count=1)
