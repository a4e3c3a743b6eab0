"""The number of clients of each company, updated in the transaction that changes it.

It is spread over a few documents, so that concurrent transactions rarely write to the same one.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import NotExported
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers.models import Customer, CustomerCount, NewCustomerDocument

_SLOTS = 8

_counts = Documents[CustomerCount](
    "customerTotals",
    (Index(("slot",), unique=True),),
    cross_company_reason="the operator lists companies with the number of their clients",
    transfer=NotExported("counted again as clients are imported"),
)


async def add(ctx: Context, *, active: int = 0, archived: int = 0) -> None:
    """Add to the numbers of active and archived clients, in the caller's transaction; negative numbers subtract."""
    if active or archived:
        await _counts.increment(ctx, {"slot": secrets.randbelow(_SLOTS)}, {"active": active, "archived": archived})


async def count(ctx: Context, customers: Sequence[Customer | NewCustomerDocument], sign: int) -> None:
    """Count clients who have been created (`sign` 1) or deleted (-1)."""
    archived = sum(customer["customerRoleData"]["isArchived"] for customer in customers)
    await add(ctx, active=sign * (len(customers) - archived), archived=sign * archived)


async def count_archived(ctx: Context, change: int) -> None:
    """Count clients who have been archived; negative: restored from the archive."""
    await add(ctx, active=-change, archived=change)


async def read_of_companies(services: Services, company_ids: Sequence[ObjectId]) -> dict[ObjectId, tuple[int, int]]:
    """Return the numbers of active and of archived clients of each company that has had any."""
    cursor = _counts.across_companies(services).aggregate(
        [
            {"$match": {"companyId": {"$in": list(company_ids)}}},
            {"$group": {"_id": "$companyId", "active": {"$sum": "$active"}, "archived": {"$sum": "$archived"}}},
        ]
    )
    return {each["_id"]: (each["active"], each["archived"]) async for each in cursor}


async def read(ctx: Context, *, archived: bool) -> int:
    """Return the company's number of archived or of active clients."""
    counts = await _counts.find(ctx, {}, fields=("active", "archived"))
    return sum(count.get("archived", 0) if archived else count.get("active", 0) for count in counts)
