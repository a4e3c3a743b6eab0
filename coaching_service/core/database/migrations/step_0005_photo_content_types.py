"""Each stored progress photo has the `contentType` of its file, from which the extension of its key is derived."""

from __future__ import annotations

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.context import Database

_SIDES = ("front", "back", "side")


async def apply(db: Database, vault: Vault) -> None:
    """Copy the content type of its file to each photo that lacks it."""
    del vault
    for side in _SIDES:
        file_id, content_type = f"sides.{side}.fileId", f"sides.{side}.contentType"
        async for photos in db["progressPhotos"].find({file_id: {"$exists": True}, content_type: {"$exists": False}}):
            photo_id = photos["sides"][side]["fileId"]
            if file := await db["fs.files"].find_one({"_id": photo_id}, {"contentType": 1}):
                await db["progressPhotos"].update_one(
                    {"_id": photos["_id"], file_id: photo_id}, {"$set": {content_type: file["contentType"]}}
                )
