"""The form that adds the photos of a date: one of each side, as far as they were chosen."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import MultipartBody
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import IMAGE_TYPES
from coaching_service.core.validation import Date
from coaching_service.progress.progress_photos import service as progress_photos
from coaching_service.progress.progress_photos.models import ProgressPhoto
from coaching_service.web.uploads import ReceivedFiles

Side = Literal["front", "side", "back"]
SIDES: tuple[Side, ...] = ("front", "side", "back")
_INDEXES: dict[Side, str] = {"front": "1", "side": "3", "back": "2"}


class PhotosForm(TypedDict):
    """The date of photos."""

    createdAt: Annotated[str, Date()]


PHOTOS_FORM = MultipartBody("front", IMAGE_TYPES, PhotosForm, more_files=("side", "back"))


async def add_received(
    ctx: Context, customer_id: ObjectId, day: str, files: ReceivedFiles
) -> tuple[ProgressPhoto, str]:
    """Add the photos received to a date, in place of photos of the same sides; return them with a notice.

    The notice names the photos that were saved, and says of each other one that was sent why it was not. Raises what
    `progress_photos.add` raises.
    """
    saved = [side for side in SIDES if side in files.stored]
    for side in saved:
        photos = await progress_photos.create(ctx, customer_id, day, _INDEXES[side], files.stored[side])
    notice = f"{_join(saved).capitalize()} photo{'' if len(saved) == 1 else 's'} saved."
    reasons = [f"The {side} photo was not saved: it {why}." for side, why in files.rejected.items()]
    return photos, " ".join([notice, *reasons])


def missing_sides(photos: ProgressPhoto) -> list[Side]:
    """Return the sides without a photo on a date."""
    keys = {"front": "frontKey", "side": "sideKey", "back": "backKey"}
    links: dict[str, object] = {**photos["photos"]}
    return [side for side in SIDES if not links[keys[side]]]


def _join(words: list[Side]) -> str:
    """Return `front`, `front and side` or `front, side and back`."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
