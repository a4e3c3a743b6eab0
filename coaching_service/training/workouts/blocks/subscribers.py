"""The consequences of writes of workouts, by whatever operation, and of an undo that restores them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from coaching_service.core.changes.log import DocumentsWritten
from coaching_service.core.changes.undo import DocumentsRestored, RestoredDocument
from coaching_service.core.database.context import Context
from coaching_service.core.database.recording import DocumentChange
from coaching_service.core.ids import ObjectId
from coaching_service.people.activity import service as activity
from coaching_service.people.activity.models import ActivityType
from coaching_service.training.workouts import store
from coaching_service.training.workouts.blocks import service
from coaching_service.training.workouts.blocks.models import StoredBlock
from coaching_service.training.workouts.blocks.service import ClientCalendar, is_completed
from coaching_service.training.workouts.items.models import WorkItem
from coaching_service.training.workouts.items.totals import summarize_block

# The entries of the feed about a workout, or an item of one.
_ENTRIES: tuple[ActivityType, ...] = ("workout_completed", "item_logged", "form_submitted", "metric_recorded")


async def record_written_workouts(ctx: Context, event: DocumentsWritten) -> None:
    """Record that workouts of clients are completed, or take it back, and the log of items that are gone.

    An answered check-in is no completed workout. A new block with a log was imported with its entries in the feed; an
    undo restores the entries that its change had taken back. Entries about what was moved or renamed follow it.
    """
    items = [(each, *_items_of(each)) for each in event.documents if each.collection == store.blocks.name]
    present = {item["_id"] for _, _, after in items for item in after}
    for document, before, after in items:
        if (customer_id := document.client_id) is None:
            continue
        for item in before:
            if item["isCompleted"] and item["_id"] not in present:
                await activity.delete_events(ctx, customer_id, item["_id"], "item_logged")
        is_check_in = isinstance(document.known["checkInId"], ObjectId)
        if is_check_in or is_completed(before) == is_completed(after):
            continue
        if not is_completed(after):
            await activity.delete_events(ctx, customer_id, document.id, "workout_completed")
        elif document.action == "changed" or ctx.changes.undoes:
            record = activity.record_restored_event if ctx.changes.undoes else activity.record_event
            about = {"wblockId": document.id, "blockName": document.known["name"], "day": document.known["date"]}
            await record(ctx, "workout_completed", customer_id, document.id, **about)
    of_clients = [(each, before, after) for each, before, after in items if each.client_id is not None]
    await _correct_entries(ctx, of_clients)


async def _correct_entries(
    ctx: Context, written: Sequence[tuple[DocumentChange, list[WorkItem], list[WorkItem]]]
) -> None:
    """Correct the entries about workouts that have another day or name, and about items that have another workout."""
    left = {item["_id"] for _, before, _ in written for item in before}
    done: dict[ObjectId, set[ObjectId]] = {}
    for document, before, after in written:
        known = {item["_id"] for item in before}
        done[document.id] = {item["_id"] for item in after if item["isCompleted"] and item["_id"] in left - known}
    renamed = [each.id for each, _, _ in written if each.action == "changed" and each.values.keys() & {"date", "name"}]
    if renamed:
        has_done = {"_id": {"$in": renamed}, "items.isCompleted": True}
        for block in await store.blocks.find(ctx, has_done, fields=("items._id", "items.isCompleted")):
            done[block["_id"]] |= {block["_id"], *(each["_id"] for each in block["items"] if each["isCompleted"])}
    for document, _, _ in written:
        if done[document.id] and document.client_id is not None:
            about = {"wblockId": document.id, "blockName": document.known["name"], "day": document.known["date"]}
            await activity.correct_events(ctx, _ENTRIES, document.client_id, done[document.id], **about)


def _items_of(document: DocumentChange) -> tuple[list[WorkItem], list[WorkItem]]:
    """Return the items of a block before and after a transaction: neither if they were not written."""
    if document.action != "changed":
        return (document.before or {}).get("items", []), (document.after or {}).get("items", [])
    before, after = document.values.get("items", ([], []))
    added = document.added.get("items")
    if added is not None:
        before = document.known["items"]
        after = [*before, *added[1]]
    return before, after


async def update_restored_workouts(ctx: Context, event: DocumentsRestored) -> None:
    """Update what depends on restored workouts, as the operations that change workouts do."""
    restored = event.of_kind("workout")
    for document in restored:
        if document.after is not None:
            block = cast("StoredBlock", document.after)
            done = {"$set": {"done": summarize_block(block["items"])}}  # it is derived from the items
            await store.blocks.set_derived(ctx, {"_id": block["_id"]}, done)
    for customer_id in dict.fromkeys(_customer_of(document) for document in restored):
        if customer_id is not None:
            of_client = [document for document in restored if _customer_of(document) == customer_id]
            await _update_client(ctx, ClientCalendar(customer_id), of_client)


async def _update_client(ctx: Context, calendar: ClientCalendar, restored: Sequence[RestoredDocument]) -> None:
    await calendar.after_schedule_change(ctx)
    items: list[WorkItem] = []
    for document in restored:
        before, after = cast("StoredBlock | None", document.before), cast("StoredBlock | None", document.after)
        items += [item for block in (before, after) if block is not None for item in block["items"]]
        if before is not None and after is not None and before["date"] != after["date"]:
            await service.publish_rescheduled_items(ctx, after, after["items"])
    await calendar.after_completed_work_change(ctx, items)


def _customer_of(document: RestoredDocument) -> ObjectId | None:
    block = cast("StoredBlock", document.after or document.before)
    return block["customerId"]
