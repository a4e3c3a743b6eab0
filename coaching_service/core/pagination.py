"""Pages of a list: the query and the response."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Generic, TypedDict, TypeVar

from marshmallow import Schema, fields

from coaching_service.core.query import QueryInteger
from coaching_service.core.validation import Input, Output

MAX_PAGE = 50
T = TypeVar("T")


class Page(TypedDict, Generic[T]):
    """The result of a paginated list: `docs` are the entries of page number `page`, from 1."""

    docs: list[T]
    totalDocs: int
    limit: int
    totalPages: int
    page: int
    pagingCounter: int
    hasPrevPage: bool
    hasNextPage: bool
    prevPage: int | None
    nextPage: int | None


class PageQuery(Input):
    """`pageSize` (1 to 50) and `pageNum` (from 1), both required; numbers as the specification converts them."""

    pageSize = QueryInteger(minimum=1, maximum=MAX_PAGE, required=True)
    pageNum = QueryInteger(minimum=1, required=True)


class PageMetadata(Output):
    """The position of a page in its list."""

    totalDocs = fields.Integer(metadata={"description": "How many entries the list has."})
    limit = fields.Integer()
    totalPages = fields.Integer()
    page = fields.Integer()
    pagingCounter = fields.Integer(metadata={"description": "The number of the first entry on this page, from 1."})
    hasPrevPage = fields.Boolean()
    hasNextPage = fields.Boolean()
    prevPage = fields.Integer(allow_none=True)
    nextPage = fields.Integer(allow_none=True)


@cache
def page_of(schema: type[Schema]) -> type[Schema]:
    """The schema of a page of `schema`."""
    return type(f"{schema.__name__}Page", (PageMetadata,), {"docs": fields.List(fields.Nested(schema))})


def skip_of(page: int, size: int) -> int:
    """How many entries come before a page."""
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
