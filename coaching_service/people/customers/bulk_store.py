"""Changes to many clients at once, in the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Filter
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import attention_store, counters
from coaching_service.people.customers.models import Customer, CustomerNames, CustomerRoleData
from coaching_service.people.customers.store import ARCHIVED, BY_ID, GROUPS, ORDER, TRAINER, customers

_COUNTED = (ARCHIVED, GROUPS)


async def find_by_ids(ctx: Context, ids: Sequence[ObjectId]) -> list[Customer]:
    """Return `_id` and trainer of the company's clients among `ids`."""
    return await customers.find(ctx, {"_id": {"$in": list(ids)}}, fields=(TRAINER,))


async def find_names(ctx: Context, where: Filter, limit: int) -> list[CustomerNames]:
    """Return name and surname of at most `limit` clients of `where`, a filter by `_id`, in list order."""
    return await customers.find(ctx, where, sort=ORDER, limit=limit, fields=("name", "surname"), hint=BY_ID)


async def find_identities(ctx: Context, where: Filter) -> list[Customer]:
    """Return name, surname, time zone, groups and whether archived of the clients of `where`, by `_id`, in order."""
    fields = ("name", "surname", "timezone", GROUPS, ARCHIVED)
    return await customers.find(ctx, where, sort=ORDER, fields=fields, hint=BY_ID)


async def find_ids_after(ctx: Context, where: Filter, last: ObjectId | None, limit: int) -> list[ObjectId]:
    """Return the next identifiers after `last` of the clients of `where`, ascending."""
    remaining = where | ({"_id": {"$gt": last}} if last is not None else {})
    page = await customers.find(ctx, remaining, sort=("_id",), limit=limit, fields=("_id",), hint=BY_ID)
    return [customer["_id"] for customer in page]


async def set_many_archived(ctx: Context, ids: Sequence[ObjectId], *, archived: bool) -> None:
    """Archive or restore the clients in `ids` that are not so already, and count them."""
    where = {"_id": {"$in": list(ids)}, ARCHIVED: not archived}
    change = {"$set": {ARCHIVED: archived}}
    changed = await _change_counted(ctx, where, change, lambda data: {**data, "isArchived": archived})
    await attention_store.follow_archiving(ctx, [client["_id"] for client in changed], archived=archived)


async def add_groups(ctx: Context, ids: Sequence[ObjectId], groups: list[str]) -> list[Customer]:
    """Add groups to the clients in `ids` that lack one of them; returns these clients as they were before."""
    where = {"_id": {"$in": list(ids)}, GROUPS: {"$not": {"$all": groups}}}
    change = {"$addToSet": {GROUPS: {"$each": groups}}}
    return await _change_counted(ctx, where, change, lambda data: {**data, "groups": [*data["groups"], *groups]})


async def find_over_group_limit(
    ctx: Context, ids: Sequence[ObjectId], groups: list[str], maximum: int
) -> list[ObjectId]:
    """Return the clients among `ids` who would be in more than `maximum` groups with `groups` added."""
    size = {"$size": {"$setUnion": [f"${GROUPS}", {"$literal": groups}]}}
    where = {"_id": {"$in": list(ids)}, "$expr": {"$gt": [size, maximum]}}
    return [customer["_id"] for customer in await customers.find(ctx, where, fields=("_id",))]


async def remove_groups(ctx: Context, ids: Sequence[ObjectId], groups: list[str]) -> list[Customer]:
    """Remove groups from the clients in `ids` that are in any of them; returns these clients as they were before."""
    where = {"_id": {"$in": list(ids)}, GROUPS: {"$in": groups}}

    def leave(data: CustomerRoleData) -> CustomerRoleData:
        return {**data, "groups": [group for group in data["groups"] if group not in groups]}

    return await _change_counted(ctx, where, {"$pullAll": {GROUPS: groups}}, leave)


async def _change_counted(
    ctx: Context, where: Filter, change: Document, changed: Callable[[CustomerRoleData], CustomerRoleData]
) -> list[Customer]:
    """Change clients and count them, in the caller's transaction; `changed` does the same to what is counted.

    Returns what is counted of the clients as they were before.
    """
    matching = await customers.find(ctx, where, fields=_COUNTED, hint=BY_ID)
    ids = [client["_id"] for client in matching]
    if ids:
        await customers.update_many(ctx, {"_id": {"$in": ids}}, change)
        before = [client["customerRoleData"] for client in matching]
        await counters.count_changed(ctx, before, [changed(each) for each in before])
    return matching


async def set_trainer(ctx: Context, ids: Sequence[ObjectId], coach_id: ObjectId | None) -> None:
    """Assign the clients in `ids` with another trainer to a coach; None: leave them without a trainer."""
    where = {"_id": {"$in": list(ids)}, TRAINER: {"$ne": coach_id}}
    await customers.update_many(ctx, where, {"$set": {TRAINER: coach_id}})


async def delete_many(ctx: Context, ids: Sequence[ObjectId]) -> list[ObjectId]:
    """Delete clients and return how many existed."""
    existing = await customers.find(ctx, {"_id": {"$in": list(ids)}}, fields=_COUNTED)
    existing_ids = [customer["_id"] for customer in existing]
    await customers.delete_many(ctx, {"_id": {"$in": existing_ids}})
    await counters.count(ctx, existing, -1)
    return existing_ids
