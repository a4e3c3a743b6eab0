"""Which entries of a list are asked for, and in which order: with some identifiers, or changed since a time.

A program that keeps a copy of a list reads what has changed since the `X-As-Of` of its previous reading. `updatedAt` is
set before the transaction that writes it is committed, and by the clock of one of several processes: `X-As-Of` is so
much earlier than the request that no change appears only after it with an earlier time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from coaching_service.core.database.documents import Filter, now
from coaching_service.core.external_identity import ExternalIdFilter
from coaching_service.core.field_schemas import query_of
from coaching_service.core.fields import Description
from coaching_service.core.ids import ObjectId
from coaching_service.core.pagination import PageFields, PageQuery

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


class _ByUpdate(UpdatedSince):
    sort: NotRequired[
        Annotated[
            Literal["updatedAt"],
            Description("`updatedAt`: the change longest ago first. Without it, the usual order."),
        ]
    ]


class _RecordFilters(_ByUpdate, ExternalIdFilter):
    pass


class RecordQuery(_RecordFilters, PageFields):
    """The query of a paginated list of records that another system may know: which of them, order and page."""


# The fields and checks of RecordQuery, for `query_of` with the filters of a list.
RECORDS = query_of(RecordQuery, PageQuery, query_of(_RecordFilters))


@dataclass(frozen=True)
class ListSelection:
    """Which entries of a list are asked for, apart from its own filters.

    `ids`: only these entries; `updated_since`: only those created or changed at this time (UTC) or later. `by_update`:
    in the order of their last change.
    """

    ids: tuple[ObjectId, ...] | None = None
    updated_since: datetime | None = None
    by_update: bool = False

    @classmethod
    def of(cls, query: Mapping[str, Any]) -> ListSelection:
        """Return the selection of a query with any of `ids`, `updatedSince` and `sort`."""
        ids = query.get("ids")
        return cls(None if ids is None else tuple(ids), query.get("updatedSince"), query.get("sort") == UPDATED)

    @property
    def is_all(self) -> bool:
        """Whether all entries are asked for."""
        return self.ids is None and self.updated_since is None

    def filter(self) -> Filter:
        """Return the filter of the entries."""
        where: Filter = {}
        if self.ids is not None:
            where["_id"] = {"$in": list(self.ids)}
        if self.updated_since is not None:
            where[UPDATED] = {"$gte": self.updated_since}
        return where

    def for_cursor(self) -> dict[str, object]:
        """Return the filters that a cursor of the list is bound to."""
        return {"ids": None if self.ids is None else sorted(map(str, self.ids)), "updatedSince": self.updated_since}

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
