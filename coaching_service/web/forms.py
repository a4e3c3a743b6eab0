"""Forms: submitted text becomes the JSON that the schemas of the REST interface validate; errors are shown by field.

Errors of a text that is read line by line suggest names: buttons that write the name into the text and send the form.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, NamedTuple, TypedDict
from urllib.parse import parse_qsl

import orjson
from aiohttp import web
from marshmallow import Schema, ValidationError, fields, missing
from multidict import MultiDict

from coaching_service.core.dates import TIMEZONES
from coaching_service.core.errors import BadRequest, InvalidFields, ServiceError, UnsupportedMediaType
from coaching_service.core.field_schemas import input_of
from coaching_service.core.http.request_parsing import read_bytes
from coaching_service.core.query import QueryInteger
from coaching_service.core.validation import Integer, Timezone, field_errors
from coaching_service.training.workout_text.lines import Problem, TextError

_CORRECTION = "correction"
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


_CORRECTION_SCHEMA = input_of(_Correction)()


def _suggest(problem: Problem) -> list[Suggestion]:
    """Return the names to click for an unknown name in a text."""
    correction = {"field": problem.path, "line": problem.line, "name": problem.name}
    return [
        {"name": name, "value": orjson.dumps({**correction, "replacement": name}).decode()}
        for name in problem.suggestions
    ]


def apply_correction(data: MultiDict[str]) -> None:
    """Write the name that was clicked into the text of a form; nothing changes if its line was changed meanwhile."""
    for value in data.popall(_CORRECTION, []):
        try:
            correction: _Correction = _CORRECTION_SCHEMA.load(orjson.loads(value))
        except (orjson.JSONDecodeError, ValidationError):
            continue
        name = correction["field"]
        lines = data.get(name, "").split("\n")
        at = correction["line"] - 1
        if at < len(lines):
            lines[at] = _replace(lines[at], correction["name"], correction["replacement"])
            data[name] = "\n".join(lines)


def _replace(line: str, name: str, replacement: str) -> str:
    """Replace the name at its place, before the colon of the sets, a note or the end of the line."""
    marked = f"«{replacement}»" if _NEEDS_MARKS.search(replacement) else replacement
    place = re.compile(rf"(«\s*)?{re.escape(name)}(?(1)\s*»)(?=\s*(?:[:|]|$))")
    return place.sub(lambda _: marked, line, count=1)


# 20,000 characters, of a form with a table 60,000, of up to twelve bytes each in URL encoding, and what is around them.
MAX_FORM_BYTES, MAX_TABLE_BYTES = 262_144, 786_432
_MAX_FIELDS = 10_000
_INTEGER = re.compile(r"[+-]?\d{1,15}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?\d{1,15}([.,]\d{1,15})?", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)  # 1,000 is ambiguous: one, or one thousand
_FALSE = ("", "false")
# Messages for people who fill in a form; they continue the name of the field. Other codes keep their message.
FIELD_MESSAGES = {
    "INVALID_ID": "must be chosen",
    "INVALID_DATE": "must be a date that exists",
    "INVALID_TIMEZONE": "must be a time zone such as Europe/Madrid",
    "NOT_A_NUMBER": "must be a number such as 77.5 or 77,5, without thousands separators",
    "NOT_AN_INTEGER": "must be a whole number",
    "BROKEN_IMAGE": "is incomplete or damaged: choose another file",
    "BROKEN_VIDEO": "is incomplete or damaged: choose another file",
    "BROKEN_PDF": "is incomplete or damaged: choose another file",
    "PROTECTED_PDF": "must not need a password: save a copy without one, and choose that",
    "COMPLEX_PDF": "is too complex: print it to a new PDF, and choose that",
}
_STALE = "This has been changed since you opened the page, {}, so nothing was saved yet."
_COMPARE = "Fields that differ show the stored value: check each of them and save again."
FormData = MultiDict[str]


class LineError(NamedTuple):
    """What is wrong with a line of a text, and names to click instead of its own."""

    sentence: str
    suggestions: list[Suggestion]


@dataclass
class FormState:
    """The submitted values of a form and its errors.

    `errors` has the message of each invalid field, `form_errors` those that concern no single field. `is_stale`: the
    document was changed after the form was opened. `line_errors`: the errors of a text that is read line by line.
    """

    name: str
    values: FormData = field(default_factory=MultiDict)
    errors: dict[str, str] = field(default_factory=dict)
    form_errors: list[str] = field(default_factory=list)
    line_errors: dict[str, list[LineError]] = field(default_factory=dict)
    is_stale: bool = False

    @property
    def is_rejected(self) -> bool:
        """Whether there is an error: the form of a preview has none."""
        return bool(self.errors or self.form_errors or self.line_errors)

    def get_all(self, name: str) -> list[str]:
        """Return every value of a field."""
        return self.values.getall(name, [])

    def get_lines(self, name: str) -> list[str]:
        """Return every line of every value of a field, trimmed, without empty lines."""
        return _split_lines(self.get_all(name))

    def count_rows(self, name: str) -> int:
        """Return the number of rows submitted of a list of rows."""
        return max(_row_numbers(name, self.values), default=-1) + 1

    @property
    def version(self) -> int | None:
        """The version of the document that the form was opened with, if it was sent."""
        sent = self.values.get("version", "")
        return int(sent) if _INTEGER.fullmatch(sent) else None

    def mark_stale(self, newer_changes: str) -> None:
        """Mark the form as opened with an older version than the stored one; `newer_changes`: who changed what."""
        self.is_stale, self.form_errors = True, [f"{_STALE.format(newer_changes)} {_COMPARE}"]

    def describe_conflict(self, newer_changes: str) -> None:
        """Say who changed the document, to a script that sent the form."""
        self.form_errors = [_STALE.format(newer_changes)]


async def read_form(request: web.Request, *, has_table: bool) -> FormData:
    """Return the values of a form's body. Raises UnsupportedMediaType, TooLarge and BadRequest."""
    if request.content_type != "application/x-www-form-urlencoded":
        raise UnsupportedMediaType("A form is sent as application/x-www-form-urlencoded")
    body = await read_bytes(request, MAX_TABLE_BYTES if has_table else MAX_FORM_BYTES)
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise BadRequest("The form could not be read") from None
    return MultiDict((name, value.replace("\r\n", "\n")) for name, value in pairs)  # browsers send CRLF


