"""What a coach does with many clients at once: set-based, each call one transaction."""

from __future__ import annotations

from collections.abc import AsyncIterator

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import MAX_STRINGS
from coaching_service.people.customers import erasing, service, store
from coaching_service.people.customers.search import holding_somewhere


async def find_accessible(ctx: Context, ids: list[ObjectId]) -> dict[ObjectId, bool]:
    """Which of `ids` are the company's clients, and whether this coach may touch them."""
    scoped = ctx.caller.customers_scope == "assigned"
    return {
        customer["_id"]: not scoped or customer["customerRoleData"]["assignedTo"] == ctx.caller.id
        for customer in await store.some(ctx, ids)
    }


async def list_names(ctx: Context, ids: list[ObjectId], limit: int) -> list[str]:
    """The full names of the first few of `ids` that this coach sees, in the order of the list."""
    scope = {store.TRAINER: ctx.caller.id} if ctx.caller.customers_scope == "assigned" else {}
    found = await store.named(ctx, scope | {"_id": {"$in": ids}}, limit)
    return [" ".join(filter(None, (each["name"], each["surname"]))) for each in found]


async def iterate_matching(ctx: Context, sought: Document, batch: int) -> AsyncIterator[list[ObjectId]]:
    """The identifiers of the clients a filter matches among those this coach sees, in batches.

    `sought`: archived and any of contains, groups, assignedTo (None among them: clients without a trainer).
    """
    where, _ = service.build_list_filter(ctx, sought["archived"], sought.get("groups"), sought.get("assignedTo"))
    if sought.get("contains", "").strip():
        condition = holding_somewhere(sought["contains"])
        if condition is None:
            return
        where |= condition
    last: ObjectId | None = None
    while ids := await store.ids_after(ctx, where, last, batch):
        last = ids[-1]
        yield ids


async def set_archived(ctx: Context, ids: list[ObjectId], *, archived: bool) -> None:
    """Archive or restore clients; those that are so already stay untouched."""
    await in_transaction(ctx, lambda tx: store.set_many_archived(tx, ids, archived=archived))


async def add_groups(ctx: Context, ids: list[ObjectId], groups: list[str]) -> None:
    """Put clients into groups; those that are in all of them stay untouched."""
    await store.add_groups(ctx, ids, groups)


async def find_over_group_limit(ctx: Context, ids: list[ObjectId], groups: list[str]) -> dict[ObjectId, str]:
    """Which of `ids` would be in more groups than a client can be, and what to tell of them."""
    told = f"groups must not hold more than {MAX_STRINGS} entries"
    return dict.fromkeys(await store.overfull(ctx, ids, groups, MAX_STRINGS), told)


async def remove_groups(ctx: Context, ids: list[ObjectId], groups: list[str]) -> None:
    """Take clients out of groups; those that are in none of them stay untouched."""
    await store.remove_groups(ctx, ids, groups)


async def assign_trainer(ctx: Context, ids: list[ObjectId], coach_id: ObjectId | None) -> None:
    """Assign clients to a coach who has been checked, or to nobody."""
    await store.assign_many(ctx, ids, coach_id)


async def erase(ctx: Context, ids: list[ObjectId]) -> None:
    """Remove clients at once for every reader, and queue the removal of all that is theirs."""

    async def removed(tx: Context) -> None:
        await erasing.follow(tx, await store.remove_many(tx, ids))

    await in_transaction(ctx, removed)
