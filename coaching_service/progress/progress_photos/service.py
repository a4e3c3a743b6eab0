"""A client's progress photos. Replacing or deleting a photo removes its file in the same transaction."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Literal, Unpack

from coaching_service.core.database import files
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.database.recording import LoggedEvent
from coaching_service.core.database.transactions import gather_reads, transactional
from coaching_service.core.dates import local_date
from coaching_service.core.errors import NotFound, invalid_field
from coaching_service.core.events import EventValue
from coaching_service.core.file_links import file_url
from coaching_service.core.http.downloads import Download
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import PartOfList
from coaching_service.core.media import JPEG, file_extension
from coaching_service.core.pagination import Page
from coaching_service.people.activity import service as activity
from coaching_service.people.customers import activity_dates
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.record_lists import list_records
from coaching_service.people.files import service as stored_files
from coaching_service.progress.progress_photos import store
from coaching_service.progress.progress_photos.models import (
    ProgressPhoto,
    ProgressPhotoSides,
    StoredPhoto,
    StoredPhotos,
)
from coaching_service.progress.progress_photos.store import SIDES


async def list_photos(ctx: Context, customer_id: ObjectId, **part: Unpack[PartOfList]) -> Page[ProgressPhoto]:
    """Return one page of a client's photos, newest date first, or those after a cursor.

    Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    present = partial(_to_photos, ctx)
    return await list_records(ctx, customer_id, store.photos, "progress_photos", store.ORDER, present, part)


async def get(ctx: Context, customer_id: ObjectId, photos_id: ObjectId) -> ProgressPhoto:
    """Return the photos of one date. Raises NotFound, and what `list_photos` raises."""
    return _to_photos(ctx, await _get(ctx, customer_id, photos_id))


async def _get(ctx: Context, customer_id: ObjectId, photos_id: ObjectId) -> StoredPhotos:
    photos: StoredPhotos | None
    _, photos = await gather_reads(
        ctx, customers.get_visible(ctx, customer_id), store.find_one(ctx, customer_id, photos_id)
    )
    if photos is None:
        raise NotFound("progress photo")
    return photos


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
    before = await store.find_by_date(ctx, customer_id, date)
    if file is None:
        return before if before is not None else await store.upsert(ctx, customer_id, date, {})
    side = SIDES[side_index]
    photos = await store.upsert(ctx, customer_id, date, {side: _to_stored(file)})
    await files.discard(ctx, _file_ids(before, side))
    data = {"photoId": photos["_id"], "side": side, "day": date}
    await activity.record_event(ctx, "photo_added", customer_id, photos["_id"], **data)
    await activity_dates.record_activity(ctx, customer_id)
    return photos


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
    photo = (await _get(ctx, customer_id, photos_id)).get("sides", {}).get(side)
    if photo is None:
        raise NotFound("progress photo")
    return await stored_files.open_file(ctx, (photo["thumbnailId"] if small else None) or photo["fileId"])


@transactional
async def _replace(
    ctx: Context, customer_id: ObjectId, photos_id: ObjectId, side: str, file: StoredFile, version: int | None
) -> StoredPhotos:
    before = await store.find_one(ctx, customer_id, photos_id)
    if before is None:
        raise NotFound("progress photo")
    photos = await store.update(ctx, photos_id, {side: _to_stored(file)}, version)
    if photos is None:
        raise NotFound("progress photo")
    await files.discard(ctx, _file_ids(before, side))
    data: dict[str, EventValue] = {"photoId": photos_id, "side": side, "date": photos["date"]}
    ctx.changes.events.append(LoggedEvent("photo.added", customer_id, data, photos_id))
    return photos


@transactional
async def delete(ctx: Context, customer_id: ObjectId, photos_id: ObjectId) -> None:
    """Delete the photos of one date with their files. Raises NotFound if the client has no such photos."""
    await customers.get_visible(ctx, customer_id)
    photos = await store.delete(ctx, customer_id, photos_id)
    if photos is None:
        raise NotFound("progress photo")
    await activity.delete_events(ctx, customer_id, photos_id, "photo_added")
    await files.discard(ctx, [file_id for side in SIDES.values() for file_id in _file_ids(photos, side)])
    if not ctx.caller.is_coach:
        await activity_dates.record_activity(ctx, customer_id)


def _to_stored(file: StoredFile) -> StoredPhoto:
    return {"fileId": file.id, "thumbnailId": file.thumbnail_id, "contentType": file.content_type}


def _to_photos(ctx: Context, stored: StoredPhotos) -> ProgressPhoto:
    sides = stored.get("sides", {})
    front, back, side = (sides.get(name) for name in ("front", "back", "side"))
    photos: ProgressPhotoSides = {
        "frontKey": _key(front),
        "frontUrl": _url(ctx, front, "fileId"),
        "frontThumbnailUrl": _url(ctx, front, "thumbnailId"),
        "backKey": _key(back),
        "backUrl": _url(ctx, back, "fileId"),
        "backThumbnailUrl": _url(ctx, back, "thumbnailId"),
        "sideKey": _key(side),
        "sideUrl": _url(ctx, side, "fileId"),
        "sideThumbnailUrl": _url(ctx, side, "thumbnailId"),
    }
    return {
        "_id": stored["_id"],
        "customerId": stored["customerId"],
        "createdAt": stored["date"],
        "photos": photos,
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


def _file_ids(photos: StoredPhotos | None, side: str) -> list[ObjectId]:
    photo = None if photos is None else photos.get("sides", {}).get(side)
    return [] if photo is None else [file_id for file_id in (photo["fileId"], photo["thumbnailId"]) if file_id]
