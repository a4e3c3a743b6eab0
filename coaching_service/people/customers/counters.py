"""The number of clients of each company, and of each of its groups, updated in the transaction that changes it.

Each is spread over a few documents, so that concurrent transactions rarely write to the same one.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Sequence
from typing import Any

from coaching_service.core.database.connection import allow_seconds
from coaching_service.core.database.context import Context, Services, in_transaction
from coaching_service.core.database.declared import Index, NotExported
from coaching_service.core.database.documents import Document, Documents
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import _group_totals
from coaching_service.people.customers.models import Customer, CustomerCount, CustomerRoleData, NewCustomerDocument

SLOTS = 8
_COUNTING_SECONDS = 55.0  # MongoDB aborts a transaction after 60

_counts = Documents[CustomerCount](
    "customerTotals",
    (Index(("slot",), unique=True),),
    cross_company_reason="numbers of all companies are listed and checked",
    transfer=NotExported("counted again as clients are imported"),
)


async def count(ctx: Context, customers: Sequence[Customer | NewCustomerDocument], sign: int) -> None:
    """Count clients who have been created (`sign` 1) or deleted (-1), in the caller's transaction."""
    clients = [customer["customerRoleData"] for customer in customers]
    if sign > 0:
        await count_changed(ctx, (), clients)
    else:
        await count_changed(ctx, clients, ())


async def count_changed(ctx: Context, before: Sequence[CustomerRoleData], after: Sequence[CustomerRoleData]) -> None:
    """Count clients who were archived or restored, or have joined or left groups, in the caller's transaction.

    All numbers of one call are in documents of the same slot: clients of many groups collide no more than others.
    """
    slot = secrets.randbelow(SLOTS)
    archived = _count_archived(after) - _count_archived(before)
    active = len(after) - len(before) - archived
    if active or archived:
        await _counts.increment_each(ctx, [({"slot": slot}, {"active": active, "archived": archived})])
    members = _group_totals.count_members(after)
    members.subtract(_group_totals.count_members(before))
    await _group_totals.add(ctx, slot, members)


def _count_archived(clients: Sequence[CustomerRoleData]) -> int:
    return sum(each["isArchived"] for each in clients)


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


def add_total(ctx: Context, *, archived: bool) -> Document:
    """Return the stage that adds the company's number of archived or of active clients to a list of clients.

    It is a document without an identifier, and with `total`; there is none if the company has never had a client.
    """
    number = {"$sum": "$archived" if archived else "$active"}
    stages = [{"$match": _counts.read_filter(ctx, {})}, {"$group": {"_id": None, "total": number}}]
    return {"$unionWith": {"coll": _counts.name, "pipeline": stages}}


# --- Checks ----------------------------------------------------------------------------------------------------------


_SUMS: Document = {"active": {"$sum": "$active"}, "archived": {"$sum": "$archived"}}
_IS_ARCHIVED = "$customerRoleData.isArchived"
_CLIENTS: Document = {
    "active": {"$sum": {"$cond": [_IS_ARCHIVED, 0, -1]}},
    "archived": {"$sum": {"$cond": [_IS_ARCHIVED, -1, 0]}},
}


async def list_suspects(services: Services) -> list[ObjectId]:
    """Return the companies where the stored numbers of clients are wrong.

    The numbers and the clients are not read at the same moment.
    """
    stages: list[Document] = [
        {"$group": {"_id": "$companyId", **_SUMS}},
        {"$unionWith": {"coll": "customers", "pipeline": [{"$group": {"_id": "$companyId", **_CLIENTS}}]}},
        {"$group": {"_id": "$_id", **_SUMS}},
        {"$match": {"$or": [{"active": {"$ne": 0}}, {"archived": {"$ne": 0}}]}},
    ]
    cursor = _counts.across_companies(services).aggregate(stages, allowDiskUse=True)
    return [each["_id"] async for each in cursor]


async def find_differences(services: Services, company_id: ObjectId, session: Any) -> Counter[str]:
    """Return how much the stored numbers of a company are too high, at the moment that the session reads."""
    differences: Counter[str] = Counter()
    for name, sums in ((_counts.name, _SUMS), ("customers", _CLIENTS)):
        stages: list[Document] = [{"$match": {"companyId": company_id}}, {"$group": {"_id": None, **sums}}]
        async for numbers in services.collection(name).aggregate(stages, session=session):
            differences.update(active=numbers["active"], archived=numbers["archived"])
    return Counter({name: number for name, number in differences.items() if number})


async def correct_groups(services: Services, company_id: ObjectId) -> None:
    """Correct the stored numbers of clients in the groups of a company."""
    slot = secrets.randbelow(SLOTS)
    with allow_seconds(_COUNTING_SECONDS):
        await in_transaction(Context(services), lambda tx: _group_totals.correct(tx, company_id, slot))


async def correct(services: Services, company_id: ObjectId) -> None:
    """Correct the stored numbers of a company.

    The difference is added in the transaction that measures it, so that it does not matter what others count meanwhile.
    """

    async def add_difference(tx: Context) -> None:
        differences = await find_differences(services, company_id, tx.session)
        if counts := {name: -number for name, number in differences.items()}:
            where = {"companyId": company_id, "slot": secrets.randbelow(SLOTS)}
            stored = _counts.across_companies(services)
            await stored.update_one(where, {"$inc": counts}, upsert=True, session=tx.session)

    await in_transaction(Context(services), add_difference)
