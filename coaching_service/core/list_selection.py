"""Which entries of a list are asked for, and in which order: with some identifiers, or changed since a time.

A program that keeps a copy of a list reads what has changed since the `X-As-Of` of its previous reading. `updatedAt` is
set before the transaction that writes it is committed, and by the clock of one of several processes: `X-As-Of` is so
much earlier than the request that no change appears only after it with an earlier time.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Annotated, Any, Generic, Literal, NotRequired, TypedDict, TypeVar, cast

import orjson
from marshmallow import Schema, fields, validates_schema

from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.database.documents import D, Documents, Filter, Ownership, now
from coaching_service.core.errors import FieldError, InvalidFields
from coaching_service.core.external_identity import ExternalIdFilter, MetadataFilter
from coaching_service.core.fields import Default, Description, output_of, query_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import QueryIdentifiers, QueryInteger
from coaching_service.core.validation import Input, invalid

T = TypeVar("T")


# --- Pages of a list, by number or by cursor: the query and the response ----------------------------------------------


MAX_PAGE = 50
MAX_IDS = 50
DEFAULT_LIMIT, MAX_LIMIT = 20, 100


class PagePosition(TypedDict):
    """The position of a page in its list.

    `nextCursor` is the cursor of what follows; lists that are only read by page number leave it out. After a cursor
    `page`, `pagingCounter`, `prevPage` and `nextPage` are None.
    """

    totalDocs: Annotated[int, Description("How many entries the list has.")]
    limit: int
    totalPages: int
    page: Annotated[int | None, Description("The number of this page; null after a cursor.")]
    pagingCounter: Annotated[
        int | None, Description("The number of the first entry on this page, from 1; null after a cursor.")
    ]
    hasPrevPage: bool
    hasNextPage: bool
    prevPage: int | None
    nextPage: int | None
    nextCursor: NotRequired[
        Annotated[
            str | None,
            Description(
                "What to send as `after` for what follows; null at the end, and on pages after the first of lists "
                "without a lasting order."
            ),
        ]
    ]


class Page(PagePosition, Generic[T]):
    """The result of a paginated list: `docs` are the entries of page number `page`, from 1, or those after a cursor."""

    docs: list[T]


class AfterCursor(Input):
    """The query of a paginated list that can be walked; `page_field` is the parameter with the number of the page."""

    page_field = "pageNum"

    ids = QueryIdentifiers(
        maximum=MAX_IDS,
        metadata={
            "description": f"Only the entries with these identifiers: up to {MAX_IDS}; the parameter is repeated. "
            "Unknown ones are left out."
        },
    )
    after = fields.String(
        load_default=None,
        metadata={"description": "The `nextCursor` of the part before; absent for the first part. The page is 1."},
    )

    @validates_schema
    def validate_page(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raises ValidationError for a cursor together with another page than the first."""
        if data["after"] is not None and data[self.page_field] != 1:
            raise invalid("must be 1 together with after", "NOT_WITH_AFTER", self.page_field)


class PageFields(TypedDict):
    """The query of a paginated list: `pageSize` (1 to 50), and `pageNum` from 1."""

    ids: NotRequired[list[ObjectId]]
    after: str | None
    pageSize: Annotated[int, QueryInteger(maximum=MAX_PAGE)]
    pageNum: int


PageQuery = query_of(PageFields, AfterCursor)


def part_schema(name: str, position: Any, docs: fields.Field[Any], description: str | None = None) -> type[Schema]:
    """Return the schema of a part of a list: its `position` (PagePosition or CursorPosition) and its entries."""
    return type(name, (output_of(position),), {"docs": docs, "__doc__": description})


@cache
def page_of(model: Any) -> type[Schema]:
    """Return the schema of a page of a TypedDict or a schema."""
    schema = output_of(model)
    return part_schema(f"{schema.__name__}Page", PagePosition, fields.List(fields.Nested(schema)))


