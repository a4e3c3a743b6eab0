"""A client's progress photos. Replacing or deleting a photo removes its file in the same transaction."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Literal, Unpack, cast

from coaching_service.core.database import files
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.database.recording import LoggedEvent
from coaching_service.core.database.transactions import gather_reads, transactional
from coaching_service.core.dates import local_date
from coaching_service.core.errors import invalid_field, require_found
from coaching_service.core.events import EventValue
from coaching_service.core.file_links import file_url
from coaching_service.core.http.responses import Download
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import PartOfList
from coaching_service.core.media import JPEG, file_extension
from coaching_service.core.pagination import Page
from coaching_service.people import files as stored_files
from coaching_service.people.activity import service as activity
from coaching_service.people.customers import activity_dates
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.record_lists import list_records
from coaching_service.progress.progress_photos.models import (
    ProgressPhoto,
    ProgressPhotoSides,
    StoredPhoto,
    StoredPhotos,
)
from coaching_service.progress.progress_photos.store import ORDER, SIDES, photos


async def list_photos(ctx: Context, customer_id: ObjectId, **part: Unpack[PartOfList]) -> Page[ProgressPhoto]:
    """Return one page of a client's photos, newest date first, or those after a cursor.

    Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    present = partial(_to_photos, ctx)
    return await list_records(ctx, customer_id, photos, "progress_photos", ORDER, present, part)


async def get(ctx: Context, customer_id: ObjectId, photos_id: ObjectId) -> ProgressPhoto:
    """Return the photos of one date. Raises NotFound, and what `list_photos` raises."""
    return _to_photos(ctx, await _get(ctx, customer_id, photos_id))


async def _get(ctx: Context, customer_id: ObjectId, photos_id: ObjectId) -> StoredPhotos:
    where = {"customerId": customer_id, "_id": photos_id}
    _, of_date = await gather_reads(ctx, customers.get_visible(ctx, customer_id), photos.find_one(ctx, where))
    stored: StoredPhotos = require_found(of_date, "progress photo")
    return stored


async def create(
    ctx: Context, customer_id: ObjectId, taken: str | datetime, side_index: str, file: StoredFile | None
) -> ProgressPhoto:
    """Add a photo to its date and return the photos of that date, which are created if missing, even without a file.

    `taken` is a date (`YYYY-MM-DD`), or a time in UTC that counts for the date it was in the client's time zone.
    Raises what `list_photos` raises.
    """
    return _to_photos(ctx, await _add(ctx, customer_id, taken, side_index, file))


@transactional
async def _add(
    ctx: Context, customer_id: ObjectId, taken: str | datetime, side_index: str, file: StoredFile | None
) -> StoredPhotos:
    customer = await customers.get_visible(ctx, customer_id, (*customers.SCOPE_FIELDS, "timezone"))
    timezone = customer["timezone"] or ctx.caller.company.timezone
    date = taken if isinstance(taken, str) else str(local_date(taken, timezone))
    where = {"customerId": customer_id, "date": date}
    before = await photos.find_one(ctx, where)
    if file is None:
        return before if before is not None else await photos.upsert(ctx, where, {})
    side = SIDES[side_index]
    of_date = await photos.upsert(ctx, where, {f"sides.{side}": _to_stored(file)})
    await files.discard(ctx, _file_ids(before, side))
    data = {"photoId": of_date["_id"], "side": side, "day": date}
    await activity.record_event(ctx, "photo_added", customer_id, of_date["_id"], **data)
    await activity_dates.record_activity(ctx, customer_id)
    return of_date


async def replace(
    ctx: Context,
    customer_id: ObjectId,
    photos_id: ObjectId,
    side_index: str,
    file: StoredFile | None,
    version: int | None = None,
) -> ProgressPhoto:
    """Replace one side of a date's photos.

    Raises InvalidFields if there is no file, NotFound if the client has no such photos, Conflict if they have changed
    since `version`, and what `list_photos` raises.
    """
    await customers.get_visible(ctx, customer_id)
    if file is None:
        raise invalid_field("imageFile", "is required", code="REQUIRED")
    return _to_photos(ctx, await _replace(ctx, customer_id, photos_id, SIDES[side_index], file, version))


async def get_picture(ctx: Context, customer_id: ObjectId, photos_id: ObjectId, side: str, *, small: bool) -> Download:
    """Return the picture of one `side` (front, back, side) of a date, or its small version if it has one.

    It must not be cached. Raises NotFound, and what `list_photos` raises.
    """
    photo = require_found((await _get(ctx, customer_id, photos_id)).get("sides", {}).get(side), "progress photo")
    return await stored_files.open_file(ctx, (photo["thumbnailId"] if small else None) or photo["fileId"])


@transactional
async def _replace(
    ctx: Context, customer_id: ObjectId, photos_id: ObjectId, side: str, file: StoredFile, version: int | None
) -> StoredPhotos:
    before = require_found(await photos.find_one(ctx, {"customerId": customer_id, "_id": photos_id}), "progress photo")
    change = {"$set": {f"sides.{side}": _to_stored(file)}}
    after = require_found(await photos.update(ctx, {"_id": photos_id}, change, version=version), "progress photo")
    await files.discard(ctx, _file_ids(before, side))
    data: dict[str, EventValue] = {"photoId": photos_id, "side": side, "date": after["date"]}
    ctx.changes.events.append(LoggedEvent("photo.added", customer_id, data, photos_id))
    return after


@transactional
async def delete(ctx: Context, customer_id: ObjectId, photos_id: ObjectId) -> None:
    """Delete the photos of one date with their files. Raises NotFound if the client has no such photos."""
    await customers.get_visible(ctx, customer_id)
    removed = require_found(await photos.delete(ctx, {"customerId": customer_id, "_id": photos_id}), "progress photo")
    await activity.delete_events(ctx, customer_id, photos_id, "photo_added")
    await files.discard(ctx, [file_id for side in SIDES.values() for file_id in _file_ids(removed, side)])
    if not ctx.caller.is_coach:
        await activity_dates.record_activity(ctx, customer_id)


def _to_stored(file: StoredFile) -> StoredPhoto:
    return {"fileId": file.id, "thumbnailId": file.thumbnail_id, "contentType": file.content_type}


def _to_photos(ctx: Context, stored: StoredPhotos) -> ProgressPhoto:
    links: dict[str, str | None] = {}
    for side in SIDES.values():
        photo = stored.get("sides", {}).get(side)
        links[f"{side}Key"] = _key(photo)
        links[f"{side}Url"] = _url(ctx, photo, "fileId")
        links[f"{side}ThumbnailUrl"] = _url(ctx, photo, "thumbnailId")
    return {
        "_id": stored["_id"],
        "customerId": stored["customerId"],
        "createdAt": stored["date"],
        "photos": cast("ProgressPhotoSides", links),
        "updatedAt": stored["updatedAt"],
        "version": stored["version"],
    }


def _key(photo: StoredPhoto | None) -> str | None:
    """Return a photo's key: the identifier of its file, with the extension of its content type."""
    if photo is None:
        return None
    return f"{photo['fileId']}{file_extension(photo.get('contentType', JPEG))}"


def _url(ctx: Context, photo: StoredPhoto | None, field: Literal["fileId", "thumbnailId"]) -> str | None:
    return None if photo is None else file_url(ctx.services, photo[field])


def _file_ids(stored: StoredPhotos | None, side: str) -> list[ObjectId]:
    photo = None if stored is None else stored.get("sides", {}).get(side)
    return [] if photo is None else [file_id for file_id in (photo["fileId"], photo["thumbnailId"]) if file_id]
