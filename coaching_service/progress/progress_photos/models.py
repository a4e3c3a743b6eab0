"""Progress photos as they are stored and returned."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, NotRequired, TypedDict

from marshmallow import fields

from coaching_service.core.database.models import Stored
from coaching_service.core.field_schemas import output_of
from coaching_service.core.fields import Description
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import CalendarDate


class StoredPhoto(TypedDict):
    """One stored photo: the picture, its small version, and the picture's content type (absent in old documents)."""

    fileId: ObjectId
    thumbnailId: ObjectId | None
    contentType: NotRequired[str]


class StoredPhotos(Stored):
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
