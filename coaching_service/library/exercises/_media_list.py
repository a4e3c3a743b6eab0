"""The list of an exercise's media: links that a coach enters, and uploaded files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from marshmallow import fields

from coaching_service.core.database.files import StoredFile
from coaching_service.core.errors import invalid_field
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import GIF, VIDEO_TYPES, file_extension
from coaching_service.core.validation import Link
from coaching_service.library.exercises.models import MediaType, NewExerciseMedia, StoredMedia

MAX_UPLOADS = 20
UPLOAD_SOURCE = "upload"
# Of the links of exercises and of overrides in an import.
MEDIA_CHECKS: dict[str, fields.Field[Any]] = {
    "videoLink": Link(),
    "media.url": Link(),
    "media.thumbnailUrl": Link(),
}


def merge(
    stored: Sequence[StoredMedia], sent: Sequence[NewExerciseMedia], *, keep_equal: bool = False
) -> list[StoredMedia]:
    """Return the media in the order in which they are sent.

    Links that are not sent are dropped. Uploaded files stay as they are: they follow the links if they are not sent,
    and are only removed one by one. With `keep_equal`, a link without an identifier has the identifier of an equal one.
    """
    known = {each["_id"]: each for each in stored}
    merged: list[StoredMedia] = []
    for each in sent:
        media_id = each.get("_id") or (_find_equal(known.values(), each) if keep_equal else None)
        previous = known.pop(media_id, None) if media_id else None
        merged.append(previous if previous and "fileId" in previous else _to_link(each, previous))
    return [*merged, *(each for each in known.values() if "fileId" in each)]


def with_file(stored: Sequence[StoredMedia], file: StoredFile) -> tuple[list[StoredMedia], ObjectId]:
    """Return the media with an uploaded file at the end, and the identifier of the new entry.

    Raises InvalidFields if there are 20 uploaded files already.
    """
    if sum("fileId" in each for each in stored) >= MAX_UPLOADS:
        raise invalid_field("file", f"must not be more than {MAX_UPLOADS} for one exercise", code="TOO_MANY")
    entry: StoredMedia = {
        "_id": ObjectId(),
        "type": _media_type(file.content_type),
        "key": f"{file.id}{file_extension(file.content_type)}",
        "source": UPLOAD_SOURCE,
        "url": None,
        "thumbnailUrl": None,
        "fileId": file.id,
        "thumbnailId": file.thumbnail_id,
    }
    return [*stored, entry], entry["_id"]


def without(stored: Sequence[StoredMedia], media_id: ObjectId) -> tuple[list[StoredMedia], list[ObjectId]] | None:
    """Return the media without an entry, and the files to delete; None if there is no such entry."""
    removed = [each for each in stored if each["_id"] == media_id]
    return ([each for each in stored if each["_id"] != media_id], file_ids(removed)) if removed else None


def file_ids(media: Sequence[StoredMedia]) -> list[ObjectId]:
    """Return the files of uploaded media, with their thumbnails."""
    ids = [(each.get("fileId"), each.get("thumbnailId")) for each in media]
    return [file_id for pair in ids for file_id in pair if file_id]


def _find_equal(stored: Iterable[StoredMedia], sent: NewExerciseMedia) -> ObjectId | None:
    """Return the identifier of the link that is like the one sent."""
    return next((each["_id"] for each in stored if {**sent, "_id": each["_id"]} == each), None)


def _to_link(sent: NewExerciseMedia, previous: StoredMedia | None) -> StoredMedia:
    return {
        "_id": previous["_id"] if previous else ObjectId(),
        "type": sent["type"],
        "key": sent["key"],
        "source": sent["source"],
        "url": sent["url"],
        "thumbnailUrl": sent["thumbnailUrl"],
    }


def _media_type(content_type: str) -> MediaType:
    if content_type in VIDEO_TYPES:
        return "video"
    return "gif" if content_type == GIF else "image"
