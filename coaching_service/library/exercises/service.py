"""Exercises: the shared library and the company's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import cast

from coaching_service.core.auth.access import EXERCISES
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.database.models import Returned
from coaching_service.core.database.transactions import gather_reads, transactional
from coaching_service.core.errors import Forbidden, NotFound, invalid_field, require_found
from coaching_service.core.external_identity import (
    Upserted,
    find_differences,
    present_identity,
    stored_fields,
    stored_identity,
    upsert,
)
from coaching_service.core.fields import take
from coaching_service.core.file_links import file_url
from coaching_service.core.ids import ObjectId, stable_id
from coaching_service.core.text import normalize
from coaching_service.library.exercises import _media_list, muscles, override_store, store, use_counts
from coaching_service.library.exercises.models import (
    LOAD,
    Exercise,
    ExerciseChange,
    ExerciseDetails,
    ExerciseFields,
    ExerciseLibrary,
    ExerciseMedia,
    ExerciseName,
    ExerciseTexts,
    LoadTypeChanged,
    MuscleGroup,
    MuscleRole,
    NewExercise,
    Override,
    OwnExercise,
    StoredExercise,
    StoredMedia,
    TrainedMuscle,
)

SHARED_LIBRARY = stable_id("library", "shared")


async def get(ctx: Context, exercise_id: ObjectId) -> Exercise:
    """Return an exercise as the company sees it, shared or own. Raises NotFound."""
    stored, override = await gather_reads(
        ctx, store.find_one(ctx, exercise_id), override_store.find_one(ctx, exercise_id)
    )
    return present(ctx, require_found(stored, "exercise"), override)


async def get_for_client(ctx: Context, exercise_id: ObjectId) -> OwnExercise:
    """Return what a client sees of an exercise of the company, shared or own. Raises NotFound."""
    exercise = await get(ctx, exercise_id)
    return take(OwnExercise, exercise)


async def require(ctx: Context, exercise_ids: Iterable[ObjectId]) -> dict[ObjectId, ExerciseName]:
    """Return the names of exercises by identifier. Raises NotFound if one does not exist or is deleted."""
    ids = set(exercise_ids)
    names = await get_usable_names(ctx, ids)
    if names.keys() != ids:
        raise NotFound("exercise")
    return names


async def get_usable_names(ctx: Context, exercise_ids: Iterable[ObjectId]) -> dict[ObjectId, ExerciseName]:
    """Return the names of exercises that exist and are not deleted, by identifier."""
    return await _load_names(ctx, exercise_ids, only_usable=True)


list_own_versions = store.find_versions


async def get_names(ctx: Context, exercise_ids: Iterable[ObjectId]) -> dict[ObjectId, ExerciseName]:
    """Return the names of exercises by identifier, deleted ones included."""
    return await _load_names(ctx, exercise_ids, only_usable=False)


async def _load_names(
    ctx: Context, exercise_ids: Iterable[ObjectId], *, only_usable: bool
) -> dict[ObjectId, ExerciseName]:
    """Return the names of exercises by identifier, with the company's own instructions."""
    ids = list(set(exercise_ids))
    if not ids:
        return {}
    matching, instructions = await gather_reads(
        ctx, store.find_names(ctx, ids, only_usable=only_usable), override_store.find_instructions(ctx, ids)
    )
    names: dict[ObjectId, ExerciseName] = {each["_id"]: each for each in matching}
    for exercise_id in names.keys() & instructions.keys():
        names[exercise_id]["defaultInstructions"] = instructions[exercise_id]
    return names


async def require_known(ctx: Context, exercise_id: ObjectId) -> None:
    """Raise NotFound unless the company can use the exercise, or could before it was deleted."""
    if not await store.find_names(ctx, [exercise_id]):
        raise NotFound("exercise")


async def get_trained_muscles(ctx: Context, exercise_ids: Sequence[ObjectId]) -> dict[ObjectId, list[TrainedMuscle]]:
    """Return the muscles that exercises train by identifier, deleted exercises included."""
    where = {"_id": {"$in": list(exercise_ids)}}
    exercises = await store.exercises.find(ctx, where, fields=("muscleGroups",), hint="_id_") if exercise_ids else []
    return {exercise["_id"]: exercise["muscleGroups"] for exercise in exercises}


list_shared_ids = store.find_shared_ids


count_uses = use_counts.count


