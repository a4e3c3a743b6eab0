"""Arguments of tools: closed objects, validated like a REST body and described by a JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from functools import cache
from typing import Any, NotRequired, TypedDict

import orjson
from apispec import APISpec
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from marshmallow import RAISE, Schema, ValidationError, fields, validates_schema

from coaching_service.core import validation
from coaching_service.core.ids import IDENTIFIER_PATTERN, ObjectId
from coaching_service.core.list_selection import Page, T, page_document, skip_of
from coaching_service.core.mcp.results import Answer, typed, without_marks

DEFAULT_PAGE, MAX_TOOL_PAGE = 20, 100
IDENTIFIER_LENGTH = 24
# The metadata of an argument that is accepted and not listed: the shape that older versions had.
UNLISTED = {"unlisted": True}
# The metadata of an argument that is listed as required, although an unlisted one may take its place.
LISTED_AS_REQUIRED = {"listedAsRequired": True}
_MAX_MESSAGES = 8
_NUMBER = re.compile(r"[+-]?[0-9]{1,15}(\.[0-9]{1,15})?")
_BOOLEANS = {"true": True, "false": False}


class Arguments(validation.Input):
    """The base of the argument schemas: unknown fields are rejected."""

    class Meta:
        unknown = RAISE


def optional(description: str) -> dict[str, Any]:
    """Return the options of an argument that may be omitted or null; both are None."""
    return {"load_default": None, "allow_none": True, "metadata": {"description": description}}


class CustomerArgument(Arguments):
    """The client a tool is about."""

    customerId = validation.Identifier(required=True, metadata={"description": "From list_customers."})


class ToolPage(Arguments):
    """`page` from 1, and `pageSize`, by default 20 and at most 100."""

    page = validation.Integer(minimum=1, load_default=1)
    pageSize = validation.Integer(minimum=1, maximum=MAX_TOOL_PAGE, load_default=DEFAULT_PAGE)


class Dates(Arguments):
    """From `startDate` to `endDate`, both included."""

    max_days = 366

    startDate = validation.Date(required=True)
    endDate = validation.Date(required=True)

    @validates_schema(skip_on_field_errors=False)
    def validate_range(self, data: Mapping[str, str], **_: Any) -> None:
        """Raises ValidationError if the end is before the start, or more than `max_days` are requested."""
        require_range(data.get("startDate"), data.get("endDate"), self.max_days)


def require_range(first: str | None, last: str | None, max_days: int) -> None:
    """Raise ValidationError unless `first` to `last`, both included, are 1 to `max_days` days, if both are there."""
    if first is None or last is None:
        return
    days = (date.fromisoformat(last) - date.fromisoformat(first)).days
    if days < 0:
        raise validation.invalid("must not be before startDate", "BEFORE_START", "endDate")
    if days >= max_days:
        raise validation.invalid(f"must be less than {max_days} days after startDate", "RANGE_TOO_LONG", "endDate")


class OpenDates(Arguments):
    """From `startDate` to `endDate`, both included; either may be omitted."""

    startDate = validation.Date(load_default=None, allow_none=True)
    endDate = validation.Date(load_default=None, allow_none=True)

    @validates_schema(skip_on_field_errors=False)
    def validate_order(self, data: Mapping[str, str | None], **_: Any) -> None:
        """Raises ValidationError if the end is before the start."""
        first, last = data.get("startDate"), data.get("endDate")
        if first is not None and last is not None and last < first:
            raise validation.invalid("must not be before startDate", "BEFORE_START", "endDate")


def validate_arguments(schema: Schema, arguments: Any) -> dict[str, Any]:
    """Return the arguments as `schema` loads them: null is the same as absent, 5.0 as 5, and «text» as text.

    Many models write an array, an object, a number or a boolean as text, and an empty text for nothing: these are read
    as what the argument takes. Raises InvalidArguments with one message per error; none quotes the arguments.
    """
    try:
        loaded: dict[str, Any] = schema.load(_normalize(arguments or {}, schema))
    except ValidationError as error:
        messages = validation.body_messages(ValidationError(_without_quotes(error.messages, schema)))
        more = [f"and {len(messages) - _MAX_MESSAGES} more of the kind"] if len(messages) > _MAX_MESSAGES else []
        valid = error.valid_data if isinstance(error.valid_data, dict) else {}
        raise InvalidArguments(messages[:_MAX_MESSAGES] + more, valid) from None
    except RecursionError:
        raise InvalidArguments(["the arguments are nested too deep"]) from None
    return loaded


def _normalize(value: Any, takes: Schema | fields.Field[Any] | None) -> Any:
    """Return a value that is sent for `takes`; None: an argument that is not known."""
    if isinstance(value, str):
        value = _read_text(without_marks(value), takes)
    if isinstance(value, dict):
        schema = takes.schema if isinstance(takes, fields.Nested) else takes
        known = schema.fields if isinstance(schema, Schema) else {}
        sent = {}
        for name, inner in value.items():
            field, is_empty = known.get(name), isinstance(inner, str) and not inner.strip()
            is_optional = field is not None and not field.required and not getattr(field, "allow_blank", False)
            if inner is not None and not (is_empty and is_optional):
                sent[name] = _normalize(inner, field)
        return sent
    if isinstance(value, list):
        return [_normalize(inner, takes.inner if isinstance(takes, fields.List) else None) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _read_text(text: str, takes: Schema | fields.Field[Any] | None) -> Any:
    """Return what a text is as JSON if `takes` is no text and the text is such a value; otherwise the text."""
    if isinstance(takes, fields.List | fields.Nested):
        if text.lstrip().startswith("[" if isinstance(takes, fields.List) else "{"):
            with suppress(orjson.JSONDecodeError):
                return orjson.loads(text)
        return text
    if isinstance(takes, fields.Integer | fields.Float) and _NUMBER.fullmatch(text.strip()):
        return float(text) if "." in text else int(text)
    if isinstance(takes, fields.Boolean):
        return _BOOLEANS.get(text.strip().lower(), text)
    return text


def _without_quotes(messages: Any, schema: Schema | None) -> Any:
    """Return the messages of a schema, with known field names in place of an unknown one, which the caller chose."""
    if not isinstance(messages, dict):
        return messages
    known = {}
    for name, inner in messages.items():
        if inner == [validation.UNKNOWN_FIELD]:
            continue
        # Of an object field, or of the entries of a list; for an index in a list it is the schema itself.
        field = schema.fields.get(name) if schema is not None and isinstance(name, str) else None
        entry = field.inner if isinstance(field, fields.List) else field
        nested = schema if field is None else entry.schema if isinstance(entry, fields.Nested) else None
        known[name] = _without_quotes(inner, nested)
    if len(known) < len(messages) and schema is not None:
        listed = [name for name, field in schema.fields.items() if not field.metadata.get("unlisted")]
        hint = f"unknown field; the known ones are {', '.join(listed) or 'none'}"
        known["_schema"] = [*known.get("_schema", []), hint]
    return known


class InvalidArguments(Exception):
    """The arguments are invalid; `messages` has one sentence per error, `valid` the arguments without errors."""

    def __init__(self, messages: list[str], valid: Mapping[str, Any] | None = None) -> None:
        super().__init__("; ".join(messages))
        self.messages, self.valid = messages, valid or {}


def paged(entries: Sequence[T], page: int, size: int) -> Page[T]:
    """Return one page of entries that are all in memory, in the shape that list tools return."""
    first = skip_of(page, size)
    return page_document(entries[first : first + size], len(entries), page, size)


@cache
def _converter() -> OpenAPIConverter:
    # apispec writes a schema without a name where it is used.
    spec = APISpec(title="tools", version="1", openapi_version="3.1.0")
    return OpenAPIConverter("3.1.0", schema_name_resolver=lambda _: None, spec=spec)


def input_schema(schema: Schema) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments: closed objects, without references."""
    listed = {name: field for name, field in schema.fields.items() if not field.metadata.get("unlisted")}
    properties = {name: _property(field) for name, field in listed.items()}
    required = [name for name, field in listed.items() if field.required or field.metadata.get("listedAsRequired")]
    description: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return description | ({"required": required} if required else {})


