"""Forms: what a browser sends as text becomes what the schemas of the REST interface take; what is wrong, by field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web
from marshmallow import Schema, ValidationError, fields, missing
from multidict import MultiDict

from coaching_service.core.errors import BadRequest, UnsupportedMediaType
from coaching_service.core.http.request_parsing import read_bytes
from coaching_service.core.media import IMAGE_TYPES, PDF
from coaching_service.core.validation_messages import body_messages

LIMIT = 131_072  # 10,000 characters, each in the twelve that a browser spells it by
_MAX_FIELDS = 10_000
_WHOLE = re.compile(r"[+-]?\d{1,15}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?\d{1,15}([.,]\d{1,15})?", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)  # 1,000: a thousand to some, one to others
_NO = ("", "false")
_IN_A_FORM = {
    "must be an identifier of 24 hexadecimal characters": "must be chosen",
    "must be a date in the form YYYY-MM-DD": "must be a date that exists",
    "must be the IANA name of a time zone, such as Europe/Madrid": "must be a time zone offered, such as Europe/Madrid",
    "must be a number": "must be a number such as 77.5 or 77,5, without marks between the thousands",
    "must be an integer": "must be a whole number",
    f"must be one of: {', '.join(IMAGE_TYPES)}": "must be a picture: JPEG, PNG or WebP",
    f"must be one of: {', '.join((PDF, *IMAGE_TYPES))}": "must be a PDF, or a picture: JPEG, PNG or WebP",
    "must be a whole picture": "This picture could not be read whole: it is cut off or damaged. Choose another copy.",
}
_IN_A_COACH_S_WORDS = {
    "The item is no longer in the source block; read the calendar again": (
        "It is not in that workout any more: it has been moved or removed meanwhile. Nothing was changed."
    ),
}
_STALE = (
    "This has been changed since you opened the page, by somebody else or in another window, so nothing was saved yet. "
    "Fields that differ from what you typed say what is stored now: set each as it should be, and save once more."
)
FormData = MultiDict[str]


@dataclass
class FormState:
    """What somebody typed into a form, and what is wrong with it.

    `general` is what is wrong with no field in particular, `errors` says it by field. `stale`: the record has moved on
    since the form was opened.
    """

    name: str
    values: FormData = field(default_factory=MultiDict)
    errors: dict[str, str] = field(default_factory=dict)
    form_errors: list[str] = field(default_factory=list)
    is_stale: bool = False

    def get_all(self, name: str) -> list[str]:
        """Every value of a field."""
        return self.values.getall(name, [])

    def get_lines(self, name: str) -> list[str]:
        """Every line of every value of a field, trimmed, without the empty ones."""
        return _lines(self.get_all(name))

    def count(self, name: str) -> int:
        """How many rows a list of rows was sent with."""
        return max(_places(name, self.values), default=-1) + 1

    def against(self, version: int) -> None:
        """Compare with the version that is stored now: whoever typed on another reads that there are two."""
        if self.values.get("version", str(version)) != str(version):
            self.is_stale, self.form_errors = True, [_STALE]


async def read_form(request: web.Request) -> FormData:
    """The fields of a form's body. Raises UnsupportedMediaType, TooLarge, BadRequest."""
    if request.content_type != "application/x-www-form-urlencoded":
        raise UnsupportedMediaType("A form is sent as application/x-www-form-urlencoded")
    raw = await read_bytes(request, LIMIT)
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise BadRequest("The form could not be read") from None
    return MultiDict((name, text.replace("\r\n", "\n")) for name, text in pairs)  # a line ends in one character


def load(schema: Schema, sent: Mapping[str, str]) -> dict[str, Any]:
    """The values as `schema` reads them. Raises ValidationError."""
    values: dict[str, Any] = schema.load(_values(schema, MultiDict(sent), ""))
    return values


def _values(schema: Schema, sent: FormData, prefix: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, each in schema.fields.items():
        wire = prefix + name
        if isinstance(each, fields.Nested):
            found[name] = _values(each.schema, sent, f"{wire}.")
        elif isinstance(each, fields.List) and isinstance(each.inner, fields.Nested):
            found[name] = [_values(each.inner.schema, sent, f"{wire}.{at}.") for at in _places(wire, sent)]
        elif isinstance(each, fields.List):
            if wire in sent:
                found[name] = [parse_value(each.inner, line) for line in _lines(sent.getall(wire))]
        elif isinstance(each, fields.Boolean):
            found[name] = sent.get(wire, "") not in _NO
        elif wire in sent and (value := _single(each, sent[wire])) is not missing:
            found[name] = value
    return found


def _places(wire: str, sent: FormData) -> list[int]:
    """Which rows of a list were sent: `sets.0.load` is in the first."""
    ahead = re.compile(re.escape(wire) + r"\.(\d{1,3})\.", re.ASCII)
    return sorted({int(row[1]) for name in sent if (row := ahead.match(name))})


def _single(each: fields.Field[Any], text: str) -> Any:
    """The value of a field that has one; of one left empty none where that is a value, else what it is without one."""
    if text.strip() or each.required:
        return parse_value(each, text)
    if each.allow_none:
        return None
    return text if each.load_default is missing else missing


def _lines(texts: Iterable[str]) -> list[str]:
    """A list is sent as several fields, as one with a member a line, or as both."""
    return [line.strip() for text in texts for line in text.split("\n") if line.strip()]


def parse_value(each: fields.Field[Any], text: str) -> Any:
    """A text as the JSON value it stands for; one that stands for none stays a text, which the field refuses."""
    if isinstance(each, fields.Integer) and _WHOLE.fullmatch(text.strip()):
        return int(text)
    if isinstance(each, fields.Float) and _DECIMAL.fullmatch(text.strip()) and not _THOUSANDS.fullmatch(text.strip()):
        return float(text.replace(",", "."))
    return text


def wrong(name: str, sent: FormData, problem: ValidationError | str | list[str], known: set[str]) -> FormState:
    """A form that was not accepted: `problem` is what is wrong, `known` the names of its fields but those of rows."""
    sentences = body_messages(problem) if isinstance(problem, ValidationError) else problem
    typed = FormState(name, sent)
    for sentence in [sentences] if isinstance(sentences, str) else sentences:
        where, _, what = sentence.partition(" ")
        what = _IN_A_FORM.get(what, what)
        at = next((n for n in (where, where.rpartition(".")[0]) if n in known or n in sent), None)
        if at:
            typed.errors.setdefault(at, f"This {what}." if what.startswith(("is ", "must ", "should ")) else what)
        else:
            told = _IN_A_COACH_S_WORDS.get(sentence, sentence)
            typed.form_errors.append(told if told.endswith((".", "?", "!")) else f"{told}.")
    return typed


def field_names(schema: Schema | None, prefix: str = "") -> set[str]:
    """The names of every field of a form, as they are sent."""
    found: set[str] = set()
    for name, each in (schema.fields if schema else {}).items():
        if isinstance(each, fields.Nested):
            found |= field_names(each.schema, f"{prefix}{name}.")
        found.add(prefix + name)
    return found
