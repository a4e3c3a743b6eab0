"""Pages of a list, by number or by cursor: the query and the response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Generic, NotRequired, TypedDict, TypeVar

from marshmallow import Schema, fields, validates_schema

from coaching_service.core.field_schemas import output_of, query_of
from coaching_service.core.fields import Default, Description
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import QueryIdentifiers, QueryInteger
from coaching_service.core.validation import Input, invalid

MAX_PAGE = 50
MAX_IDS = 50
DEFAULT_LIMIT, MAX_LIMIT = 20, 100
T = TypeVar("T")


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