def load_form(schema: Schema, data: Mapping[str, str]) -> dict[str, Any]:
    """Return form values as validated by `schema`. Raises ValidationError."""
    values: dict[str, Any] = schema.load(_to_json(schema, MultiDict(data), ""))
    return values


def _to_json(schema: Schema, data: FormData, prefix: str) -> dict[str, Any]:
    """Return the JSON object that REST would receive instead of these form values."""
    values: dict[str, Any] = {}
    for name, schema_field in schema.fields.items():
        key = prefix + name
        if isinstance(schema_field, fields.Nested):
            # An object that may be null and has no field in the form is not a part of the form.
            if not schema_field.allow_none or any(sent.startswith(f"{key}.") for sent in data):
                values[name] = _to_json(schema_field.schema, data, f"{key}.")
        elif isinstance(schema_field, fields.List) and isinstance(schema_field.inner, fields.Nested):
            row_schema = schema_field.inner.schema
            values[name] = [_to_json(row_schema, data, f"{key}.{row}.") for row in _row_numbers(key, data)]
        elif isinstance(schema_field, fields.List):
            if key in data:
                values[name] = [parse_value(schema_field.inner, line) for line in _split_lines(data.getall(key))]
        elif isinstance(schema_field, fields.Boolean):
            values[name] = data.get(key, "") not in _FALSE
        elif key in data and (value := _parse_optional(schema_field, data[key])) is not missing:
            values[name] = value
    return values


