"""Progress photos in the database: one document for a client and date, with three sides."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import RECORDS, FileRule, Portable
from coaching_service.core.database.recording import Action, EventData, History
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import IMAGE_TYPES
from coaching_service.progress.progress_photos.models import StoredPhoto, StoredPhotos

SIDES = {"1": "front", "2": "back", "3": "side"}

ORDER = ("-date",)


def _event(action: Action, known: Mapping[str, Any], _: Collection[str]) -> EventData | None:
    data = {"photoId": known["_id"], "date": known["date"]}
    return {"type": "photo.deleted", "data": data} if action == "deleted" else None


photos = Documents[StoredPhotos](
    "progressPhotos",
    (Index(("customerId", "-date"), unique=True),),
    client_field="customerId",
    history=History("progress_photo", _event, ("date",), undo="never"),
    transfer=Portable(
        StoredPhotos,
        RECORDS,
        references={"customerId": "customers"},
        files=FileRule(IMAGE_TYPES, "photo"),
    ),
)


async def find_by_date(ctx: Context, customer_id: ObjectId, date: str) -> StoredPhotos | None:
    """Return the photos of a date, or None."""
    return await photos.find_one(ctx, {"customerId": customer_id, "date": date})


async def find_one(ctx: Context, customer_id: ObjectId, photos_id: ObjectId) -> StoredPhotos | None:
    """Return the photos of one date by their identifier, or None."""
    return await photos.find_one(ctx, {"customerId": customer_id, "_id": photos_id})


async def upsert(ctx: Context, customer_id: ObjectId, date: str, sides: Mapping[str, StoredPhoto]) -> StoredPhotos:
    """Set the given sides of a date's photos, which are created if missing, and return them."""
    return await photos.upsert(ctx, {"customerId": customer_id, "date": date}, _fields(sides))


async def update(
    ctx: Context, photos_id: ObjectId, sides: Mapping[str, StoredPhoto], version: int | None
) -> StoredPhotos | None:
    """Set the given sides and return the photos; None if they are gone.

    Raises Conflict if they are no longer at `version`.
    """
    return await photos.update(ctx, {"_id": photos_id}, {"$set": _fields(sides)}, version=version)


async def delete(ctx: Context, customer_id: ObjectId, photos_id: ObjectId) -> StoredPhotos | None:
    """Delete the photos of one date; returns what was deleted, or None."""
    return await photos.delete(ctx, {"customerId": customer_id, "_id": photos_id})


def _fields(sides: Mapping[str, StoredPhoto]) -> dict[str, StoredPhoto]:
    return {f"sides.{side}": photo for side, photo in sides.items()}
