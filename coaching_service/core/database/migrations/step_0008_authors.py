"""Notes have an author and flags, logs state which texts the client wrote, and companies have `notifications`.

Authors are taken from the activity feed, whose entries name who added a note or logged an item; where they do not,
the author of a note is null, and a text counts as the coach's. So does the comment on a session, which has no entry.
"""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.context import Database

_LOGS = ["item_logged", "form_submitted", "metric_recorded"]


async def apply(db: Database, vault: Vault) -> None:
    """Complete notes, companies, and the logged items that clients logged."""
    del vault
    await db["companies"].update_many(
        {"notifications": {"$exists": False}}, {"$set": {"notifications": {"messages": True}}}
    )
    async for note in db["notes"].find({"author": {"$exists": False}}, {"companyId": 1, "customerId": 1}):
        await _complete_note(db, note)
    logged_by_client = {"type": {"$in": _LOGS}, "actor.type": "client"}
    async for entry in db["activity"].find(logged_by_client, {"companyId": 1, "customerId": 1, "sourceId": 1}):
        await _add_client_texts(db, entry)


async def _complete_note(db: Database, note: dict[str, Any]) -> None:
    about = {"companyId": note["companyId"], "customerId": note["customerId"], "sourceId": note["_id"]}
    entry = await db["activity"].find_one({**about, "type": "note_added"}, {"actor": 1})
    actor = entry.get("actor") if entry else None
    author = {"_id": actor["_id"], "name": actor["name"]} if actor else None
    fields = {"author": author, "isPinned": False, "isHealth": False}
    await db["notes"].update_one({"_id": note["_id"], "author": {"$exists": False}}, {"$set": fields})


async def _add_client_texts(db: Database, entry: dict[str, Any]) -> None:
    of_client = {"companyId": entry["companyId"], "customerId": entry["customerId"]}
    block = await db["workoutBlocks"].find_one({**of_client, "items._id": entry["sourceId"]}, {"items.$": 1})
    if block is None or "clientTexts" in block["items"][0]:
        return
    item = block["items"][0]
    unchanged = {"_id": block["_id"], "items": {"$elemMatch": {"_id": item["_id"], "clientTexts": {"$exists": False}}}}
    await db["workoutBlocks"].update_one(unchanged, {"$set": {"items.$.clientTexts": _texts_of(item)}})


def _texts_of(item: dict[str, Any]) -> list[str]:
    """Return the names of the texts in the log of an item."""
    names = ["comment"] if item["comment"] else []
    questions = item["form"]["questions"] if item["type"] == "FORM" else []
    text_ids = {question["_id"] for question in questions if question["type"] == "text"}
    answers = item.get("answers") or []
    return names + [str(answer["questionId"]) for answer in answers if answer["questionId"] in text_ids]
