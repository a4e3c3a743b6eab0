"""Changes to many clients at once: a few statements for all of them, each call one transaction."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import transactional
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import MAX_STRINGS
from coaching_service.people.customers import bulk_store, listing, service
from coaching_service.people.customers._search import substring_filter
from coaching_service.people.customers.events import CustomersDeleted, GroupsChange, GroupsChanged
from coaching_service.people.customers.models import Customer, CustomerFilter


async def find_accessible(ctx: Context, ids: list[ObjectId]) -> dict[ObjectId, bool]:
    """Return the company's clients among `ids`, each with whether it is in the coach's scope.

    An address that is narrowed to one client has no other.
    """
    only = ctx.caller.only_customer_id
    customers = await bulk_store.find_by_ids(ctx, [each for each in ids if only in (None, each)])
    return {customer["_id"]: service.is_in_scope(ctx, customer) for customer in customers}


async def list_names(ctx: Context, ids: list[ObjectId], limit: int) -> list[str]:
    """Return the full names of at most `limit` of `ids` in the coach's scope, in list order."""
    scope = service.limit_to_scope(ctx)
    customers = await bulk_store.find_names(ctx, scope | {"_id": {"$in": ids}}, limit)
    return [service.full_name(customer) for customer in customers]


async def load_names(ctx: Context, ids: list[ObjectId]) -> dict[ObjectId, str]:
    """Return the full names of the clients `ids` in the coach's scope."""
    scope = service.limit_to_scope(ctx)
    customers = await bulk_store.find_names(ctx, scope | {"_id": {"$in": ids}}, len(ids))
    return {customer["_id"]: service.full_name(customer) for customer in customers}


async def load_active(ctx: Context, ids: list[ObjectId]) -> dict[ObjectId, Customer]:
    """Return name, surname and time zone of the clients `ids` in the coach's scope who are not archived, by name."""
    customers = await bulk_store.find_identities(ctx, service.limit_to_scope(ctx) | {"_id": {"$in": ids}})
    return {each["_id"]: each for each in customers if not each["customerRoleData"]["isArchived"]}


async def load_identities(ctx: Context, ids: list[ObjectId]) -> dict[ObjectId, Customer]:
    """Return name, surname, time zone, groups and archived or not of the clients `ids`, whatever the coach's scope."""
    return {each["_id"]: each for each in await bulk_store.find_identities(ctx, {"_id": {"$in": ids}})}


async def get_timezone(ctx: Context, customer_id: ObjectId) -> str:
    """Return the time zone of a client, or the company's. Access is not checked."""
    found = await load_identities(ctx, [customer_id])
    return (found[customer_id]["timezone"] if customer_id in found else None) or ctx.caller.company.timezone


async def iterate_matching(ctx: Context, selection: CustomerFilter, batch_size: int) -> AsyncIterator[list[ObjectId]]:
    """Yield the identifiers of the clients in the coach's scope that match a filter, in batches."""
    where, _ = listing.build_list_filter(
        ctx, selection["archived"], selection.get("groups"), selection.get("assignedTo")
    )
    if term := selection.get("contains", "").strip():
        condition = substring_filter(term)
        if condition is None:
            return
        where |= condition
    last: ObjectId | None = None
    while ids := await bulk_store.find_ids_after(ctx, where, last, batch_size):
        last = ids[-1]
        yield ids


@transactional
async def set_archived(ctx: Context, ids: list[ObjectId], *, archived: bool) -> None:
    """Archive or restore clients; those already archived or active are not changed."""
    await bulk_store.set_many_archived(ctx, ids, archived=archived)


@transactional
async def add_groups(ctx: Context, ids: list[ObjectId], groups: list[str]) -> None:
    """Add clients to groups; those already in all of them are not changed."""
    before = await bulk_store.add_groups(ctx, ids, groups)
    await _publish_groups(ctx, before, lambda known: {*known, *groups})


async def find_over_group_limit(ctx: Context, ids: list[ObjectId], groups: list[str]) -> dict[ObjectId, str]:
    """Return the clients among `ids` who would be in more groups than allowed, each with the message of the failure."""
    message = f"groups must not hold more than {MAX_STRINGS} entries"
    return dict.fromkeys(await bulk_store.find_over_group_limit(ctx, ids, groups, MAX_STRINGS), message)


@transactional
async def remove_groups(ctx: Context, ids: list[ObjectId], groups: list[str]) -> None:
    """Remove clients from groups; clients in none of them are not changed."""
    before = await bulk_store.remove_groups(ctx, ids, groups)
    await _publish_groups(ctx, before, lambda known: known.difference(groups))


async def _publish_groups(ctx: Context, before: Sequence[Customer], change: Callable[[set[str]], set[str]]) -> None:
    groups = {client["_id"]: set(client["customerRoleData"]["groups"]) for client in before}
    if groups:
        await ctx.publish(
            GroupsChanged([GroupsChange.between(each, known, change(known)) for each, known in groups.items()])
        )


assign_trainer = bulk_store.set_trainer


@transactional
async def erase(ctx: Context, ids: list[ObjectId]) -> int:
    """Delete clients, queue the erasure of the rest of their data, and return how many were deleted."""
    deleted = await bulk_store.delete_many(ctx, ids)
    await ctx.publish(CustomersDeleted(deleted))
    return len(deleted)
