"""A client's progress photos. Replacing or deleting a photo removes its file in the same transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Literal, NotRequired, TypedDict, Unpack, cast

from marshmallow import ValidationError, fields

from coaching_service.core import list_selection
from coaching_service.core.auth import CUSTOMERS, coach, customer
from coaching_service.core.database import declared, files
from coaching_service.core.database.context import Context, gather_reads, transactional
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.files import StoredFile
from coaching_service.core.database.recording import LoggedEvent
from coaching_service.core.dates import local_date
from coaching_service.core.errors import invalid_field, require_found
from coaching_service.core.events import EventValue
from coaching_service.core.fields import Description, output_of
from coaching_service.core.http.responses import Download
from coaching_service.core.http.routes import MultipartBody, Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import IMAGE_TYPES, JPEG, file_extension
from coaching_service.core.query import FormVersion
from coaching_service.core.validation import CalendarDate, Choice
from coaching_service.people import files as stored_files
from coaching_service.people.activity import service as activity
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.service import list_records
from coaching_service.people.file_links import file_url

# --- Progress photos as they are stored and returned ------------------------------------------------------------------


class StoredPhoto(TypedDict):
    """One stored photo: the picture, its small version, and the picture's content type (absent in old documents)."""

    fileId: ObjectId
    thumbnailId: ObjectId | None
    contentType: NotRequired[str]


class StoredPhotos(declared.Stored):
    """The photos of a client on one date (`YYYY-MM-DD`), by side: `front`, `back`, `side`."""

    customerId: ObjectId
    date: Annotated[str, CalendarDate()]
    sides: NotRequired[dict[str, StoredPhoto]]


_Link = Annotated[str | None, fields.Url()]


class ProgressPhotoSides(TypedDict):
    """The photos of a date; null where there is none. Links expire after two hours."""

    frontKey: str | None
    frontUrl: _Link
    frontThumbnailUrl: _Link
    backKey: str | None
    backUrl: _Link
    backThumbnailUrl: _Link
    sideKey: str | None
    sideUrl: _Link
    sideThumbnailUrl: _Link


class ProgressPhoto(TypedDict):
    """The photos of a client on one date."""

    _id: ObjectId
    customerId: ObjectId
    createdAt: Annotated[str, CalendarDate(), Description("The date the photos were taken on.")]
    photos: ProgressPhotoSides
    updatedAt: datetime
    version: int


PROGRESS_PHOTO = output_of(ProgressPhoto, first=("_id", "customerId", "createdAt"))


# --- Requests of the progress photo operations ------------------------------------------------------------------------


