"""What assistants pass to tools: closed objects, judged like a REST body and described as JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache
from typing import Any

from apispec import APISpec
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from marshmallow import RAISE, Schema, ValidationError, fields, validates_schema

from coaching_service.core.pagination import Page, T, page_document, skip_of
from coaching_service.core.validation import Date, Identifier, Input, Integer
from coaching_service.core.validation_messages import body_messages

DEFAULT_PAGE, MAX_TOOL_PAGE = 20, 100
_MAX_TOLD = 8
_UNKNOWN = "Unknown field."  # marshmallow's own words


class Arguments(Input):
    """The base of what a tool takes: an unknown field is refused."""

    class Meta:
        unknown = RAISE


class CustomerArgument(Arguments):
    """A tool about one client."""

    customerId = Identifier(required=True, metadata={"description": "The client's _id, from list_customers."})


class ToolPage(Arguments):
    """`page` from 1 and `pageSize`, 20 unless told and at most 100."""

    page = Integer(minimum=1, load_default=1, metadata={"description": "Page number, from 1."})
    pageSize = Integer(
        minimum=1,
        maximum=MAX_TOOL_PAGE,
        load_default=DEFAULT_PAGE,
        metadata={"description": "Entries a page, 1 to 100."},
    )


class Dates(Arguments):
    """From `startDate` to `endDate`, both included."""

    max_length = 366

    startDate = Date(required=True, metadata={"description": "First day, YYYY-MM-DD, the client's local date."})
    endDate = Date(required=True, metadata={"description": "Last day, included, YYYY-MM-DD."})

    @validates_schema
    def in_order(self, data: Mapping[str, str], **_: Any) -> None:
        """The end is not before the start, and not too long after it."""
        require_range(data["startDate"], data["endDate"], self.max_length)


def require_range(first: str, last: str, max_length: int) -> None:
    """Raise ValidationError unless `last` is the day of `first` or less than `longest` days after it."""
    days = (date.fromisoformat(last) - date.fromisoformat(first)).days
    if days < 0:
        raise ValidationError("must not be before startDate", "endDate")
    if days >= max_length:
        raise ValidationError(f"must be less than {max_length} days after startDate", "endDate")


class OpenDates(Arguments):
    """From `startDate` to `endDate`, both included; either may be left open."""

    startDate = Date(load_default=None, allow_none=True, metadata={"description": "First day, YYYY-MM-DD."})
    endDate = Date(load_default=None, allow_none=True, metadata={"description": "Last day, included, YYYY-MM-DD."})

    @validates_schema
    def in_order(self, data: Mapping[str, str | None], **_: Any) -> None:
        """The end is not before the start."""
        first, last = data["startDate"], data["endDate"]
        if first is not None and last is not None and last < first:
            raise ValidationError("must not be before startDate", "endDate")


def validate_arguments(schema: Schema, given: Any) -> dict[str, Any]:
    """The arguments as `schema` reads them: null is the same as absent, 5.0 the same as 5.

    Raises BadArguments with one sentence a wrong argument; none quotes what was sent.
    """
    try:
        read: dict[str, Any] = schema.load(_tidied(given or {}))
    except ValidationError as error:
        sentences = body_messages(ValidationError(_unquoted(error.messages, schema)))
        more = [f"and {len(sentences) - _MAX_TOLD} more of the kind"] if len(sentences) > _MAX_TOLD else []
        raise InvalidArguments(sentences[:_MAX_TOLD] + more) from None
    except RecursionError:
        raise InvalidArguments(["the arguments are nested too deep"]) from None
    return read


def _tidied(given: Any) -> Any:
    if isinstance(given, dict):
        return {name: _tidied(value) for name, value in given.items() if value is not None}
    if isinstance(given, list):
        return [_tidied(each) for each in given]
    return int(given) if isinstance(given, float) and given.is_integer() else given


def _unquoted(messages: Any, schema: Schema | None) -> Any:
    """A schema's messages; instead of an unknown field, which is the caller's own word, those that are known."""
    if not isinstance(messages, dict):
        return messages
    found = {name: _unquoted(inner, _within(schema, name)) for name, inner in messages.items() if inner != [_UNKNOWN]}
    if len(found) < len(messages) and schema is not None:
        known = f"unknown field; the known ones are {', '.join(schema.fields) or 'none'}"
        found["_schema"] = [*found.get("_schema", []), known]
    return found


def _within(schema: Schema | None, name: Any) -> Schema | None:
    """The schema of what a field holds, or of the members of its list; a member's own is that of the list."""
    field = schema.fields.get(name) if schema is not None and isinstance(name, str) else None
    if field is None:
        return schema
    inner = field.inner if isinstance(field, fields.List) else field
    return inner.schema if isinstance(inner, fields.Nested) else None


class InvalidArguments(Exception):
    """Arguments that do not fit; `sentences` say what is wrong, one an argument."""

    def __init__(self, sentences: list[str]) -> None:
        super().__init__("; ".join(sentences))
        self.sentences = sentences


def paged(entries: Sequence[T], page: int, size: int) -> Page[T]:
    """Return one page of entries that are all in memory, in the shape that list tools return."""
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
    if None in described.get("enum", ()):
        described["enum"] = [word for word in described["enum"] if word is not None]
    if described.get("default", ...) is None:
        del described["default"]
    return described


def _told(field: fields.Field[Any]) -> dict[str, Any]:
    return {key: value for key, value in field.metadata.items() if key == "description"}
