"""Progress photos as they are stored and returned."""

from __future__ import annotations

from datetime import datetime
from typing import NotRequired, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.ids import ObjectId


class StoredPhoto(TypedDict):
    """One stored photo: the picture, its small version, and the picture's content type (absent in old documents)."""

    fileId: ObjectId
    thumbnailId: ObjectId | None
    contentType: NotRequired[str]


class StoredPhotos(Stored):
    """The photos of a client on one date (`YYYY-MM-DD`), by side: `front`, `back`, `side`."""

    customerId: ObjectId
    date: str
    sides: NotRequired[dict[str, StoredPhoto]]


class PhotoLinks(TypedDict):
    """The photos of one date; null where there is none. The links expire after two hours."""

    frontKey: str | None
    frontUrl: str | None
    frontThumbnailUrl: str | None
    backKey: str | None
    backUrl: str | None
    backThumbnailUrl: str | None
    sideKey: str | None
    sideUrl: str | None
    sideThumbnailUrl: str | None


class ProgressPhotos(TypedDict):
    """The photos of a client on one date as they are returned; `createdAt` is that date."""

    _id: ObjectId
    customerId: ObjectId
    createdAt: str
    photos: PhotoLinks
    updatedAt: datetime
    version: int
