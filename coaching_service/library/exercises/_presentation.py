"""Exercises as a company sees them: the stored exercise with the company's override and links to uploaded files."""

from __future__ import annotations

from collections.abc import Sequence

from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.models import Returned
from coaching_service.core.external_identity import present_identity
from coaching_service.core.fields import take
from coaching_service.core.file_links import file_url
from coaching_service.core.text import normalize
from coaching_service.library.exercises.models import (
    LOAD,
    Exercise,
    ExerciseMedia,
    ExerciseTexts,
    StoredExercise,
    StoredMedia,
)
from coaching_service.library.exercises.override_models import Override


def present(ctx: Context, stored: StoredExercise, override: Override | None = None) -> Exercise:
    """Return an exercise as it is read; the media that the company adds come before the shared ones."""
    media = [
        _present_media(ctx.services, each) for each in [*(override["media"] if override else []), *stored["media"]]
    ]
    image, thumbnail = _pictures(media)
    exercise: Exercise = {
        **take(Returned, stored),
        **take(ExerciseTexts, stored),
        "loadType": stored.get("loadType", LOAD),
        "movementPattern": stored.get("movementPattern"),
        "force": stored.get("force"),
        "mechanic": stored.get("mechanic"),
        "laterality": stored.get("laterality"),
        "translations": stored.get("translations"),
        **present_identity(stored),
        "media": media,
        "image": image,
        "thumbnail": thumbnail,
        "libraryId": stored["libraryId"],
        "companyId": stored["companyId"],
    }
    if override is not None:
        if override["defaultInstructions"] is not None:
            exercise["defaultInstructions"] = override["defaultInstructions"]
        exercise["videoLink"] = override["videoLink"] or stored["videoLink"]
        exercise["aliases"] = _join_aliases(stored, override["aliases"])
        exercise["updatedAt"] = max(stored["updatedAt"], override["updatedAt"])
        exercise["version"] = version_of(stored, override)
    return exercise


def version_of(stored: StoredExercise, override: Override | None) -> int:
    """Return the version of an exercise with its override: it rises with each change of either."""
    return stored["version"] + (override["version"] + 1 if override else 0)


def _join_aliases(stored: StoredExercise, added: Sequence[str]) -> list[str]:
    """Return the shared aliases and the added ones that are not among them."""
    known = {normalize(name) for name in (stored["name"], *stored["aliases"])}
    return [*stored["aliases"], *(alias for alias in added if normalize(alias) not in known)]


def _present_media(services: Services, stored: StoredMedia) -> ExerciseMedia:
    file_id, thumbnail_id = stored.get("fileId"), stored.get("thumbnailId")
    return {
        "_id": stored["_id"],
        "type": stored["type"],
        "key": stored["key"],
        "source": stored["source"],
        "url": str(file_url(services, file_id) if file_id else stored["url"]),
        "thumbnailUrl": file_url(services, thumbnail_id) if thumbnail_id else stored["thumbnailUrl"],
    }


def _pictures(media: Sequence[ExerciseMedia]) -> tuple[str | None, str | None]:
    """Return the links of the picture and of the thumbnail that represent an exercise."""
    image = next((each["url"] for each in media if each["type"] == "image"), None)
    thumbnail = next((each["thumbnailUrl"] for each in media if each["thumbnailUrl"]), None)
    return image, thumbnail or image
