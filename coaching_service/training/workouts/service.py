"""What a coach does with workout blocks and the items in them."""

from __future__ import annotations

from datetime import date, timedelta

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import gather_reads, in_transaction
from coaching_service.core.errors import BadRequest, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.people.account import service as account
from coaching_service.training.workouts import items, references, store
from coaching_service.training.workouts.events import RecordedItemsRescheduled
from coaching_service.training.workouts.owners import Owner

# What else follows when items of which something was recorded come to stand on another date, in the transaction of
# that change; features.py fills it. Each is given the client, the items' identifiers and the date.


async def calendar(ctx: Context, owner: Owner, first: object, last: object) -> list[Document]:
    """The owner's blocks from `first` to `last` (dates or days, both included), with their items, in order."""
    _, blocks = await gather_reads(ctx, owner.check(ctx), store.between(ctx, owner.where, owner.slot, first, last))
    orders: dict[object, int] = {}
    for block in blocks:
        when = block[owner.slot]
        block["order"] = orders[when] = orders.get(when, -1) + 1
    return await present(ctx, blocks)


async def read(ctx: Context, owner: Owner, block_id: ObjectId) -> Document:
    """One block. Raises NotFound."""
    _, block = await gather_reads(ctx, owner.check(ctx), store.one(ctx, owner.where, block_id))
    return await ordered(ctx, owner, block)


async def create(ctx: Context, owner: Owner, details: Document) -> Document:
    """A new, empty block; `details`: name, `date` or `day`, isRest."""
    await owner.check(ctx)
    return await add_one(ctx, owner, details | {"items": []})


async def add_one(ctx: Context, owner: Owner, plan: Document) -> Document:
    """Put a planned block, with its `items` as stored, onto the schedule of an owner that has been checked."""

    async def added(tx: Context) -> Document:
        at = await store.place(tx, owner.where, owner.slot, plan[owner.slot])
        stored = await store.add(tx, _fresh(owner, plan), at)
        await owner.rescheduled(tx)
        return await ordered(tx, owner, stored)

    return await in_transaction(ctx, added)


async def add_many(ctx: Context, owner: Owner, plans: list[Document]) -> int:
    """Put planned blocks, each with its `items` as stored or sent, onto the schedule of an owner that has been
    checked: all or none. Gives how many."""

    async def added(tx: Context) -> None:
        blocks = [_fresh(owner, plan) for plan in plans]
        await keep_unit(tx, [item for block in blocks for item in block["items"]])
        await store.add_many(tx, blocks)
        await owner.rescheduled(tx)

    await in_transaction(ctx, added)
    return len(plans)


async def stored_blocks(ctx: Context, owner: Owner) -> list[Document]:
    """Every block of an owner that has been checked, as stored, in the order they are done."""
    return await store.everything(ctx, owner.where, owner.slot)


async def is_assigned(ctx: Context, customer_id: ObjectId, program_id: ObjectId, first: str, last: str) -> bool:
    """Whether the calendar of a client who has been checked has a block of a program from `first` to `last`."""
    return await store.has_block(ctx, {"programId": program_id, "customerId": customer_id}, first, last)


async def change(ctx: Context, owner: Owner, block_id: ObjectId, details: Document) -> Document:
    """Change what is sent of a block. Raises NotFound, and Conflict when it has moved on since `version`."""
    await owner.check(ctx)
    fields = dict(details)
    version = fields.pop("version", None)
    if not fields:
        return await ordered(ctx, owner, await store.rewrite(ctx, owner.where, block_id, lambda _: {}, version))

    async def moved(tx: Context) -> Document:
        if owner.slot in fields:
            fields["position"] = await store.place(tx, owner.where, owner.slot, fields[owner.slot])
        block = await store.change(tx, owner.where, block_id, fields, version)
        if owner.slot in fields and block is not None:
            await owner.rescheduled(tx)
            await owner.done_changed(tx, block["items"])
            await redated(tx, block, block["items"])
        return await ordered(tx, owner, block)

    return await in_transaction(ctx, moved)


async def redated(ctx: Context, block: Document, moved: list[Document]) -> None:
    """Items, as stored, have come to stand on the block's date: what was recorded of them follows."""
    recorded = [item["_id"] for item in moved if items.is_recorded(item)]
    if recorded:
        await ctx.publish(RecordedItemsRescheduled(block["customerId"], recorded, block["date"]))


