"""What a coach does with the items in workout blocks."""

from __future__ import annotations

from collections.abc import Callable

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, version_conflict
from coaching_service.core.database.transactions import gather_reads, in_transaction
from coaching_service.core.errors import BadRequest, Conflict, LegacyFailure, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.variants import DeferredChange
from coaching_service.training.workouts import items, references, store
from coaching_service.training.workouts.owners import Owner
from coaching_service.training.workouts.service import add_one, keep_unit, no_block, ordered, redated


async def fresh_items(ctx: Context, sent: list[Document]) -> list[Document]:
    """New items from what a coach sent of them, to be stored elsewhere. Raises NotFound for what one names, and tells
    which one."""
    made = [await _fresh(ctx, at, details) for at, details in enumerate(sent)]
    await keep_unit(ctx, made)
    return made


async def _fresh(ctx: Context, at: int, details: Document) -> Document:
    try:
        whole, _ = await references.settled(ctx, details)
    except NotFound as missing:
        message = f"{missing.message}: entry {at}, counted from 0"
        raise NotFound(missing.details["resource"], message) from None
    return items.fresh(whole)


async def create_block_with(ctx: Context, owner: Owner, details: Document, sent: list[Document]) -> Document:
    """A new block with items as a coach sends them: all or nothing. Raises NotFound for what an item names."""
    _, made = await gather_reads(ctx, owner.check(ctx), fresh_items(ctx, sent))
    return await add_one(ctx, owner, details | {"items": made})


async def add_item(ctx: Context, owner: Owner, block_id: ObjectId, details: Document) -> Document:
    """A new item at the end of a block. Raises NotFound for the block or what the item names."""
    _, (whole, named) = await gather_reads(ctx, owner.check(ctx), references.settled(ctx, details))
    item = items.fresh(whole)
    await keep_unit(ctx, [item])
    block = await store.push_item(ctx, owner.where, block_id, item)
    if block is None:
        if await store.one(ctx, owner.where, block_id) is None:
            raise no_block()
        raise _full()
    order = items.find(block["items"], item["_id"])
    return items.present_one(item, order, block["version"], named, ctx.caller.company.load_unit)


async def change_item(
    ctx: Context, owner: Owner, block_id: ObjectId, item_id: ObjectId, change: DeferredChange
) -> Document:
    """Change what is sent of an item, judged by the item's own type; fields of other types are ignored.

    Raises BadRequest, NotFound, and Conflict when the block has moved on since the change's `version`.
    """
    _, before = await gather_reads(ctx, owner.check(ctx), store.one(ctx, owner.where, block_id))
    if before is None:
        raise no_block()
    stored = before["items"][items.find(before["items"], item_id)]
    details = change.as_type(stored["type"])
    version = details.pop("version", None)
    details, _ = await references.settled(ctx, details, but=stored)
    await keep_unit(ctx, [details])

    was: list[Document] = []

    def mutate(block: Document) -> Document:
        at = items.find(block["items"], item_id)
        was[:] = [block["items"][at]]
        item = items.changed(block["items"][at], details)
        if item is block["items"][at]:
            return {}
        return {"items": [*block["items"][:at], item, *block["items"][at + 1 :]]}

    async def changed(tx: Context) -> Document:
        block = await store.rewrite(tx, owner.where, block_id, mutate, version)
        if block is None:
            raise no_block()
        await owner.done_changed(tx, [*was, block["items"][items.find(block["items"], item_id)]])
        return await present_item(tx, block, item_id)

    return await in_transaction(ctx, changed)


async def remove_item(ctx: Context, owner: Owner, block_id: ObjectId, item_id: ObjectId) -> None:
    """Take an item out of a block. Raises NotFound."""
    await owner.check(ctx)

    async def removed(tx: Context) -> None:
        block = await store.one(tx, owner.where, block_id)
        if block is None:
            raise no_block()
        item = block["items"][items.find(block["items"], item_id)]
        await store.rewrite(tx, owner.where, block_id, lambda held: {"items": _without(held, item)}, None)
        await owner.done_changed(tx, [item])

    await in_transaction(ctx, removed)


