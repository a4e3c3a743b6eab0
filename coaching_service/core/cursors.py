"""Lists that are read by cursor: `limit` entries at a time, each next part `after` the cursor of the one before.

A cursor holds the sort values of the last entry. It is signed and bound to the company, the list and its filters, so it
cannot be made up, nor be used with other filters.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Generic, TypedDict, TypeVar

import orjson
from marshmallow import Schema, fields

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter
from coaching_service.core.errors import InvalidFields
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import QueryInteger
from coaching_service.core.validation import Input, Output

DEFAULT_LIMIT, MAX_LIMIT = 20, 100
_IDENTIFIER, _TIME = "id", "at"
T = TypeVar("T")
S = TypeVar("S", bound=Mapping[str, Any])


class CursorPage(TypedDict, Generic[T]):
    """Part of a list: its entries, and the cursor of the next part; null and false at the end."""

    docs: list[T]
    nextCursor: str | None
    hasMore: bool


class CursorQuery(Input):
    """The query of a list that is read by cursor: `limit` (1 to 100) and `after`."""

    limit = QueryInteger(
        minimum=1,
        maximum=MAX_LIMIT,
        load_default=DEFAULT_LIMIT,
        metadata={"description": f"The largest number of entries; default {DEFAULT_LIMIT}."},
    )
    after = fields.String(
        load_default=None, metadata={"description": "The `nextCursor` of the part before; absent for the first part."}
    )


class CursorMetadata(Output):
    """What a part of a list has in addition to its entries."""

    nextCursor = fields.String(
        allow_none=True, metadata={"description": "What to send as `after` for the next part; null at the end."}
    )
    hasMore = fields.Boolean(metadata={"description": "Whether there is a next part."})


@cache
def cursor_page_of(schema: type[Schema]) -> type[Schema]:
    """Return the schema of a part of a list of `schema`."""
    return type(f"{schema.__name__}List", (CursorMetadata,), {"docs": fields.List(fields.Nested(schema))})


class Position:
    """A place in a list: the list's name and filters, its sort fields, and the cursor after which to continue.

    `filters` are the values that select the entries; `sort` are field names with a leading `-` for descending order, of
    which the last is unique. Raises InvalidFields if `after` is not a cursor of the same list with the same filters.
    """

    def __init__(
        self, ctx: Context, list_name: str, filters: Mapping[str, object], sort: Sequence[str], after: str | None
    ) -> None:
        self.sort = tuple(sort)
        self._codec = CursorCodec(ctx, list_name, filters, sort)
        self._values = None if after is None else self._codec.read(after)

    def condition(self) -> Filter:
        """Return the filter of the entries after this place; empty at the beginning of the list."""
        return {} if self._values is None else _after(self.sort, self._values)

    def condition_after(self, entry: Mapping[str, Any]) -> Filter:
        """Return the filter of the entries after another one."""
        return _after(self.sort, [_sort_value(entry, field) for field in self.sort])

    def is_before(self, entry: Mapping[str, Any]) -> bool:
        """Return whether an entry comes after this place; for lists in ascending order."""
        return self._values is None or [_sort_value(entry, field) for field in self.sort] > self._values

    def condition_on_first(self, number: int) -> Filter:
        """Return the filter, by the first `number` sort fields, of the entries that may be after this place."""
        if self._values is None:
            return {}
        first, values = self.sort[:number], self._values[:number]
        condition = _after(first, values)
        condition["$or"].append({field.removeprefix("-"): value for field, value in zip(first, values, strict=True)})
        return condition

    def conditions_with_nulls_last(self) -> list[Filter]:
        """Return the filters of the entries after this place if the first sort field, ascending, can be null.

        Null comes after all values, while the database sorts it before them. So the entries are read in parts, one
        after the other: those that have a value, then those without.
        """
        name = self.sort[0]
        if self._values is None:
            return [{name: {"$ne": None}}, {name: None}]
        if self._values[0] is None:
            return [{name: None, **_after(self.sort[1:], self._values[1:])}]
        return [_after(self.sort, self._values), {name: None}]

    def page(self, stored: Sequence[S], limit: int, present: Callable[[S], T]) -> CursorPage[T]:
        """Return the first `limit` of the stored entries `stored`, which were read with a limit of one more."""
        shown = stored[:limit]
        has_more = len(stored) > limit
        cursor = self._codec.write([_sort_value(shown[-1], field) for field in self.sort]) if has_more else None
        return {"docs": [present(entry) for entry in shown], "nextCursor": cursor, "hasMore": has_more}


class CursorCodec:
    """Writes and reads the cursors of one list: signed values, bound to the company, the list, its filters and sort."""

    def __init__(self, ctx: Context, list_name: str, filters: Mapping[str, object], sort: Sequence[str]) -> None:
        self._vault = ctx.services.vault
        canonical = orjson.dumps(dict(filters), default=str, option=orjson.OPT_SORT_KEYS)
        self._binding = f"cursor:{ctx.company_id}:{list_name}:{','.join(sort)}:{hashlib.sha256(canonical).hexdigest()}"

    def write(self, values: Sequence[object]) -> str:
        """Return the cursor with these values: identifiers, times, texts, numbers and null."""
        payload = _to_base64(orjson.dumps([_to_json(value) for value in values]))
        return f"{payload}.{self._vault.sign(self._signed_text(payload))}"

    def read(self, cursor: str) -> list[object]:
        """Return the values of a cursor. Raises InvalidFields if it is not one of this list with these filters."""
        payload, _, signature = cursor.partition(".")
        if not self._vault.verify_signature(self._signed_text(payload), signature):
            raise _not_a_cursor()
        return [_from_json(value) for value in orjson.loads(_from_base64(payload))]

    def _signed_text(self, payload: str) -> str:
        return f"{self._binding}:{payload}"


def _after(sort: Sequence[str], values: Sequence[object]) -> Filter:
    """Return the filter of the entries after the one with these sort values."""
    alternatives: list[Filter] = []
    equal: Filter = {}
    for field, value in zip(sort, values, strict=True):
        name, operator = _name_and_operator(field)
        alternatives.append({**equal, name: {operator: value}})
        equal[name] = value
    name, operator = _name_and_operator(sort[0])  # the bound by which the index is entered
    return {name: {f"{operator}e": values[0]}, "$or": alternatives}


def _name_and_operator(field: str) -> tuple[str, str]:
    """Return the name of a sort field, and the operator that finds the values after another one."""
    return (field[1:], "$lt") if field.startswith("-") else (field, "$gt")


def _not_a_cursor() -> InvalidFields:
    message = "must be the nextCursor of this list with the same filters"
    return InvalidFields([{"field": "after", "code": "INVALID_CURSOR", "message": message}], f"after {message}")


def _sort_value(entry: Mapping[str, Any], field: str) -> object:
    value: Any = entry
    for name in field.removeprefix("-").split("."):
        value = value[name]
    return value


def _to_json(value: object) -> object:
    if isinstance(value, ObjectId):
        return {_IDENTIFIER: str(value)}
    return {_TIME: value.isoformat()} if isinstance(value, datetime) else value


def _from_json(value: Any) -> object:
    if not isinstance(value, dict):
        return value
    return ObjectId(value[_IDENTIFIER]) if _IDENTIFIER in value else datetime.fromisoformat(value[_TIME])


def _to_base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _from_base64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