@transactional
async def create(ctx: Context, exercise: NewExercise) -> Exercise:
    """Create an exercise of the company. Raises NotFound for an unknown muscle group."""
    stored = await store.create(
        ctx,
        {
            **take(ExerciseDetails, exercise),
            "muscleGroups": _name_muscles(exercise["muscleGroups"]),
            "media": _media_list.merge([], exercise["media"]),
            "libraryId": ctx.company_id,
        },
        stored_identity(exercise),
    )
    return present(ctx, stored)


async def upsert_external(
    ctx: Context, external_id: str, sent: ExerciseChange, complete: Callable[[], NewExercise]
) -> Upserted:
    """Change the company's exercise with this identifier in another system, or create one of what `complete` returns.

    What is stored already is not a change. Raises what `change`, `create` and core's `upsert` raise.
    """
    return await upsert(
        ctx,
        lambda tx: store.find_id_by_external_id(tx, external_id),
        lambda tx, exercise_id: update(tx, exercise_id, sent, only_differences=True),
        lambda tx: create(tx, {**complete(), "externalId": external_id}),
        (EXERCISES.CREATE, EXERCISES.EDIT),
    )


@transactional
async def update(
    ctx: Context, exercise_id: ObjectId, change: ExerciseChange, *, only_differences: bool = False
) -> Exercise:
    """Change the fields of one of the company's exercises that are sent.

    With `only_differences`, fields that already have these values do not count as changes, nor do media that differ
    only in identifiers.
    Raises NotFound, Forbidden for a shared exercise, and Conflict if it has changed since `version`.
    """
    details = {name: value for name, value in change.items() if name not in ("version", "media")}
    fields = cast("ExerciseFields", stored_fields(details))
    if "muscleGroups" in change:
        fields["muscleGroups"] = _name_muscles(change["muscleGroups"])
    before = await _require_own(ctx, exercise_id)

    def changed_fields(stored: StoredExercise) -> ExerciseFields:
        changed = fields
        if "media" in change:
            media = _media_list.merge(stored["media"], change["media"], keep_equal=only_differences)
            changed = {**fields, "media": media}
        return cast("ExerciseFields", find_differences(stored, changed)) if only_differences else changed

    exercise = await store.rewrite(ctx, exercise_id, changed_fields, change.get("version"))
    after = present(ctx, require_found(exercise, "exercise"))
    if after["loadType"] != before["loadType"]:
        await ctx.publish(LoadTypeChanged(exercise_id))
    return after


@transactional
async def delete(ctx: Context, exercise_id: ObjectId) -> None:
    """Delete one of the company's exercises; scheduled blocks keep its name, and it keeps its files.

    Raises NotFound, and Forbidden for a shared exercise.
    """
    await _require_own(ctx, exercise_id)
    deletion = {"$set": {"deletedAt": now(), "externalId": None}}  # the identifier is free
    deleted = await store.exercises.update(ctx, {"_id": exercise_id, "deletedAt": None}, deletion)
    require_found(deleted, "exercise")


def list_libraries(ctx: Context) -> list[ExerciseLibrary]:
    """Return the shared library and the company's own, which has the identifier of the company."""
    company = ctx.caller.company
    return [
        {"_id": SHARED_LIBRARY, "name": "Shared exercises", "companyId": None},
        {"_id": company.id, "name": company.name, "companyId": company.id},
    ]


def list_muscle_groups() -> list[MuscleGroup]:
    """Return every muscle group."""
    return [{"_id": identifier, "name": name} for identifier, name in muscles.NAME_OF.items()]


async def _require_own(ctx: Context, exercise_id: ObjectId) -> Exercise:
    exercise = await get(ctx, exercise_id)
    if exercise["companyId"] is None:
        message = "Shared exercises cannot be changed; set an override of it, or create one of your own"
        raise Forbidden(message, code="SHARED_EXERCISE")
    return exercise


def _name_muscles(sent: Sequence[MuscleRole]) -> list[TrainedMuscle]:
    """Return muscles with their names. Raises NotFound for an unknown one, InvalidFields for a repeated one."""
    roles = {muscle["_id"]: muscle["role"] for muscle in sent}
    if len(roles) < len(sent):
        raise invalid_field("muscleGroups", "must name each muscle only once", code="DUPLICATE")
    if not roles.keys() <= muscles.NAME_OF.keys():
        raise NotFound("muscle group")
    return [{"_id": key, "name": muscles.NAME_OF[key], "role": role} for key, role in roles.items()]


# --- an exercise as a company sees it --------------------------------------------------------------------------------


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
