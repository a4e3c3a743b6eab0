"""Media of exercises have `_id` and `thumbnailUrl`; exercises no longer have suffixes for the search (`suf`)."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.context import Database
from coaching_service.core.ids import ObjectId


async def apply(db: Database, vault: Vault) -> None:
    """Complete the media that lack the new fields, and remove the suffixes."""
    del vault
    async for exercise in db["exercises"].find({"media": {"$elemMatch": {"_id": {"$exists": False}}}}, {"media": 1}):
        media: list[dict[str, Any]] = [
            {"_id": ObjectId(), "thumbnailUrl": None, **stored} for stored in exercise["media"]
        ]
        unchanged = {"_id": exercise["_id"], "media": exercise["media"]}
        await db["exercises"].update_one(unchanged, {"$set": {"media": media}})
    await db["exercises"].update_many({"suf": {"$exists": True}}, {"$unset": {"suf": ""}})
