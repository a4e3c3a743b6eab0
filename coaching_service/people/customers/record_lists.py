"""Lists of what is stored of one client, in pages or by cursor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.database.documents import D, Documents
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import ALL_ENTRIES, ListPart, Page, PartOfList
from coaching_service.people.customers import service as customers

T = TypeVar("T")


async def list_records(
    ctx: Context,
    customer_id: ObjectId,
    records: Documents[D],
    list_name: str,
    order: Sequence[str],
    present: Callable[[D], T],
    part: PartOfList,
) -> Page[T]:
    """Return part of the records of a client in a collection, each as `present` returns it.

    Cursors are bound to `list_name`. Raises NotFound if the company has no such client, Forbidden if the client is
    outside the caller's scope.
    """
    selection = part.get("selection", ALL_ENTRIES)
    filters = {"customerId": customer_id, **selection.for_cursor()}
    list_part = ListPart(ctx, list_name, filters, order, page=part["page"], size=part["size"], after=part.get("after"))
    _, (stored, total) = await gather_reads(
        ctx,
        customers.get_visible(ctx, customer_id),
        list_part.read(ctx, records, {"customerId": customer_id, **selection.filter()}),
    )
    return list_part.present(stored, total, present)