async def remove(ctx: Context, owner: Owner, block_id: ObjectId) -> None:
    """Delete a block with its items. Raises NotFound."""
    await owner.check(ctx)

    async def removed(tx: Context) -> None:
        block = await store.remove(tx, owner.where, block_id)
        if block is None:
            raise no_block()
        await owner.rescheduled(tx)
        await owner.done_changed(tx, block["items"])

    await in_transaction(ctx, removed)


async def remove_all(ctx: Context, owner: Owner) -> None:
    """Delete every block of an owner that has been checked."""
    await store.remove_all(ctx, owner.where)


async def program_workout_days(ctx: Context, program_ids: list[ObjectId]) -> dict[ObjectId, int]:
    """On how many days each program has a block that is not rest and holds an item; programs without are left out."""
    if not program_ids:
        return {}
    return {found["_id"]: found["days"] for found in await store.program_workout_days(ctx, program_ids)}


async def copy(ctx: Context, owner: Owner, block_id: ObjectId, when: object) -> Document:
    """The same plan on another date or day, with nothing done. Raises NotFound."""
    _, block = await gather_reads(ctx, owner.check(ctx), store.one(ctx, owner.where, block_id))
    if block is None:
        raise no_block()
    plan = {"name": block["name"], "isRest": block["isRest"], "items": block["items"], owner.slot: when}
    return await add_one(ctx, owner, plan)


async def shift(ctx: Context, owner: Owner, day: str, days: int) -> int:
    """Move every block from `day` on that has nothing done by a number of days, back or forth; gives how many.

    Raises BadRequest when a date would leave the calendar.
    """
    await owner.check(ctx)

    async def moved(tx: Context) -> int:
        found = await store.untouched_from(tx, owner.where, day)
        for block in found:
            later(block["date"], days, "days")
        count = await store.shift(tx, owner.where, [block["_id"] for block in found], days)
        await owner.rescheduled(tx)
        return count

    return await in_transaction(ctx, moved)


def later(day: str, days: int, field: str) -> str:
    """A date so many days later (or earlier). Raises BadRequest, naming `field`, when it leaves the calendar."""
    try:
        return str(date.fromisoformat(day) + timedelta(days=days))
    except OverflowError:
        raise BadRequest([f"{field} leaves the calendar: {day} moved by {days} days is no date"]) from None


async def log_block(ctx: Context, owner: Owner, block_id: ObjectId, done: Document) -> Document:
    """Store what was noted of a session: durationMinutes, sessionRpe, comment. Gives the block.

    Raises NotFound, and Conflict when the block has moved on since `version`.
    """
    await owner.check(ctx)
    fields = {name: done[name] for name in ("durationMinutes", "sessionRpe", "comment")}
    return await ordered(ctx, owner, await store.change(ctx, owner.where, block_id, fields, done.get("version")))


def is_completed(block: Document) -> bool:
    """Whether a block has items and all of them are completed."""
    return bool(block["items"]) and all(item["isCompleted"] for item in block["items"])


async def present(ctx: Context, blocks: list[Document]) -> list[Document]:
    """Stored blocks (each with its `order`) as they are read."""
    for block in blocks:
        block["isCompleted"] = is_completed(block)
    return await present_items(ctx, blocks)


async def present_items(ctx: Context, holders: list[Document]) -> list[Document]:
    """Stored blocks or templates with their items as they are read."""
    named = await references.named_by(ctx, [item for holder in holders for item in holder["items"]])
    for holder in holders:
        holder["items"] = items.present(holder, named, ctx.caller.company.load_unit)
    return holders


async def keep_unit(ctx: Context, written: list[Document]) -> None:
    """Loads are about to be stored: the company's unit of load stays from now on."""
    if any(items.has_load(item) for item in written):
        await account.lock_load_unit(ctx)


def _fresh(owner: Owner, details: Document) -> Document:
    """A new block; `details`: name, isRest, items, `date` or `day` (both where a program was assigned)."""
    return {
        "customerId": None,
        "programId": details.get("programId"),
        "name": details["name"],
        "date": details.get("date"),
        "day": details.get("day"),
        "isRest": details["isRest"],
        "durationMinutes": None,
        "sessionRpe": None,
        "comment": None,
        "items": [items.fresh(item) for item in details["items"]],
        **owner.where,
    }


async def ordered(ctx: Context, owner: Owner, block: Document | None) -> Document:
    """One stored block as it is read."""
    if block is None:
        raise no_block()
    siblings = await store.same_day(ctx, owner.where, owner.slot, block[owner.slot])
    block["order"] = siblings.index(block["_id"]) if block["_id"] in siblings else len(siblings)
    return (await present(ctx, [block]))[0]


def no_block() -> NotFound:
    """The error for a block that is not the owner's."""
    return NotFound("workout block")