class DateOrDateTime(fields.Field[Any]):
    """A date, or a time in ISO 8601: read as a `datetime` in UTC, or as its date if it has no time zone."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str | datetime:
        if not isinstance(value, str) or "T" not in value:
            return CalendarDate().deserialize(value, attr, data, **kwargs)
        try:
            time = datetime.fromisoformat(value)
        except ValueError:
            raise ValidationError("must be a date in the form YYYY-MM-DD, or a time in ISO 8601") from None
        day: str = CalendarDate().deserialize(str(time.date()), attr)
        return day if time.tzinfo is None else time.astimezone(UTC)


_Side = Annotated[
    Literal["1", "2", "3"],
    Choice(
        *("1", "2", "3"),
        metadata={"description": '"1" front, "2" back, "3" side.', "x-enum-varnames": ["Front", "Back", "Side"]},
    ),
]


class NewPhoto(TypedDict):
    """The side of a new photo, and when it was taken."""

    createdAt: Annotated[
        str | datetime,
        DateOrDateTime(metadata={"description": "A date, or a time in ISO 8601.", "example": "2026-03-02"}),
    ]
    imageSideIndex: _Side


class PhotoReplacement(TypedDict):
    """The side whose photo is replaced."""

    imageSideIndex: _Side
    version: NotRequired[Annotated[int, FormVersion()]]


# --- Progress photos in the database: one document for a client and date, with three sides ----------------------------


SIDES: Mapping[_Side, str] = {"1": "front", "2": "back", "3": "side"}

ORDER = ("-date",)


def _event(action: declared.Action, known: Mapping[str, Any], _: Collection[str]) -> declared.EventData | None:
    data = {"photoId": known["_id"], "date": known["date"]}
    return {"type": "photo.deleted", "data": data} if action == "deleted" else None


photos = Documents[StoredPhotos](
    "progressPhotos",
    (declared.Index(("customerId", "-date"), unique=True),),
    client_field="customerId",
    history=declared.History("progress_photo", _event, ("date",), undo="never"),
    transfer=declared.Portable(
        StoredPhotos,
        declared.RECORDS,
        references={"customerId": "customers"},
        files=declared.FileRule(IMAGE_TYPES, "photo"),
    ),
)


routes = Routes("/coach/customers/{customerId}/progress-photos", tag="Progress photos", locks="customer")
own_routes = Routes("/customer/progress-photos", tag="The client's own")

_NEW_PHOTO = MultipartBody("imageFile", IMAGE_TYPES, NewPhoto)
_PHOTO = {"createdAt": "2026-03-02", "imageSideIndex": "1"}


@routes.get(
    "", access=coach(CUSTOMERS.VIEW), query=list_selection.PageQuery(), returns=list_selection.page_of(PROGRESS_PHOTO)
)
async def list_progress_photos(
    ctx: Context, customer_id: ObjectId, query: list_selection.PageFields
) -> list_selection.Page[ProgressPhoto]:
    """List a client's progress photos, newest first.

    One record a date, with three sides.
    """
    return await list_photos(ctx, customer_id, **list_selection.part_of(query))


@own_routes.get("", access=customer(), query=list_selection.PageQuery(), returns=list_selection.page_of(PROGRESS_PHOTO))
async def list_own_progress_photos(
    ctx: Context, query: list_selection.PageFields
) -> list_selection.Page[ProgressPhoto]:
    """List my progress photos, newest first.

    One record a date, with three sides.
    """
    return await list_photos(ctx, ctx.caller.id, **list_selection.part_of(query))


async def list_photos(
    ctx: Context, customer_id: ObjectId, **part: Unpack[list_selection.PartOfList]
) -> list_selection.Page[ProgressPhoto]:
    """Return one page of a client's photos, newest date first, or those after a cursor.

    Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    present = partial(_to_photos, ctx)
    return await list_records(ctx, customer_id, photos, "progress_photos", ORDER, present, part)


@routes.get("/{photoId}", access=coach(CUSTOMERS.VIEW), returns=PROGRESS_PHOTO, operation_id="getProgressPhoto")
async def get(ctx: Context, customer_id: ObjectId, photo_id: ObjectId) -> ProgressPhoto:
    """Read the progress photos of a date."""
    return _to_photos(ctx, await _get(ctx, customer_id, photo_id))


async def _get(ctx: Context, customer_id: ObjectId, photos_id: ObjectId) -> StoredPhotos:
    where = {"customerId": customer_id, "_id": photos_id}
    _, of_date = await gather_reads(ctx, customers.get_visible(ctx, customer_id), photos.find_one(ctx, where))
    stored: StoredPhotos = require_found(of_date, "progress photo")
    return stored


@routes.post(
    "",
    access=coach(CUSTOMERS.EDIT),
    multipart=_NEW_PHOTO,
    returns=PROGRESS_PHOTO,
    example=_PHOTO,
    operation_id="createProgressPhoto",
)
@transactional
async def create(ctx: Context, customer_id: ObjectId, body: NewPhoto, file: StoredFile | None) -> ProgressPhoto:
    """Add a progress photo.

    The photos of one date share a record; a time counts for the date it was in the client's time zone. Without a file
    the record is created, or left unchanged. Metadata, such as the location, is removed from the picture.
    """
    customer = await customers.get_visible(ctx, customer_id, (*customers.SCOPE_FIELDS, "timezone"))
    timezone, taken = customer["timezone"] or ctx.caller.company.timezone, body["createdAt"]
    date = taken if isinstance(taken, str) else str(local_date(taken, timezone))
    where = {"customerId": customer_id, "date": date}
    before = await photos.find_one(ctx, where)
    if file is None:
        return _to_photos(ctx, before if before is not None else await photos.upsert(ctx, where, {}))
    side = SIDES[body["imageSideIndex"]]
    of_date = await photos.upsert(ctx, where, {f"sides.{side}": _to_stored(file)})
    await files.discard(ctx, _file_ids(before, side))
    data = {"photoId": of_date["_id"], "side": side, "day": date}
    await activity.record_event(ctx, "photo_added", customer_id, of_date["_id"], **data)
    await customers.record_activity(ctx, customer_id)
    return _to_photos(ctx, of_date)


