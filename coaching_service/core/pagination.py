"""Pages of a list, by number or by cursor: the query and the response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Generic, NotRequired, TypedDict, TypeVar

from marshmallow import Schema, fields, validates_schema

from coaching_service.core.field_schemas import output_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import QueryIdentifiers, QueryInteger
from coaching_service.core.validation import Input, Output
from coaching_service.core.validation_messages import invalid

MAX_PAGE = 50
MAX_IDS = 50
DEFAULT_LIMIT, MAX_LIMIT = 20, 100
T = TypeVar("T")


class Page(TypedDict, Generic[T]):
    """The result of a paginated list: `docs` are the entries of page number `page`, from 1, or those after a cursor.

    `nextCursor` is the cursor of what follows; lists that are only read by page number leave it out. After a cursor
    `page`, `pagingCounter`, `prevPage` and `nextPage` are None.
    """

    docs: list[T]
    totalDocs: int
    limit: int
    totalPages: int
    page: int | None
    pagingCounter: int | None
    hasPrevPage: bool
    hasNextPage: bool
    prevPage: int | None
    nextPage: int | None
    nextCursor: NotRequired[str | None]


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


class PageQuery(AfterCursor):
    """`pageSize` (1 to 50) and `pageNum` (from 1), both required; numbers as the specification converts them."""

    pageSize = QueryInteger(minimum=1, maximum=MAX_PAGE, required=True)
    pageNum = QueryInteger(minimum=1, required=True)


class PageFields(TypedDict):
    """The query of a paginated list; PageQuery is its schema."""

    ids: NotRequired[list[ObjectId]]
    after: str | None
    pageSize: int
    pageNum: int


class PageMetadata(Output):
    """The position of a page in its list."""

    totalDocs = fields.Integer(metadata={"description": "How many entries the list has."})
    limit = fields.Integer()
    totalPages = fields.Integer()
    page = fields.Integer(allow_none=True, metadata={"description": "The number of this page; null after a cursor."})
    pagingCounter = fields.Integer(
        allow_none=True,
        metadata={"description": "The number of the first entry on this page, from 1; null after a cursor."},
    )
    hasPrevPage = fields.Boolean()
    hasNextPage = fields.Boolean()
    prevPage = fields.Integer(allow_none=True)
    nextPage = fields.Integer(allow_none=True)
    nextCursor = fields.String(
        allow_none=True,
        metadata={
            "description": "What to send as `after` for what follows; null at the end, and on pages after the first of "
            "lists without a lasting order."
        },
    )


@cache
def page_of(model: Any) -> type[Schema]:
    """Return the schema of a page of a TypedDict or a schema."""
    schema = output_of(model)
    return type(f"{schema.__name__}Page", (PageMetadata,), {"docs": fields.List(fields.Nested(schema))})


class CursorPage(TypedDict, Generic[T]):
    """Part of a list: its entries, and the cursor of the next part; null and false at the end."""

    docs: list[T]
    nextCursor: str | None
    hasMore: bool


_LIMIT = QueryInteger(
    minimum=1,
    maximum=MAX_LIMIT,
    load_default=DEFAULT_LIMIT,
    metadata={"description": f"The largest number of entries; default {DEFAULT_LIMIT}."},
)
_AFTER = fields.String(
    load_default=None, metadata={"description": "The `nextCursor` of the part before; absent for the first part."}
)


class PartQuery(TypedDict):
    """The query of a list that is read by cursor: `limit` (1 to 100) and `after`."""

    limit: Annotated[int, _LIMIT]
    after: Annotated[str | None, _AFTER]


class CursorQuery(Input):
    """The schema of PartQuery, for schemas that have more fields."""

    limit, after = _LIMIT, _AFTER


class CursorMetadata(Output):
    """What a part of a list has in addition to its entries."""

    nextCursor = fields.String(
        allow_none=True, metadata={"description": "What to send as `after` for the next part; null at the end."}
    )
    hasMore = fields.Boolean(metadata={"description": "Whether there is a next part."})


@cache
def cursor_page_of(model: Any) -> type[Schema]:
    """Return the schema of a part of a list of a TypedDict or a schema."""
    schema = output_of(model)
    return type(f"{schema.__name__}List", (CursorMetadata,), {"docs": fields.List(fields.Nested(schema))})


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
