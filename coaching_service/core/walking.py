"""Paginated lists that are also walked by cursor, so that inserting and deleting meanwhile neither hides nor repeats.

A walk follows the sort fields of the list: an entry is returned exactly once if they do not change meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

from coaching_service.core.cursors import CursorCodec, Position
from coaching_service.core.database.collections import D
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents, Filter, Ownership
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.pagination import Page, page_document, skip_of

S = TypeVar("S", bound=Mapping[str, Any])
T = TypeVar("T")


class _Part:
    """Part of a list: page number `page` (from 1) of `size` entries, or `size` entries after the cursor `after`."""

    def __init__(self, page: int, size: int, after: str | None) -> None:
        self._page, self._size, self._after = page, size, after

    def page(self, docs: Sequence[T], total: int, cursor: str | None) -> Page[T]:
        """Return this part with its entries `docs`, of `total` in the list; `cursor` is the cursor of what follows."""
        if self._after is None:
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


class Walk(_Part):
    """Part of a list in the order of an index: `sort` are its fields, the last one unique, as in Position.

    `filters` are the values that select the entries; `private` are sort fields that are not shown. `read` queries this
    part; an aggregation uses what `within` returns, `sort`, `skip` and `limit`, which is one more than the entries
    shown. Raises InvalidFields if `after` is not a cursor of the same list with the same filters.
    """

    def __init__(
        self,
        ctx: Context,
        list_name: str,
        filters: Mapping[str, object],
        sort: Sequence[str],
        *,
        page: int,
        size: int,
        after: str | None,
        private: Sequence[str] = (),
    ) -> None:
        super().__init__(page, size, after)
        self.sort, self.private = tuple(sort), tuple(private)
        self.skip = skip_of(page, size) if after is None else 0
        self.limit = size + 1
        self.position = Position(ctx, list_name, filters, sort, after)

    def within(self, where: Filter) -> Filter:
        """Return the filter of the entries of `where` from which this part is read."""
        condition = self.position.condition()
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

    def cut_from(self, entries: Iterable[S]) -> tuple[list[S], str | None]:
        """Return the entries to show of all entries of the list in ascending order, and the cursor of what follows."""
        following = [entry for entry in entries if self.position.is_before(entry)]
        return self.cut(following[self.skip : self.skip + self.limit])

    def cut(self, stored: Sequence[S]) -> tuple[list[S], str | None]:
        """Return the entries to show of those read, without private sort fields, and the cursor of what follows."""
        part = self.position.page(stored, self._size, self._without_private)
        return part["docs"], part["nextCursor"]

    def present(self, stored: Sequence[S], total: int, present: Callable[[S], T]) -> Page[T]:
        """Return this part: each of the entries read as `present` returns it, of `total` in the list.

        `present` gets the private sort fields too: leaving them out there saves a copy of each entry.
        """
        part = self.position.page(stored, self._size, present)
        return self.page(part["docs"], total, part["nextCursor"])

    def _without_private(self, entry: S) -> S:
        shown: dict[str, Any] = dict(entry)  # copying all and removing a few is faster than choosing
        for name in self.private:
            shown.pop(name, None)
        return cast("S", shown)


class RankedWalk(_Part):
    """Part of a list in memory, in an order that changes while others write, such as the relevance of a search.

    The first part has the first entries of the list; those after a cursor are the others by identifier, so that each is
    met exactly once. The cursor holds the identifiers of the first part, and where the walk is among the others.
    Pages after the first have no cursor.
    """

    def __init__(
        self, ctx: Context, list_name: str, filters: Mapping[str, object], *, page: int, size: int, after: str | None
    ) -> None:
        super().__init__(page, size, after)
        self._codec = CursorCodec(ctx, list_name, filters, ("rank",))
        self._values = None if after is None else self._codec.read(after)

    def cut(self, ids: Sequence[ObjectId]) -> tuple[list[ObjectId], str | None]:
        """Return the entries to show of all entries `ids`, and the cursor of what follows."""
        if self._values is None:
            skip = skip_of(self._page, self._size)
            shown = list(ids[skip : skip + self._size])
            has_more = skip == 0 and len(ids) > self._size
            return shown, self._codec.write([None, *shown]) if has_more else None
        last, *first = cast("list[ObjectId]", self._values)
        others = sorted(each for each in set(ids) - set(first) if last is None or each > last)
        shown = others[: self._size]
        return shown, self._codec.write([shown[-1], *first]) if len(others) > self._size else None