def _row_numbers(key: str, data: FormData) -> list[int]:
    """Return the numbers of the rows submitted of a list: `sets.0.load` belongs to row 0."""
    row_field = re.compile(re.escape(key) + r"\.(\d{1,3})\.", re.ASCII)
    return sorted({int(match[1]) for name in data if (match := row_field.match(name))})


def _parse_optional(schema_field: fields.Field[Any], text: str) -> Any:
    """Return the value of a field; for an optional one that is empty None if it is nullable, else its default."""
    if text.strip() or schema_field.required:
        return parse_value(schema_field, text)
    if schema_field.allow_none:
        return None
    return text if schema_field.load_default is missing else missing


def _split_lines(values: Iterable[str]) -> list[str]:
    """Return the members of a list, which is submitted as several values, one value with a member per line, or both."""
    return [line.strip() for value in values for line in value.split("\n") if line.strip()]


def parse_value(schema_field: fields.Field[Any], text: str) -> Any:
    """Return the JSON value that `text` means in a field; other text is returned unchanged, for the field to reject."""
    stripped = text.strip()
    if isinstance(schema_field, Timezone):
        return stripped if stripped in TIMEZONES else _timezones_by_city().get(stripped.casefold(), stripped)
    if isinstance(schema_field, QueryInteger):
        return stripped
    if isinstance(schema_field, fields.Integer) and _INTEGER.fullmatch(stripped):
        return int(stripped)
    if isinstance(schema_field, fields.Float) and _DECIMAL.fullmatch(stripped) and not _THOUSANDS.fullmatch(stripped):
        return float(stripped.replace(",", "."))
    return text


@cache
def _timezones_by_city() -> dict[str, str]:
    """Return the time zones of cities that are the only ones of their name: `new york` is America/New_York."""
    cities = [(name.rpartition("/")[2].replace("_", " ").casefold(), name) for name in TIMEZONES if "/" in name]
    counts = Counter(city for city, _ in cities)
    return {city: name for city, name in cities if counts[city] == 1}


def rejected_form(
    name: str,
    data: FormData,
    error: ValidationError | ServiceError,
    known_fields: set[str],
    field_messages: Mapping[str, str] | None = None,
) -> FormState:
    """Return the state of a form that was rejected.

    `known_fields`: the names of its fields, without the names of rows. Errors of other fields become `form_errors`.
    `field_messages`: messages by code that apply to this form only.
    """
    form_state = FormState(name, data)
    if isinstance(error, TextError):
        for problem in error.problems:
            place = "" if problem.line is None else f"Line {problem.line}: "
            sentence = place + _to_sentence(problem.description + ("?" if problem.suggestions else ""))
            form_state.line_errors.setdefault(problem.path, []).append(LineError(sentence, _suggest(problem)))
        for path, line_errors in form_state.line_errors.items():
            form_state.errors[path] = " ".join(each.sentence for each in line_errors)
        return form_state
    if not isinstance(error, ValidationError | InvalidFields):
        messages = [error.message] if isinstance(error.message, str) else error.message
        form_state.form_errors = [_to_sentence(message) for message in messages]
        return form_state
    messages_by_code = {**FIELD_MESSAGES, **(field_messages or {})}
    for field_error in field_errors(error) if isinstance(error, ValidationError) else error.errors:
        path = field_error["field"]
        message = messages_by_code.get(field_error["code"], field_error["message"])
        field_name = next((key for key in (path, path.rpartition(".")[0]) if key in known_fields or key in data), None)
        if field_name:
            form_state.errors.setdefault(field_name, _to_sentence(f"This {message}"))
        else:
            form_state.form_errors.append(_to_sentence(f"{path} {message}".strip()))
    return form_state


def _to_sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


def field_names(schema: Schema | None, prefix: str = "") -> set[str]:
    """Return the names of all fields of a form, as they are submitted."""
    names: set[str] = set()
    for name, schema_field in (schema.fields if schema else {}).items():
        if isinstance(schema_field, fields.Nested):
            names |= field_names(schema_field.schema, f"{prefix}{name}.")
        names.add(prefix + name)
    return names