def _property(field: fields.Field[Any]) -> dict[str, Any]:
    metadata = {key: field.metadata[key] for key in ("maxItems", "description") if key in field.metadata}
    if isinstance(field, fields.Nested):
        return input_schema(field.schema) | metadata
    if isinstance(field, fields.List):
        return {"type": "array", "items": _property(field.inner), **metadata}
    described: dict[str, Any] = _converter().field2property(field)
    # Left out to save tokens: an empty text or list is still refused, and the words of an enum have their lengths.
    for name in ("example", "minLength", *(["maxLength"] if "enum" in described else [])):
        described.pop(name, None)
    if described.get("pattern") == IDENTIFIER_PATTERN:  # which has more tokens than its length says
        described |= {"maxLength": IDENTIFIER_LENGTH}
        del described["pattern"]
    if isinstance(described.get("type"), list):  # optional arguments are omitted, not sent as null
        described["type"] = next(kind for kind in described["type"] if kind != "null")
    if None in described.get("enum", ()):
        described["enum"] = [word for word in described["enum"] if word is not None]
    if described.get("default", ...) is None:
        del described["default"]
    return described


# --- Lists as assistants read them: a title that says where the list continues, and a line for each entry -------------


_MAX_CURSOR, _MAX_LIMIT, _DEFAULT_LIMIT = 2_000, 100, 20
_MAX_TEXT = 600
_NUMBERED, _BY_CURSOR = ("totalDocs", "nextPage"), ("totalDocs", "nextCursor")