async def move_item(
    ctx: Context, owner: Owner, source: Document | None, target: Document | None, version: int | None = None
) -> Document:
    """Move an item to a place in the same block or another of the owner's; gives the target block.

    `source`: wblockId, witemId; `target`: wblockId, index from 0 (past the end is the end). Never lost, never twice:
    raises LegacyFailure when either is missing, NotFound when a block or the item was never known, Conflict when the
    item is no longer in `source` or the target block has moved on since `version`, BadRequest when the target is full.
    """
    await owner.check(ctx)
    if source is None or target is None:
        raise LegacyFailure("WITEM_MOVE_INCOMPLETE", "A move needs a source and a target")
    item_id = source["witemId"]

    async def moved(tx: Context) -> Document:
        block = await store.one(tx, owner.where, source["wblockId"])
        if block is None:
            raise no_block()
        item = next((each for each in block["items"] if each["_id"] == item_id), None)
        if item is None:
            if await store.holds_item(tx, owner.where, item_id):
                raise Conflict("The item is no longer in the source block; read the calendar again")
            raise NotFound("workout item")
        reached = await _put(tx, owner, block, item, target, version)
        await owner.done_changed(tx, [item])
        if reached is not None and reached["date"] != block["date"]:
            await redated(tx, reached, [item])
        return await ordered(tx, owner, reached)

    return await in_transaction(ctx, moved)


async def _put(
    ctx: Context, owner: Owner, block: Document, item: Document, target: Document, version: int | None
) -> Document | None:
    """Put an item of a block to its target; gives the target block, or None when it is not there."""
    at = target["index"]

    def insert_item(held: Document) -> Document:
        others = _without(held, item)
        if len(others) >= items.MAX_ITEMS:
            raise _full()
        return {"items": [*others[:at], item, *others[at:]]}

    if target["wblockId"] != block["_id"]:
        await store.rewrite(ctx, owner.where, block["_id"], lambda held: {"items": _without(held, item)}, None)
    return await store.rewrite(ctx, owner.where, target["wblockId"], insert_item, version)


def _without(block: Document, item: Document) -> list[Document]:
    return [each for each in block["items"] if each["_id"] != item["_id"]]


def _full() -> BadRequest:
    return BadRequest([f"items must not hold more than {items.MAX_ITEMS} entries: the workout block is full"])


async def log_item(
    ctx: Context, owner: Owner, block_id: ObjectId, item_id: ObjectId, read_log: Callable[[Document], Document]
) -> tuple[Document, Document]:
    """Store what was done of an item, in the caller's transaction; gives the block and the item as stored.

    `read_log` receives the stored item and gives what was done (as items.logged takes it, beside it the `version` it is
    based on), or raises. Raises NotFound, and Conflict when the block has moved on since that version.
    """

    before: list[Document] = []

    def mutate(block: Document) -> Document:
        at = items.find(block["items"], item_id)
        before[:] = [block["items"][at]]
        done = read_log(block["items"][at])
        if done.get("version", block["version"]) != block["version"]:
            raise version_conflict()
        item = items.logged(block["items"][at], done)
        return {"items": [*block["items"][:at], item, *block["items"][at + 1 :]]}

    block = await store.rewrite(ctx, owner.where, block_id, mutate, None)
    if block is None:
        raise no_block()
    item = block["items"][items.find(block["items"], item_id)]
    await keep_unit(ctx, [item])
    await owner.done_changed(ctx, [*before, item])
    return block, item


async def present_item(ctx: Context, block: Document, item_id: ObjectId) -> Document:
    """One item of a stored block as it is read."""
    at = items.find(block["items"], item_id)
    item = block["items"][at]
    named = await references.named_by(ctx, [item])
    return items.present_one(item, at, block["version"], named, ctx.caller.company.load_unit)
