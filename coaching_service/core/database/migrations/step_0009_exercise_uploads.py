"""Links to exercises' pictures are made when they are read: `image` and `thumbnail` are not stored, and media that were
stored as a signed link have the identifier of their file."""

from __future__ import annotations

import re
from typing import Any

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.context import Database
from coaching_service.core.ids import ObjectId

_SIGNED = "/files/([0-9a-f]{24})[?]expires=[0-9]+&signature="
_EXTENSIONS = {"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp"}


async def apply(db: Database, vault: Vault) -> None:
    """Convert the media that are signed links to files of the same company, and remove the stored pictures."""
    del vault
    async for exercise in db["exercises"].find({"media.url": {"$regex": _SIGNED}}, {"media": 1, "companyId": 1}):
        media = [await _convert(db, exercise["companyId"], each) for each in exercise["media"]]
        unchanged = {"_id": exercise["_id"], "media": exercise["media"]}
        await db["exercises"].update_one(unchanged, {"$set": {"media": media}})
    stored_pictures = {"image": "", "thumbnail": ""}
    await db["exercises"].update_many(
        {"$or": [{name: {"$exists": True}} for name in stored_pictures]}, {"$unset": stored_pictures}
    )


async def _convert(db: Database, company_id: ObjectId, media: dict[str, Any]) -> dict[str, Any]:
    file = await db["fs.files"].find_one({"_id": _file_id(media["url"]), "companyId": company_id})
    if file is None:
        return media
    return {
        "_id": media["_id"],
        "type": media["type"],
        "key": f"{file['_id']}{_EXTENSIONS.get(file['contentType'], '')}",
        "source": "upload",
        "url": None,
        "thumbnailUrl": None,
        "fileId": file["_id"],
        "thumbnailId": _file_id(media["thumbnailUrl"]),
    }


def _file_id(url: str | None) -> ObjectId | None:
    match = re.search(_SIGNED, url or "")
    return ObjectId(match[1]) if match else None