class ListedLine(TypedDict):
    """An entry of a list as a line of text, and its identifier if other tools take it."""

    _id: NotRequired[ObjectId]
    line: str


class Extent(TypedDict):
    """What a list is about; with numbered pages how many entries there are, and the next page if there is one."""

    summary: str
    totalDocs: NotRequired[int]
    nextPage: NotRequired[int]


class Lines(Extent):
    """A list as a whole or a part of it: the cursor of the next part if there is one, and what else to look for."""

    docs: list[ListedLine]
    nextCursor: NotRequired[str]
    hint: NotRequired[str]


class ToolPart(Arguments):
    """`limit` (1 to 100, by default 20) entries of a list, after a cursor."""

    limit = validation.Integer(minimum=1, maximum=_MAX_LIMIT, load_default=_DEFAULT_LIMIT)
    after = validation.Text(max_length=_MAX_CURSOR, **optional("nextCursor of the part before."))


def list_answer(
    title: str,
    page: Mapping[str, Any],
    lines: Sequence[str],
    *,
    ids: Sequence[ObjectId | None] | None = None,
    hint: str = "",
) -> Answer:
    """Return a page or part of a list: `lines` are the texts of its `docs`, `ids` those they have in brackets.

    `page` has numbered pages or a cursor. The data has the same lines, with the identifiers apart.
    """
    shown = len(page["docs"])
    total = page.get("totalDocs", shown)
    if "hasMore" in page:
        more = f"; more with after {page['nextCursor']}" if page.get("nextCursor") else "; more" * page["hasMore"]
        more = f"; shown {shown}{more}" if total > shown else more
    else:
        more = f"; shown {shown}, more on page {page['nextPage']}" if page["hasNextPage"] else ""
    text = [f"{title}: {total or 'none'}{more}", *lines, *([hint] if hint else [])]
    docs: list[ListedLine] = [
        {"line": line} if _id is None else {"_id": _id, "line": line.replace(f" [{_id}]", "", 1)}
        for line, _id in zip(lines, ids or [None] * len(lines), strict=True)
    ]
    return Answer("\n".join(text), {**describe_list(title, page, hint), "docs": docs})


def describe_list(title: str, page: Mapping[str, Any], hint: str = "") -> dict[str, object]:
    """Return what the data of a list says of all of it."""
    names = _BY_CURSOR if "hasMore" in page else _NUMBERED
    known = {name: page[name] for name in names if page.get(name) is not None}
    return {"summary": title, **known, **({"hint": hint} if hint else {})}


def join_facts(*facts: object) -> str:
    """Return the facts of a line that are known, separated by semicolons; what is empty or None is not."""
    return "; ".join(str(fact) for fact in facts if fact)


def typed_line(text: str, longest: int = _MAX_TEXT) -> str:
    """Return a text that a person typed in one line, marked as data; what is longer than `longest` is cut off."""
    line = " ".join(text.split())
    return typed(line if len(line) <= longest else f"{line[: longest - 1]}…")


def format_time(time: datetime) -> str:
    """Return a stored time (UTC) to the minute."""
    return f"{time:%Y-%m-%d %H:%M}Z"


def format_figure(value: float | None, unit: str = "") -> str:
    """Return a figure without unnecessary decimals, or `-` for None."""
    return "-" if value is None else f"{round(value, 2):.15g}{unit}"  # without an exponent
