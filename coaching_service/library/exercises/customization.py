"""What a company adds to exercises: overrides of shared ones, and uploaded pictures and videos of both kinds."""

from __future__ import annotations

from coaching_service.core.database import files
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.database.transactions import transactional, version_conflict
from coaching_service.core.errors import Conflict, invalid_field, require_found
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import _media_list, override_store, store
from coaching_service.library.exercises.models import (
    Exercise,
    ExerciseMedia,
    ExerciseOverride,
    Override,
    StoredExercise,
    StoredMedia,
)
from coaching_service.library.exercises.service import present, version_of


async def read_with_override(ctx: Context, exercise_id: ObjectId) -> tuple[Exercise, Override | None]:
    """Return an exercise as the company sees it, and what the company changes in it. Raises NotFound."""
    stored = await _read(ctx, exercise_id)
    override = await override_store.find_one(ctx, exercise_id)
    exercise = present(ctx, stored, override)
    if override is None or not _changes_anything(override):
        return exercise, None
    return exercise, override


@transactional
async def set_override(ctx: Context, exercise_id: ObjectId, sent: ExerciseOverride) -> Exercise:
    """Set the company's own video, instructions and aliases of a shared exercise, and return it as the company sees it.

    Media that the company has added stay. Raises NotFound, Conflict for one of the company's own exercises, and
    Conflict if the exercise has changed since `version`.
    """
    stored = await _read_shared(ctx, exercise_id)
    version = sent.get("version")
    if version is not None and version != version_of(stored, await override_store.find_one(ctx, exercise_id)):
        raise version_conflict()
    override = await override_store.save(
        ctx,
        exercise_id,
        {
            "videoLink": sent["videoLink"],
            "defaultInstructions": sent["defaultInstructions"],
            "aliases": sent["aliases"],
        },
    )
    return present(ctx, stored, override)


@transactional
async def remove_override(ctx: Context, exercise_id: ObjectId) -> Exercise:
    """Remove everything that the company has changed in a shared exercise, its media with their files included.

    Returns the exercise. Raises NotFound, and Conflict for one of the company's own exercises.
    """
    stored = await _read_shared(ctx, exercise_id)
    before = await override_store.find_one(ctx, exercise_id)
    if before is None:
        return present(ctx, stored)
    override = await override_store.clear(ctx, exercise_id)
    await files.discard(ctx, _media_list.file_ids(before["media"]))
    return present(ctx, stored, override)


@transactional
async def add_media(ctx: Context, exercise_id: ObjectId, file: StoredFile | None) -> ExerciseMedia:
    """Add an uploaded picture or video to an exercise, own or shared, and return its entry.

    Raises NotFound, and InvalidFields if there is no file or the exercise has 20 files already.
    """
    stored = await _read(ctx, exercise_id)
    if file is None:
        raise invalid_field("file", "is required", code="REQUIRED")
    media, media_id = _media_list.with_file(await _load_media(ctx, stored), file)
    exercise = await _save_media(ctx, stored, media)
    return next(each for each in exercise["media"] if each["_id"] == media_id)


@transactional
async def remove_media(ctx: Context, exercise_id: ObjectId, media_id: ObjectId) -> None:
    """Remove a picture, video or link from an exercise, with its file.

    Raises NotFound if the exercise does not exist, or has no such entry of the company.
    """
    stored = await _read(ctx, exercise_id)
    remaining = _media_list.without(await _load_media(ctx, stored), media_id)
    media, file_ids = require_found(remaining, "exercise media")
    await _save_media(ctx, stored, media)
    await files.discard(ctx, file_ids)


def _changes_anything(override: Override) -> bool:
    texts = override["videoLink"], override["defaultInstructions"]
    return any(texts) or bool(override["aliases"] or override["media"])


async def _read(ctx: Context, exercise_id: ObjectId) -> StoredExercise:
    return require_found(await store.find_one(ctx, exercise_id), "exercise")


async def _read_shared(ctx: Context, exercise_id: ObjectId) -> StoredExercise:
    stored = await _read(ctx, exercise_id)
    if stored["companyId"] is not None:
        raise Conflict("Only shared exercises have an override; change this exercise itself", code="OWN_EXERCISE")
    return stored


async def _load_media(ctx: Context, stored: StoredExercise) -> list[StoredMedia]:
    """Return the media that the company can change: its own exercise's, or those it has added to a shared one."""
    if stored["companyId"] is not None:
        return stored["media"]
    override = await override_store.find_one(ctx, stored["_id"])
    return override["media"] if override else []


async def _save_media(ctx: Context, stored: StoredExercise, media: list[StoredMedia]) -> Exercise:
    if stored["companyId"] is None:
        return present(ctx, stored, await override_store.save(ctx, stored["_id"], {"media": media}))
    changed = await store.rewrite(ctx, stored["_id"], lambda _: {"media": media})
    return present(ctx, require_found(changed, "exercise"))
