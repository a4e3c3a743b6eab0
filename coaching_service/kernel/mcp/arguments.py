"""What assistants pass to tools: closed objects, judged like a REST body and described as JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache
from typing import Any

from apispec import APISpec
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from marshmallow import RAISE, Schema, ValidationError, fields, validates_schema

from coaching_service.kernel.messages import body_messages
from coaching_service.kernel.pagination import page_document, skip_of
from coaching_service.kernel.validation import Day, Identifier, Input, Integer

USUAL_PAGE, MAX_TOOL_PAGE = 20, 100
_UNKNOWN = "Unknown field."  # marshmallow's own words


class Arguments(Input):
    """The base of what a tool takes: an unknown field is refused."""

    class Meta:
        unknown = RAISE


class ClientArgument(Arguments):
    """A tool about one client."""

    customerId = Identifier(required=True, metadata={"description": "The client's _id, from list_customers."})


class ToolPage(Arguments):
    """`page` from 1 and `pageSize`, 20 unless told and at most 100."""

    page = Integer(least=1, load_default=1, metadata={"description": "Page number, from 1."})
    pageSize = Integer(
        least=1, most=MAX_TOOL_PAGE, load_default=USUAL_PAGE, metadata={"description": "Entries a page, 1 to 100."}
    )


class Dates(Arguments):
    """From `startDate` to `endDate`, both included."""

    longest = 366

    startDate = Day(required=True, metadata={"description": "First day, YYYY-MM-DD, the client's local date."})
    endDate = Day(required=True, metadata={"description": "Last day, included, YYYY-MM-DD."})

    @validates_schema
    def in_order(self, data: Mapping[str, str], **_: Any) -> None:
        """The end is not before the start, and not too long after it."""
        days = (date.fromisoformat(data["endDate"]) - date.fromisoformat(data["startDate"])).days
        if days < 0:
            raise ValidationError("must not be before startDate", "endDate")
        if days >= self.longest:
            raise ValidationError(f"must be less than {self.longest} days after startDate", "endDate")


class OpenDates(Arguments):
    """From `startDate` to `endDate`, both included; either may be left open."""

    startDate = Day(load_default=None, allow_none=True, metadata={"description": "First day, YYYY-MM-DD."})
    endDate = Day(load_default=None, allow_none=True, metadata={"description": "Last day, included, YYYY-MM-DD."})

    @validates_schema
    def in_order(self, data: Mapping[str, str | None], **_: Any) -> None:
        """The end is not before the start."""
        first, last = data["startDate"], data["endDate"]
        if first is not None and last is not None and last < first:
            raise ValidationError("must not be before startDate", "endDate")


def judged(schema: Schema, given: Any) -> dict[str, Any]:
    """The arguments as `schema` reads them, null being the same as absent.

    Raises BadArguments with one sentence a wrong argument; none quotes what was sent.
    """
    try:
        read: dict[str, Any] = schema.load(_without_nulls(given or {}))
    except ValidationError as error:
        raise BadArguments(body_messages(ValidationError(_unquoted(error.messages)))) from None
    return read


def _without_nulls(given: Any) -> Any:
    if isinstance(given, dict):
        return {name: _without_nulls(value) for name, value in given.items() if value is not None}
    return [_without_nulls(each) for each in given] if isinstance(given, list) else given


def _unquoted(messages: Any) -> Any:
    """A schema's messages with the names of unknown fields, which are the caller's own words, left out."""
    if not isinstance(messages, dict):
        return messages
    found = {name: _unquoted(inner) for name, inner in messages.items() if inner != [_UNKNOWN]}
    if len(found) < len(messages):
        found["_schema"] = [*found.get("_schema", []), "holds an unknown field: tools/list tells which there are"]
    return found


class BadArguments(Exception):
    """Arguments that do not fit; `sentences` say what is wrong, one an argument."""

    def __init__(self, sentences: list[str]) -> None:
        super().__init__("; ".join(sentences))
        self.sentences = sentences


def paged(entries: Sequence[Any], page: int, size: int) -> dict[str, Any]:
    """One page of entries that are all at hand, as list tools answer it."""
    first = skip_of(page, size)
    return page_document(entries[first : first + size], len(entries), page, size)


def input_schema(schema: Schema) -> dict[str, Any]:
    """The JSON Schema of what a tool takes, complete in itself: closed objects, no references."""
    return _inlined(schema)


@cache
def _converter() -> OpenAPIConverter:
    # Without a name for a schema, apispec writes it where it is used.
    spec = APISpec(title="tools", version="1", openapi_version="3.1.0")
    return OpenAPIConverter("3.1.0", schema_name_resolver=lambda _: None, spec=spec)


def _inlined(schema: Schema) -> dict[str, Any]:
    properties = {name: _property(field) for name, field in schema.fields.items()}
    required = [name for name, field in schema.fields.items() if field.required]
    whole: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return whole | ({"required": required} if required else {})


def _property(field: fields.Field[Any]) -> dict[str, Any]:
    if isinstance(field, fields.Nested):
        return _inlined(field.schema) | _told(field)
    if isinstance(field, fields.List):
        limits = {key: value for key, value in field.metadata.items() if key in ("minItems", "maxItems")}
        return {"type": "array", "items": _property(field.inner), **limits, **_told(field)}
    described: dict[str, Any] = _converter().field2property(field)
    described.pop("example", None)
    if isinstance(described.get("type"), list):  # optional arguments are left out, not sent as null
        described["type"] = next(kind for kind in described["type"] if kind != "null")
    if described.get("default", ...) is None:
        del described["default"]
    return described


def _told(field: fields.Field[Any]) -> dict[str, Any]:
    return {key: value for key, value in field.metadata.items() if key == "description"}
