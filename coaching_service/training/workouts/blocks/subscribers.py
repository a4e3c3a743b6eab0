"""The consequences of an undo that restores workouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from coaching_service.core.changes.undo import DocumentsRestored, RestoredDocument
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts import store
from coaching_service.training.workouts.blocks import service
from coaching_service.training.workouts.blocks.models import StoredBlock
from coaching_service.training.workouts.blocks.owners import ClientCalendar
from coaching_service.training.workouts.items.models import WorkItem
from coaching_service.training.workouts.items.totals import summarize_block


async def follow_restored_workouts(ctx: Context, event: DocumentsRestored) -> None:
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
            await _follow_client(ctx, ClientCalendar(customer_id), of_client)


async def _follow_client(ctx: Context, calendar: ClientCalendar, restored: Sequence[RestoredDocument]) -> None:
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
