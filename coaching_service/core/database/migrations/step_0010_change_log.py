"""The entries of the activity feed are part of the change log; they were documents of the collection `activity`."""

from __future__ import annotations

from typing import Any

from pymongo import UpdateOne

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.context import Database

_BATCH = 1_000
_EVENT_TYPES = {
    "workout_completed": "workout.completed",
    "item_logged": "item.logged",
    "form_submitted": "form.submitted",
    "metric_recorded": "metric.recorded",
    "photo_added": "photo.added",
    "plan_uploaded": "plan.uploaded",
    "personal_record": "record.achieved",
    "note_added": "note.created",
    "program_assigned": "program.assigned",
}
_INTERFACES = {"coach": "session", "key": "apiKey", "assistant": "assistant", "client": "client"}


async def apply(db: Database, vault: Vault) -> None:
    """Store each entry as a change without documents and events, and remove the old collection."""
    del vault
    last: Any = None
    while True:
        where = {} if last is None else {"_id": {"$gt": last}}
        entries = await db["activity"].find(where, limit=_BATCH).sort("_id", 1).to_list(None)
        if not entries:
            break
        last = entries[-1]["_id"]
        writes = [UpdateOne({"_id": entry["_id"]}, {"$setOnInsert": _change(entry)}, upsert=True) for entry in entries]
        await db["changes"].bulk_write(writes, ordered=False)
    await db.drop_collection("activity")


def _change(entry: dict[str, Any]) -> dict[str, Any]:
    actor = entry.get("actor")
    feed_entry = {
        "_id": entry["_id"],
        "type": _EVENT_TYPES[entry["type"]],
        "sourceId": entry["sourceId"],
        "data": entry["data"],
        "hiddenBy": None,
    }
    return {
        "companyId": entry["companyId"],
        "createdAt": entry["createdAt"],
        "updatedAt": entry["updatedAt"],
        "version": 0,
        "actor": actor,
        "via": _INTERFACES[actor["type"]] if actor else "session",
        "credentialId": None,
        "operation": "",
        "customerId": entry["customerId"],
        "documents": [],
        "undoable": False,
        "events": [],
        "eventCount": 0,
        "feed": [feed_entry],
        "feedCount": 1,
        "feedAt": entry["date"],
        "pending": True,
        "undoneBy": None,
        "undoOf": None,
    }
