"""The reasons why clients need attention when they are archived or restored, in the database."""

from __future__ import annotations

from collections.abc import Sequence

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import attention_events
from coaching_service.people.customers.locks_store import mark_figures_due
from coaching_service.people.customers.store import BY_ID, REASONS, SCORE, customers


async def follow_archiving(ctx: Context, ids: Sequence[ObjectId], *, archived: bool) -> None:
    """Clear the reasons of clients who are archived, or restored: the figures of these are due.

    What is being computed of them at the moment is not stored.
    """
    if archived:
        for client in await customers.find(ctx, {"_id": {"$in": list(ids)}}, fields=(REASONS,), hint=BY_ID):
            if "attention" in client:
                attention_events.report(ctx, client["_id"], client["attention"]["reasons"], [])
    await customers.set_derived(ctx, {"_id": {"$in": list(ids)}, SCORE: {"$gte": 0}}, {"$set": {SCORE: 0, REASONS: []}})
    await mark_figures_due(ctx, ids)