class CursorPosition(TypedDict):
    """What a part of a list has in addition to its entries."""

    nextCursor: Annotated[str | None, Description("What to send as `after` for the next part; null at the end.")]
    hasMore: Annotated[bool, Description("Whether there is a next part.")]


class CursorPage(CursorPosition, Generic[T]):
    """Part of a list: its entries, and the cursor of the next part; null and false at the end."""

    docs: list[T]


class PartQuery(TypedDict):
    """The query of a list that is read by cursor: `limit` (1 to 100) and `after`."""

    limit: Annotated[
        int,
        QueryInteger(maximum=MAX_LIMIT),
        Default(DEFAULT_LIMIT),
        Description(f"The largest number of entries; default {DEFAULT_LIMIT}."),
    ]
    after: Annotated[
        str | None,
        fields.String(),
        Description("The `nextCursor` of the part before; absent for the first part."),
    ]


@cache
def cursor_page_of(model: Any) -> type[Schema]:
    """Return the schema of a part of a list of a TypedDict or a schema."""
    schema = output_of(model)
    return part_schema(f"{schema.__name__}List", CursorPosition, fields.List(fields.Nested(schema)))


def skip_of(page: int, size: int) -> int:
    """Return how many entries come before a page."""
    return (page - 1) * size


def page_document(docs: Sequence[T], total: int, page: int, size: int) -> Page[T]:
    """Return page number `page` (from 1) of `total` entries, with `size` entries a page."""
    pages = max(1, -(-total // size))
    return {
        "docs": list(docs),
        "totalDocs": total,
        "limit": size,
        "totalPages": pages,
        "page": page,
        "pagingCounter": skip_of(page, size) + 1,
        "hasPrevPage": page > 1,
        "hasNextPage": page < pages,
        "prevPage": page - 1 if page > 1 else None,
        "nextPage": page + 1 if page < pages else None,
    }


# MongoDB ends a transaction after 60 seconds; the rest is for clocks that differ.
AS_OF_MARGIN = timedelta(seconds=90)
AS_OF_HEADER = "X-As-Of"
UPDATED = "updatedAt"
BY_UPDATE = (UPDATED, "_id")


class UpdatedSince(TypedDict):
    """The filter of a list by the time of the last change."""

    updatedSince: NotRequired[
        Annotated[
            datetime,
            Description(
                "Only what was created or changed at this time or later: the `X-As-Of` of an earlier response. Entries "
                "may be repeated; deletions are events."
            ),
        ]
    ]


class RecordFilters(UpdatedSince, ExternalIdFilter):
    """The filters of a list of records that another system may know."""


class _SortedFilters(RecordFilters):
    sort: NotRequired[
        Annotated[
            Literal["updatedAt"],
            Description("`updatedAt`: the change longest ago first. Without it, the usual order."),
        ]
    ]


class RecordQuery(_SortedFilters, PageFields):
    """The query of a paginated list of records that another system may know: which of them, order and page."""


# The fields and checks of RecordQuery, for `query_of` with the filters of a list.
RECORDS = query_of(RecordQuery, PageQuery, query_of(_SortedFilters))


@dataclass(frozen=True)
class ListSelection:
    """Which entries of a list are asked for, apart from its own filters.

    `ids`: only these entries; `updated_since`: only those created or changed at this time (UTC) or later; `metadata`:
    only those with these texts. `sort`: the field of another order than the usual one.
    """

    ids: tuple[ObjectId, ...] | None = None
    updated_since: datetime | None = None
    sort: str | None = None
    metadata: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, query: Mapping[str, Any]) -> ListSelection:
        """Return the selection of a query with any of `ids`, `updatedSince`, `sort` and `metadata`."""
        ids, metadata = query.get("ids"), tuple(sorted(query.get("metadata", {}).items()))
        return cls(None if ids is None else tuple(ids), query.get("updatedSince"), query.get("sort"), metadata)

    @property
    def by_update(self) -> bool:
        """Whether the entries are in the order of their last change."""
        return self.sort == UPDATED

    @property
    def is_all(self) -> bool:
        """Whether all entries are asked for."""
        return self.ids is None and self.updated_since is None and not self.metadata

    def filter(self) -> Filter:
        """Return the filter of the entries."""
        where: Filter = MetadataFilter.condition(dict(self.metadata))
        if self.ids is not None:
            where["_id"] = {"$in": list(self.ids)}
        if self.updated_since is not None:
            where[UPDATED] = {"$gte": self.updated_since}
        return where

    def for_cursor(self) -> dict[str, object]:
        """Return the filters that a cursor of the list is bound to."""
        bound: dict[str, object] = {
            "ids": None if self.ids is None else sorted(map(str, self.ids)),
            "updatedSince": self.updated_since,
        }
        return {**bound, "metadata": self.metadata} if self.metadata else bound

    def order(self, usual: Sequence[str]) -> tuple[str, ...]:
        """Return the sort fields of the list, whose order is otherwise `usual`."""
        return BY_UPDATE if self.by_update else tuple(usual)


ALL_ENTRIES = ListSelection()


class PartOfList(TypedDict):
    """Which part of a list is asked for: `size` entries from the page `page` (from 1) or after the cursor `after`."""

    page: int
    size: int
    selection: NotRequired[ListSelection]
    after: NotRequired[str | None]


def part_of(query: PageFields) -> PartOfList:
    """Return the part of a list that a query asks for."""
    return {
        "page": query["pageNum"],
        "size": query["pageSize"],
        "selection": ListSelection.of(query),
        "after": query["after"],
    }


def as_of() -> datetime:
    """Return the time (UTC) since which the changes have to be read next time, before anything is read now."""
    return now() - AS_OF_MARGIN


# --- Parts of a list: a page by its number, or what follows a cursor, so that changes hide and repeat no entry --------
# A cursor holds the sort values of the last entry. It is signed and bound to the company, the list and its filters, so
# it
# cannot be made up, nor be used with other filters. An entry is returned exactly once if its sort values do not change.


RANKED = ("rank",)
_IDENTIFIER, _TIME = "id", "at"
S = TypeVar("S", bound=Mapping[str, Any])


class ListPart:
    """Part of a list: `size` entries of page number `page` (from 1), or after the cursor `after`.

    `filters` are the values that select the entries. `sort` are the fields of the order, with a leading `-` for a
    descending one; the last is unique, or RANKED for a list in memory whose order changes while others write;
    `private` fields are not shown. `read` queries this part; an aggregation uses what `within` returns, `sort`,
    `skip` and `limit`, which is one more than the entries shown. Raises InvalidFields if `after` is not a cursor of the
    same list with the same filters.
    """

    def __init__(
        self,
        ctx: Context,
        list_name: str,
        filters: Mapping[str, object],
        sort: Sequence[str],
        *,
        size: int,
        after: str | None,
        page: int = 1,
        private: Sequence[str] = (),
    ) -> None:
        self._vault = ctx.services.vault
        canonical = orjson.dumps(dict(filters), default=str, option=orjson.OPT_SORT_KEYS)
        self._binding = f"cursor:{ctx.company_id}:{list_name}:{','.join(sort)}:{hashlib.sha256(canonical).hexdigest()}"
        self._page, self._size = page, size
        self._values = None
        if after is not None:
            payload, _, signature = after.partition(".")
            if not self._vault.verify_signature(f"{self._binding}:{payload}", signature):
                message = "must be the nextCursor of this list with the same filters"
                error: FieldError = {"field": "after", "code": "INVALID_CURSOR", "message": message}
                raise InvalidFields([error], f"after {message}")
            raw = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
            self._values = [_from_json(value) for value in orjson.loads(raw)]
        self.sort, self.private = tuple(sort), tuple(private)
        self.skip = skip_of(page, size) if after is None else 0
        self.limit = size + 1

    # --- reading the entries -----------------------------------------------------------------------------------

    def condition(self) -> Filter:
        """Return the filter of the entries after the cursor; empty without one."""
        return {} if self._values is None else _after(self.sort, self._values)

    def condition_after(self, entry: Mapping[str, Any]) -> Filter:
        """Return the filter of the entries after another one."""
        return _after(self.sort, self._sort_values(entry))

    def condition_on_first(self, number: int) -> Filter:
        """Return the filter, by the first `number` sort fields, of the entries that may be after the cursor."""
        if self._values is None:
            return {}
        first, values = self.sort[:number], self._values[:number]
        condition = _after(first, values)
        condition["$or"].append({field.removeprefix("-"): value for field, value in zip(first, values, strict=True)})
        return condition

    def conditions_with_nulls_last(self) -> list[Filter]:
        """Return the filters of the entries after the cursor if the first sort field, ascending, can be null.

        Null comes after all values, while the database sorts it before them. So entries with a value are read first,
        then entries without.
        """
        name = self.sort[0]
        if self._values is None:
            return [{name: {"$ne": None}}, {name: None}]
        if self._values[0] is None:
            return [{name: None, **_after(self.sort[1:], self._values[1:])}]
        return [_after(self.sort, self._values), {name: None}]

    def within(self, where: Filter) -> Filter:
        """Return the filter of the entries of `where` from which this part is read."""
        condition = self.condition()
        return {"$and": [where, condition]} if where.keys() & condition.keys() else where | condition

    async def read(
        self,
        ctx: Context,
        collection: Documents[D],
        where: Filter,
        *,
        hint: str | None = None,
        ownership: Ownership = "all",
    ) -> tuple[list[D], int]:
        """Return the documents of `where` for this part with the private sort fields, and how many match in total."""
        documents, total = await gather_reads(
            ctx,
            collection.find(
                ctx,
                self.within(where),
                sort=self.sort,
                skip=self.skip,
                limit=self.limit,
                including=self.private,
                hint=hint,
                ownership=ownership,
            ),
            collection.count(ctx, where, hint=hint, ownership=ownership),
        )
        return documents, total

    # --- the entries to show -----------------------------------------------------------------------------------

    def take_page(self, stored: Sequence[S]) -> tuple[list[S], str | None]:
        """Return the entries to show, without private sort fields, and the cursor of what follows."""
        shown: list[dict[str, Any]] = [dict(entry) for entry in stored[: self._size]]
        for entry in shown:  # copying all and removing a few is faster than choosing
            for name in self.private:
                entry.pop(name, None)
        return cast("list[S]", shown), self._cursor_of(stored)

    def take_page_from(self, entries: Iterable[S]) -> tuple[list[S], str | None]:
        """Return what `take_page` does of all entries of the list in ascending order."""
        following = [entry for entry in entries if self._values is None or self._sort_values(entry) > self._values]
        return self.take_page(following[self.skip : self.skip + self.limit])

    def take_ranked(self, ids: Sequence[ObjectId]) -> tuple[list[ObjectId], str | None]:
        """Return the entries to show of all entries `ids`, in their order, and the cursor of what follows.

        The first page has the first entries of the list; those after a cursor are the others by identifier, so that
        each is met exactly once. The cursor holds the identifiers of the first page, and the last one of the others
        that were shown. Pages after the first have no cursor.
        """
        if self._values is None:
            shown = list(ids[self.skip : self.skip + self._size])
            has_more = self.skip == 0 and len(ids) > self._size
            return shown, self._write_cursor([None, *shown]) if has_more else None
        last, *first = cast("list[ObjectId]", self._values)
        others = sorted(each for each in set(ids) - set(first) if last is None or each > last)
        shown = others[: self._size]
        return shown, self._write_cursor([shown[-1], *first]) if len(others) > self._size else None

    def by_cursor(self, stored: Sequence[S], present: Callable[[S], T], last: S | None = None) -> CursorPage[T]:
        """Return this part of a list without numbered pages: each of the entries read as `present` returns it.

        `last` is the last entry that was looked at, shown or not, if entries after it were not.
        """
        cursor = self._cursor_of(stored)
        if cursor is None and last is not None:
            cursor = self._write_cursor(self._sort_values(last))
        return {
            "docs": [present(entry) for entry in stored[: self._size]],
            "nextCursor": cursor,
            "hasMore": cursor is not None,
        }

    def present(self, stored: Sequence[S], total: int, present: Callable[[S], T]) -> Page[T]:
        """Return this part: each of the entries read as `present` returns it, of `total` in the list.

        `present` gets the private sort fields too: leaving them out there saves a copy of each entry.
        """
        return self.numbered([present(entry) for entry in stored[: self._size]], total, self._cursor_of(stored))

    def numbered(self, docs: Sequence[T], total: int, cursor: str | None) -> Page[T]:
        """Return this part with its entries `docs`, of `total` in the list; `cursor` is the cursor of what follows."""
        if self._values is None:
            return {**page_document(docs, total, self._page, self._size), "nextCursor": cursor}
        return {
            **page_document(docs, total, 1, self._size),
            "page": None,
            "pagingCounter": None,
            "hasPrevPage": True,
            "hasNextPage": cursor is not None,
            "prevPage": None,
            "nextPage": None,
            "nextCursor": cursor,
        }

    # --- cursors -----------------------------------------------------------------------------------------------

    def _cursor_of(self, stored: Sequence[Mapping[str, Any]]) -> str | None:
        """Return the cursor after the last entry that is shown; None if nothing follows."""
        has_more = len(stored) > self._size
        return self._write_cursor(self._sort_values(stored[self._size - 1])) if has_more else None

    def _sort_values(self, entry: Mapping[str, Any]) -> list[Any]:
        values: list[Any] = []
        for field in self.sort:
            value: Any = entry
            for name in field.removeprefix("-").split("."):
                value = value.get(name) if isinstance(value, Mapping) else None  # what is missing counts as null
            values.append(value)
        return values

    def _write_cursor(self, values: Sequence[object]) -> str:
        """Return the cursor with these values: identifiers, times, texts, numbers and null."""
        payload = base64.urlsafe_b64encode(orjson.dumps([_to_json(value) for value in values])).rstrip(b"=").decode()
        return f"{payload}.{self._vault.sign(f'{self._binding}:{payload}')}"


def _after(sort: Sequence[str], values: Sequence[object]) -> Filter:
    """Return the filter of the entries after the one with these sort values."""
    alternatives: list[Filter] = []
    equal: Filter = {}
    for field, value in zip(sort, values, strict=True):
        name, operator = _name_and_operator(field)
        is_first_null = value is None and operator == "$gt"  # null comes before all values, and equals nothing
        alternatives.append({**equal, name: {"$ne": None} if is_first_null else {operator: value}})
        equal[name] = value
    if values[0] is None:
        return {"$or": alternatives}
    name, operator = _name_and_operator(sort[0])  # the bound by which the index is entered
    return {name: {f"{operator}e": values[0]}, "$or": alternatives}


def _name_and_operator(field: str) -> tuple[str, str]:
    """Return the name of a sort field, and the operator that finds the values after another one."""
    return (field[1:], "$lt") if field.startswith("-") else (field, "$gt")


def _to_json(value: object) -> object:
    if isinstance(value, ObjectId):
        return {_IDENTIFIER: str(value)}
    return {_TIME: value.isoformat()} if isinstance(value, datetime) else value


def _from_json(value: Any) -> object:
    if not isinstance(value, dict):
        return value
    return ObjectId(value[_IDENTIFIER]) if _IDENTIFIER in value else datetime.fromisoformat(value[_TIME])
