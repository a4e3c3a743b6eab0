"""What a coach does with workout blocks and the items in them."""

from __future__ import annotations

from coaching_service.kernel.errors import BadRequest, NotFound, not_found
from coaching_service.kernel.storage.context import Context, in_transaction, together
from coaching_service.kernel.storage.documents import Document
from coaching_service.kernel.storage.ids import ObjectId
from coaching_service.kernel.variants import Unjudged
from coaching_service.people.account import service as account
from coaching_service.training.workouts import items, references, store
from coaching_service.training.workouts.owners import Owner


async def calendar(ctx: Context, owner: Owner, first: object, last: object) -> list[Document]:
    """The owner's blocks from `first` to `last` (dates or days, both included), with their items, in order."""
    _, blocks = await together(ctx, owner.check(ctx), store.between(ctx, owner.where, owner.slot, first, last))
    orders: dict[object, int] = {}
    for block in blocks:
        when = block[owner.slot]
        block["order"] = orders[when] = orders.get(when, -1) + 1
    return await present(ctx, blocks)


async def read(ctx: Context, owner: Owner, block_id: ObjectId) -> Document:
    """One block. Raises NotFound."""
    _, block = await together(ctx, owner.check(ctx), store.one(ctx, owner.where, block_id))
    return await _ordered(ctx, owner, block)


async def create(ctx: Context, owner: Owner, details: Document) -> Document:
    """A new, empty block; `details`: name, `date` or `day`, isRest."""
    await owner.check(ctx)

    async def added(tx: Context) -> Document:
        stored = await store.add(tx, _fresh(owner, details))
        await owner.rescheduled(tx)
        return await _ordered(tx, owner, stored)

    return await in_transaction(ctx, added)


async def add_many(ctx: Context, owner: Owner, plans: list[Document]) -> int:
    """Put planned blocks, each with its `items` as stored or sent, onto the schedule of an owner that has been
    checked: all or none. Gives how many."""

    async def added(tx: Context) -> None:
        blocks = [_fresh(owner, plan) | {"items": [items.fresh(item) for item in plan["items"]]} for plan in plans]
        await _keep_unit(tx, [item for block in blocks for item in block["items"]])
        await store.add_many(tx, blocks)
        await owner.rescheduled(tx)

    await in_transaction(ctx, added)
    return len(plans)


async def change(ctx: Context, owner: Owner, block_id: ObjectId, details: Document) -> Document:
    """Change what is sent of a block. Raises NotFound, and Conflict when it has moved on since `version`."""
    await owner.check(ctx)
    fields = dict(details)
    version = fields.pop("version", None)
    if not fields:
        return await read(ctx, owner, block_id)

    async def moved(tx: Context) -> Document:
        if owner.slot in fields:
            fields["position"] = store.position()
        block = await store.change(tx, owner.where, block_id, fields, version)
        if owner.slot in fields:
            await owner.rescheduled(tx)
        return await _ordered(tx, owner, block)

    return await in_transaction(ctx, moved)


async def remove(ctx: Context, owner: Owner, block_id: ObjectId) -> None:
    """Delete a block with its items. Raises NotFound."""
    await owner.check(ctx)

    async def removed(tx: Context) -> None:
        if not await store.remove(tx, owner.where, block_id):
            raise _no_block()
        await owner.rescheduled(tx)

    await in_transaction(ctx, removed)


async def remove_all(ctx: Context, owner: Owner) -> None:
    """Delete every block of an owner that has been checked."""
    await store.remove_all(ctx, owner.where)


async def program_workout_days(ctx: Context, program_ids: list[ObjectId]) -> dict[ObjectId, int]:
    """On how many days each program has a block that is not rest and holds an item; programs without are left out."""
    if not program_ids:
        return {}
    return {found["_id"]: found["days"] for found in await store.program_workout_days(ctx, program_ids)}


async def add_item(ctx: Context, owner: Owner, block_id: ObjectId, details: Document) -> Document:
    """A new item at the end of a block. Raises NotFound for the block or what the item names."""
    _, (whole, named) = await together(ctx, owner.check(ctx), references.settled(ctx, details))
    item = items.fresh(whole)
    await _keep_unit(ctx, [item])
    block = await store.push_item(ctx, owner.where, block_id, item)
    if block is None:
        if await store.one(ctx, owner.where, block_id) is None:
            raise _no_block()
        raise BadRequest(f"A workout block holds at most {store.MAX_ITEMS} items")
    return items.present_one(block, items.find(block["items"], item["_id"]), named, ctx.who.company.load_unit)


async def change_item(ctx: Context, owner: Owner, block_id: ObjectId, item_id: ObjectId, change: Unjudged) -> Document:
    """Change what is sent of an item, judged by the item's own type; fields of other types are ignored.

    Raises BadRequest, NotFound, and Conflict when the block has moved on since the change's `version`.
    """
    _, before = await together(ctx, owner.check(ctx), store.one(ctx, owner.where, block_id))
    if before is None:
        raise _no_block()
    stored = before["items"][items.find(before["items"], item_id)]
    details = change.as_type(stored["type"])
    version = details.pop("version", None)
    details, _ = await references.settled(ctx, details, but=stored)
    await _keep_unit(ctx, [details])

    def mutate(block: Document) -> Document:
        at = items.find(block["items"], item_id)
        item = items.changed(block["items"][at], details)
        if item is block["items"][at]:
            return {}
        return {"items": [*block["items"][:at], item, *block["items"][at + 1 :]]}

    block = await store.rewrite(ctx, owner.where, block_id, mutate, version)
    if block is None:
        raise _no_block()
    at = items.find(block["items"], item_id)
    named = await references.named_by(ctx, block["items"][at : at + 1])
    return items.present_one(block, at, named, ctx.who.company.load_unit)


async def remove_item(ctx: Context, owner: Owner, block_id: ObjectId, item_id: ObjectId) -> None:
    """Take an item out of a block. Raises NotFound."""
    await owner.check(ctx)
    if not await store.pull_item(ctx, owner.where, block_id, item_id):
        raise _no_block() if await store.one(ctx, owner.where, block_id) is None else not_found("Workout item")


async def present(ctx: Context, blocks: list[Document]) -> list[Document]:
    """Stored blocks (each with its `order`) as they are read."""
    named = await references.named_by(ctx, [item for block in blocks for item in block["items"]])
    unit = ctx.who.company.load_unit
    for block in blocks:
        done = [item["isCompleted"] for item in block["items"]]
        block["isCompleted"] = bool(done) and all(done)
        block["items"] = items.present(block, named, unit)
    return blocks


async def _keep_unit(ctx: Context, written: list[Document]) -> None:
    """Loads are about to be stored: the company's unit of load stays from now on."""
    if any(items.has_load(item) for item in written):
        await account.keep_unit(ctx)


def _fresh(owner: Owner, details: Document) -> Document:
    """A new block without items; `details`: name, isRest, `date` or `day` (both where a program was assigned)."""
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
        "items": [],
        **owner.where,
    }


async def _ordered(ctx: Context, owner: Owner, block: Document | None) -> Document:
    """One stored block as it is read."""
    if block is None:
        raise _no_block()
    siblings = await store.same_day(ctx, owner.where, owner.slot, block[owner.slot])
    block["order"] = siblings.index(block["_id"]) if block["_id"] in siblings else len(siblings)
    return (await present(ctx, [block]))[0]


def _no_block() -> NotFound:
    return not_found("Workout block")
