"""Notes in the database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents, Filter, PipelineStage
from coaching_service.core.database.portable import RECORDS, Portable
from coaching_service.core.database.recording import Action, EventData, History
from coaching_service.core.events import EventType
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers.models import ClientText, DatedCount
from coaching_service.progress.notes.html import sanitise
from coaching_service.progress.notes.models import Note

_EVENT_TYPES: dict[Action, EventType] = {
    "created": "note.created",
    "changed": "note.updated",
    "deleted": "note.deleted",
}


def _event(action: Action, known: Mapping[str, Any], _: Collection[str]) -> EventData:
    return {"type": _EVENT_TYPES[action], "data": {"noteId": known["_id"]}}


notes = Documents[Note](
    "notes",
    (
        Index(("customerId", "-createdAt", "-_id")),
        Index(("customerId", "createdAt"), partial_filter=(("isHealth", {"$eq": True}),)),
    ),
    client_field="customerId",
    history=History("note", _event),
    transfer=Portable(
        Note,
        RECORDS,
        references={"customerId": "customers"},
        complete=lambda note: {**note, "content": sanitise(note["content"])},
    ),
)
_HEALTH_NOTES = notes.index_name("customerId", "createdAt")


async def count_health_notes(ctx: Context, customer_ids: Sequence[ObjectId]) -> list[DatedCount]:
    """Return how many notes with the health flag there are, of clients with any. Access is not checked."""
    where: Filter = {"customerId": {"$in": list(customer_ids)}, "isHealth": True}
    group = {"_id": "$customerId", "count": {"$sum": 1}, "newest": {"$max": "$createdAt"}}
    return await notes.aggregate(ctx, where, {"$group": group}, hint=_HEALTH_NOTES)


async def find_newest_health_notes(ctx: Context, customer_ids: Sequence[ObjectId]) -> list[ClientText]:
    """Return the content of the newest note with the health flag, of clients with any. Access is not checked."""
    where: Filter = {"customerId": {"$in": list(customer_ids)}, "isHealth": True}
    order: PipelineStage = {"$sort": {"customerId": 1, "createdAt": 1}}
    group = {"_id": "$customerId", "text": {"$last": "$content"}}
    return await notes.aggregate(ctx, where, order, {"$group": group}, hint=_HEALTH_NOTES)
