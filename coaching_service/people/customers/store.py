"""Clients in the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from coaching_service.kernel.storage.context import Context, together
from coaching_service.kernel.storage.documents import Document, Documents, Where
from coaching_service.kernel.storage.ids import ObjectId
from coaching_service.kernel.storage.mongo import Index
from coaching_service.people.customers import totals
from coaching_service.people.customers.search import found_page

ARCHIVED = "customerRoleData.isArchived"
GROUPS = "customerRoleData.groups"
TRAINER = "customerRoleData.assignedTo"
ORDER = ("sortName", "sortSurname", "_id")

_page = Index((ARCHIVED, *ORDER))
_suffix = Index((ARCHIVED, "suf"))
_group = Index((ARCHIVED, GROUPS, *ORDER))
_trainer = Index((ARCHIVED, TRAINER, *ORDER))

customers = Documents(
    "customers",
    (_page, _suffix, _group, _trainer, Index((GROUPS,)), Index(("_id",))),
    private=("sortName", "sortSurname", "search", "suf", "firstAccessHash"),
    client_field="_id",
)
# The collection has prefixed its indexes with the company: these are their names.
BY_ORDER, BY_SUFFIX, BY_GROUP, BY_TRAINER = (index.name for index in customers.indexes[:4])


async def page(
    ctx: Context, where: Where, *, contains: str, skip: int, limit: int, whole: bool
) -> tuple[list[Document], int]:
    """One page of clients in the list's order, and how many there are. `whole`: `where` names only archived or not."""
    if contains:
        return await found_page(
            ctx, customers, where, contains, order=ORDER, by_suffix=BY_SUFFIX, by_order=BY_ORDER, skip=skip, limit=limit
        )
    hint = BY_GROUP if GROUPS in where else BY_TRAINER if TRAINER in where else BY_ORDER
    total = totals.of(ctx, archived=where[ARCHIVED]) if whole else customers.count(ctx, where, hint=hint)
    docs, counted = await together(
        ctx, customers.find(ctx, where, sort=ORDER, skip=skip, limit=limit, hint=hint), total
    )
    return docs, counted


async def add(ctx: Context, customer: Document) -> Document:
    """Store a new client, counted."""
    stored = await customers.insert(ctx, customer)
    await totals.add(ctx, archived=customer["customerRoleData"]["isArchived"], count=1)
    return stored


async def add_many(ctx: Context, new: Sequence[Document]) -> None:
    """Store new clients, counted, in the caller's transaction."""
    await customers.insert_many(ctx, new)
    archived = sum(customer["customerRoleData"]["isArchived"] for customer in new)
    await totals.add(ctx, archived=True, count=archived)
    await totals.add(ctx, archived=False, count=len(new) - archived)


async def one(ctx: Context, customer_id: ObjectId, fields: tuple[str, ...] | None = None) -> Document | None:
    """The client, or None."""
    return await customers.find_one(ctx, {"_id": customer_id}, fields)


async def rewrite(
    ctx: Context, customer_id: ObjectId, mutate: Callable[[Document], Document], version: int | None
) -> Document | None:
    """Change a client by a function of what is stored; None when there is no such client."""
    return await customers.rewrite(ctx, {"_id": customer_id}, mutate, version=version)


async def set_archived(ctx: Context, customer_id: ObjectId, *, archived: bool) -> Document | None:
    """Archive or restore a client and count it; None when it already is so (or does not exist)."""
    changed = await customers.update(ctx, {"_id": customer_id, ARCHIVED: not archived}, {"$set": {ARCHIVED: archived}})
    if changed is not None:
        await totals.add(ctx, archived=not archived, count=-1)
        await totals.add(ctx, archived=archived, count=1)
    return changed


async def remove(ctx: Context, customer_id: ObjectId) -> bool:
    """Remove a client, counted; whether there was one."""
    removed = await customers.delete(ctx, {"_id": customer_id})
    if removed is None:
        return False
    await totals.add(ctx, archived=removed["customerRoleData"]["isArchived"], count=-1)
    return True


async def group_counts(ctx: Context, where: Where) -> list[Document]:
    """The groups in use among the clients of `where`, each with how many of them are in it, by name."""
    stages: list[dict[str, Any]] = [
        {"$project": {"group": f"${GROUPS}", "_id": 0}},
        {"$unwind": "$group"},
        {"$group": {"_id": "$group", "count": {"$sum": 1}}},
        {"$sort": {"_id": 1}},
        {"$project": {"_id": 0, "name": "$_id", "count": 1}},
    ]
    return await customers.aggregate(ctx, where, *stages)


async def set_last_workout(ctx: Context, customer_id: ObjectId, day: str | None) -> None:
    """Remember the last day anything is scheduled on: a derived field."""
    await customers.set_derived(ctx, {"_id": customer_id}, {"$set": {"customerRoleData.lastWorkoutDate": day}})