@routes.put(
    "/{photoId}",
    access=coach(CUSTOMERS.EDIT),
    multipart=MultipartBody("imageFile", IMAGE_TYPES, PhotoReplacement, file_required=True),
    returns=PROGRESS_PHOTO,
    example={"imageSideIndex": "1"},
    operation_id="replaceProgressPhoto",
)
@transactional
async def replace(
    ctx: Context, customer_id: ObjectId, photo_id: ObjectId, body: PhotoReplacement, file: StoredFile | None
) -> ProgressPhoto:
    """Replace a progress photo."""
    await customers.get_visible(ctx, customer_id)
    if file is None:
        raise invalid_field("imageFile", "is required", code="REQUIRED")
    side, where = SIDES[body["imageSideIndex"]], {"customerId": customer_id, "_id": photo_id}
    before = require_found(await photos.find_one(ctx, where), "progress photo")
    change = {"$set": {f"sides.{side}": _to_stored(file)}}
    after = require_found(
        await photos.update(ctx, {"_id": photo_id}, change, version=body.get("version")), "progress photo"
    )
    await files.discard(ctx, _file_ids(before, side))
    data: dict[str, EventValue] = {"photoId": photo_id, "side": side, "date": after["date"]}
    ctx.changes.events.append(LoggedEvent("photo.added", customer_id, data, photo_id))
    return _to_photos(ctx, after)


async def get_picture(ctx: Context, customer_id: ObjectId, photos_id: ObjectId, side: str, *, small: bool) -> Download:
    """Return the picture of one `side` (front, back, side) of a date, or its small version if it has one.

    It must not be cached. Raises NotFound, and what `list_photos` raises.
    """
    photo = require_found((await _get(ctx, customer_id, photos_id)).get("sides", {}).get(side), "progress photo")
    return await stored_files.open_file(ctx, (photo["thumbnailId"] if small else None) or photo["fileId"])


@routes.delete("/{photoId}", access=coach(CUSTOMERS.EDIT), operation_id="deleteProgressPhoto")
@transactional
async def delete(ctx: Context, customer_id: ObjectId, photo_id: ObjectId) -> None:
    """Delete the progress photos of a date."""
    await customers.get_visible(ctx, customer_id)
    removed = require_found(await photos.delete(ctx, {"customerId": customer_id, "_id": photo_id}), "progress photo")
    await activity.delete_events(ctx, customer_id, photo_id, "photo_added")
    await files.discard(ctx, [file_id for side in SIDES.values() for file_id in _file_ids(removed, side)])
    if not ctx.caller.is_coach:
        await customers.record_activity(ctx, customer_id)


def _to_stored(file: StoredFile) -> StoredPhoto:
    return {"fileId": file.id, "thumbnailId": file.thumbnail_id, "contentType": file.content_type}


def _to_photos(ctx: Context, stored: StoredPhotos) -> ProgressPhoto:
    links: dict[str, str | None] = {}
    for side in SIDES.values():
        photo = stored.get("sides", {}).get(side)
        # The identifier of its file, with the extension of its content type.
        key = photo and f"{photo['fileId']}{file_extension(photo.get('contentType', JPEG))}"
        links |= {f"{side}Key": key, f"{side}Url": file_url(ctx, photo["fileId"]) if photo else None}
        links[f"{side}ThumbnailUrl"] = file_url(ctx, photo["thumbnailId"]) if photo else None
    return {
        "_id": stored["_id"],
        "customerId": stored["customerId"],
        "createdAt": stored["date"],
        "photos": cast("ProgressPhotoSides", links),
        "updatedAt": stored["updatedAt"],
        "version": stored["version"],
    }


def _file_ids(stored: StoredPhotos | None, side: str) -> list[ObjectId | None]:
    photo = None if stored is None else stored.get("sides", {}).get(side)
    return [] if photo is None else [photo["fileId"], photo["thumbnailId"]]


# --- Of clients over REST ---------------------------------------------------------------------------------------------


@own_routes.post(
    "",
    access=customer(),
    multipart=_NEW_PHOTO,
    returns=PROGRESS_PHOTO,
    example=_PHOTO,
)
async def create_own_progress_photo(ctx: Context, body: NewPhoto, file: StoredFile | None) -> ProgressPhoto:
    """Add a progress photo of mine.

    The photos of one date share a record; a time counts for the date it was in the client's time zone. A photo of the
    same side and date is replaced. Metadata, such as the location, is removed from the picture.
    """
    return await create(ctx, ctx.caller.id, body, file)


@own_routes.delete("/{photoId}", access=customer())
async def delete_own_progress_photo(ctx: Context, photo_id: ObjectId) -> None:
    """Delete my progress photos of a date."""
    await delete(ctx, ctx.caller.id, photo_id)
