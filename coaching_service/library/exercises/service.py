"""Exercises: the shared library and the company's own."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import cache, partial
from importlib import resources
from typing import Any, Final, cast

from coaching_service.core import errors, external_identity, list_selection
from coaching_service.core.database import files
from coaching_service.core.database.context import Context, Services, gather_reads, transactional, version_conflict
from coaching_service.core.database.declared import Returned
from coaching_service.core.database.documents import Filter, Ownership, now
from coaching_service.core.database.files import StoredFile
from coaching_service.core.errors import Conflict
from coaching_service.core.fields import take
from coaching_service.core.ids import ObjectId, stable_id
from coaching_service.core.list_selection import UPDATED, ListPart
from coaching_service.core.text import normalize, without_apostrophes
from coaching_service.library.exercises import _search_index, models, store
from coaching_service.library.exercises._search_index import search
from coaching_service.library.exercises.models import TrainedMuscle
from coaching_service.library.exercises.store import BY_NAME, exercises
from coaching_service.people import account
from coaching_service.people.file_links import file_url

SHARED_LIBRARY = stable_id("library", "shared")


async def get(ctx: Context, exercise_id: ObjectId) -> models.Exercise:
    """Read an exercise."""
    stored, override = await gather_reads(ctx, store.find_one(ctx, exercise_id), store.find_override(ctx, exercise_id))
    return present(ctx, errors.require_found(stored, "exercise"), override)


async def get_for_client(ctx: Context, exercise_id: ObjectId) -> models.OwnExercise:
    """Return what a client sees of an exercise of the company, shared or own. Raises NotFound."""
    exercise = await get(ctx, exercise_id)
    return take(models.OwnExercise, exercise)


async def require(ctx: Context, exercise_ids: Iterable[ObjectId]) -> dict[ObjectId, models.ExerciseName]:
    """Return the names of exercises by identifier. Raises NotFound if one does not exist or is deleted."""
    ids = set(exercise_ids)
    names = await get_names(ctx, ids, only_usable=True)
    if names.keys() != ids:
        raise errors.NotFound("exercise")
    return names


async def list_own_versions(ctx: Context, ids: Sequence[ObjectId]) -> dict[ObjectId, int]:
    """Return the versions of those of some exercises that are the company's own and not deleted."""
    where: Filter = {"_id": {"$in": list(ids)}, "deletedAt": None}
    own = await exercises.find(ctx, where, fields=("version",), hint="_id_", ownership="own")
    return {exercise["_id"]: exercise["version"] for exercise in own}


async def get_names(
    ctx: Context, exercise_ids: Iterable[ObjectId], *, only_usable: bool = False
) -> dict[ObjectId, models.ExerciseName]:
    """Return the names of exercises by identifier, with the company's own instructions.

    Deleted ones are included unless `only_usable`.
    """
    if not (ids := list(set(exercise_ids))):
        return {}
    matching, instructions = await gather_reads(
        ctx, store.find_names(ctx, ids, only_usable=only_usable), store.find_own_instructions(ctx, ids)
    )
    names: dict[ObjectId, models.ExerciseName] = {each["_id"]: each for each in matching}
    for exercise_id in names.keys() & instructions.keys():
        names[exercise_id]["defaultInstructions"] = instructions[exercise_id]
    return names


async def require_known(ctx: Context, exercise_id: ObjectId) -> None:
    """Raise NotFound unless the company can use the exercise, or could before it was deleted."""
    if not await store.find_names(ctx, [exercise_id]):
        raise errors.NotFound("exercise")


async def get_trained_muscles(ctx: Context, exercise_ids: Sequence[ObjectId]) -> dict[ObjectId, list[TrainedMuscle]]:
    """Return the muscles that exercises train by identifier, deleted exercises included."""
    where = {"_id": {"$in": list(exercise_ids)}}
    exercises = await store.exercises.find(ctx, where, fields=("muscleGroups",), hint="_id_") if exercise_ids else []
    return {exercise["_id"]: exercise["muscleGroups"] for exercise in exercises}


async def get_by_external_id(ctx: Context, external_id: str) -> models.Exercise:
    """Read the exercise with an external identifier."""
    return await get(ctx, errors.require_found(await store.find_id_by_external_id(ctx, external_id), "exercise"))


async def list_shared_ids(ctx: Context) -> list[ObjectId]:
    """Return the identifiers of the shared exercises, deleted ones included."""
    shared = await exercises.find(ctx, {}, fields=("_id",), ownership="shared", hint=BY_NAME)
    return [exercise["_id"] for exercise in shared]


@transactional
async def create(ctx: Context, body: models.NewExercise) -> models.Exercise:
    """Create an exercise."""
    content: models.ExerciseContent = {
        **take(models.ExerciseDetails, body),
        "muscleGroups": _name_muscles(body["muscleGroups"]),
        "media": models.merge([], body["media"]),
        "libraryId": ctx.company_id,
    }
    private = {**store.search_fields(content), "deletedAt": None}
    return present(ctx, await exercises.insert(ctx, {**content, **external_identity.stored_identity(body), **private}))


@transactional
async def update(
    ctx: Context, exercise_id: ObjectId, body: models.ExerciseChange, *, only_differences: bool = False
) -> models.Exercise:
    """Change one of the company's own exercises.

    Shared exercises cannot be changed (403).
    """
    details = {name: value for name, value in body.items() if name not in ("version", "media")}
    fields = cast("models.ExerciseFields", external_identity.stored_fields(details))
    if "muscleGroups" in body:
        fields["muscleGroups"] = _name_muscles(body["muscleGroups"])
    before = await _require_own(ctx, exercise_id)
    # With `only_differences`, what is stored already is no change, nor are media that differ only in identifiers.

    def changed_fields(stored: models.StoredExercise) -> models.ExerciseFields:
        changed = dict(fields)
        if "media" in body:
            changed["media"] = models.merge(stored["media"], body["media"], keep_equal=only_differences)
        changed = external_identity.find_differences(stored, changed) if only_differences else changed
        return cast("models.ExerciseFields", changed)

    exercise = await store.rewrite(ctx, exercise_id, changed_fields, body.get("version"))
    after = present(ctx, errors.require_found(exercise, "exercise"))
    if after["loadType"] != before["loadType"]:
        await ctx.publish(models.LoadTypeChanged(exercise_id))
    return after


@transactional
async def delete(ctx: Context, exercise_id: ObjectId) -> None:
    """Delete one of the company's own exercises.

    Scheduled blocks keep its name.
    """
    await _require_own(ctx, exercise_id)
    deletion = {"$set": {"deletedAt": now(), "externalId": None}}  # the identifier is free
    deleted = await store.exercises.update(ctx, {"_id": exercise_id, "deletedAt": None}, deletion)
    errors.require_found(deleted, "exercise")


def list_muscle_groups() -> list[models.MuscleGroup]:
    """Return every muscle group."""
    return [{"_id": identifier, "name": name} for identifier, name in models.MUSCLE_NAMES.items()]


async def _require_own(ctx: Context, exercise_id: ObjectId) -> models.Exercise:
    exercise = await get(ctx, exercise_id)
    if exercise["companyId"] is None:
        message = "Shared exercises cannot be changed; set an override of it, or create one of your own"
        raise errors.Forbidden(message, code="SHARED_EXERCISE")
    return exercise


def _name_muscles(sent: Sequence[models.MuscleRole]) -> list[TrainedMuscle]:
    """Return muscles with their names. Raises NotFound for an unknown one, InvalidFields for a repeated one."""
    roles = {muscle["_id"]: muscle["role"] for muscle in sent}
    if len(roles) < len(sent):
        raise errors.invalid_field("muscleGroups", "must name each muscle only once", code="DUPLICATE")
    if not roles.keys() <= models.MUSCLE_NAMES.keys():
        raise errors.NotFound("muscle group")
    return [{"_id": key, "name": models.MUSCLE_NAMES[key], "role": role} for key, role in roles.items()]


# --- An exercise as a company sees it --------------------------------------------------------------------------------


def present(ctx: Context, stored: models.StoredExercise, override: models.Override | None = None) -> models.Exercise:
    """Return an exercise as it is read; the media that the company adds come before the shared ones."""
    media = [_present_media(ctx, each) for each in [*(override["media"] if override else []), *stored["media"]]]
    image = next((each["url"] for each in media if each["type"] == "image"), None)
    thumbnail = next((each["thumbnailUrl"] for each in media if each["thumbnailUrl"]), None)
    exercise: models.Exercise = {
        **take(Returned, stored),
        **take(models.ExerciseTexts, stored),
        "loadType": stored.get("loadType", models.LOAD),
        "movementPattern": stored.get("movementPattern"),
        "force": stored.get("force"),
        "mechanic": stored.get("mechanic"),
        "laterality": stored.get("laterality"),
        "translations": stored.get("translations"),
        **external_identity.present_identity(stored),
        "media": media,
        "image": image,
        "thumbnail": thumbnail or image,
        "libraryId": stored["libraryId"],
        "companyId": stored["companyId"],
    }
    if override is not None:
        if override["defaultInstructions"] is not None:
            exercise["defaultInstructions"] = override["defaultInstructions"]
        exercise["videoLink"] = override["videoLink"] or stored["videoLink"]
        known = {normalize(name) for name in (stored["name"], *stored["aliases"])}
        exercise["aliases"] = [
            *stored["aliases"],
            *(alias for alias in override["aliases"] if normalize(alias) not in known),
        ]
        exercise["updatedAt"] = max(stored["updatedAt"], override["updatedAt"])
        exercise["version"] = version_of(stored, override)
    return exercise


def version_of(stored: models.StoredExercise, override: models.Override | None) -> int:
    """Return the version of an exercise with its override: it rises with each change of either."""
    return stored["version"] + (override["version"] + 1 if override else 0)


def _present_media(ctx: Context, stored: models.StoredMedia) -> models.ExerciseMedia:
    file_id, thumbnail_id = stored.get("fileId"), stored.get("thumbnailId")
    return {
        "_id": stored["_id"],
        "type": stored["type"],
        "key": stored["key"],
        "source": stored["source"],
        "url": str(file_url(ctx, file_id) if file_id else stored["url"]),
        "thumbnailUrl": file_url(ctx, thumbnail_id) if thumbnail_id else stored["thumbnailUrl"],
    }


# --- Lists of exercises: by name, by last change, or by how well they match a search; and suggestions while typing ----


async def list_exercises(
    ctx: Context,
    *,
    page: int,
    size: int,
    keywords: str = "",
    kind: str | None = None,
    own_only: bool = False,
    library_id: ObjectId | None = None,
    external_id: str | None = None,
    selection: list_selection.ListSelection = list_selection.ALL_ENTRIES,
    after: str | None = None,
) -> models.ExercisePage:
    """Return one page of the exercises that the company can use, by name or by how well they match `keywords`.

    With `after`, those after a cursor. `kind` is `my`, `public`, or a type of exercise; `external_id` is the identifier
    in another system. A change of the company's override of a shared exercise is a change of the exercise.
    """
    condition: Filter = {}
    ownership: Ownership = "own" if own_only or kind == "my" else "shared" if kind == "public" else "all"
    if ownership == "all" and kind is not None:
        condition["type"] = kind
    if library_id is not None:
        condition["libraryId"] = library_id
    if external_id is not None:
        condition["externalId"] = external_id
    filters = {"keywords": keywords.strip(), "ownership": ownership, **condition, **selection.for_cursor()}
    condition |= selection.filter()
    if selection.updated_since is not None:  # a change of the company's override counts too
        overridden = await store.find_override_updates(ctx, selection.updated_since)
        condition["$or"] = [{UPDATED: condition.pop(UPDATED)}, {"_id": {"$in": list(overridden)}}]
    if selection.by_update:
        list_part = ListPart(ctx, "exercises", filters, list_selection.BY_UPDATE, page=page, size=size, after=after)
        by_update = store.selecting_index(condition) or store.BY_LAST_UPDATE
        updates, overridden = await gather_reads(
            ctx,
            store.exercises.find(
                ctx, {"deletedAt": None, **condition}, fields=(UPDATED,), ownership=ownership, hint=by_update
            ),
            store.find_override_updates(ctx),
        )
        listed, tolerant = cast("list[Any]", updates), False
        if filters["keywords"]:
            result = search(await _search_index.load_index(ctx, condition, ownership), filters["keywords"], {})
            matching, tolerant = set(result.ids), result.tolerant
            listed = [each for each in listed if each["_id"] in matching]
        for each in listed:
            each["updatedAt"] = max(each["updatedAt"], overridden.get(each["_id"], each["updatedAt"]))
        listed.sort(key=lambda each: (each["updatedAt"], each["_id"]))
        taken, cursor = list_part.take_page_from(listed)
        exercises = await present_all(ctx, await store.find_by_ids(ctx, [each["_id"] for each in taken]))
        part = cast("models.ExercisePage", list_part.numbered(exercises, len(listed), cursor))
        return {**part, "tolerant": True} if tolerant else part
    if not filters["keywords"]:
        order = store.ORDER
        list_part = ListPart(ctx, "exercises", filters, order, page=page, size=size, after=after, private=order[:1])
        condition, hint = {"deletedAt": None, **condition}, store.selecting_index(condition)
        stored, total = await list_part.read(ctx, store.exercises, condition, hint=hint, ownership=ownership)
        docs, cursor = list_part.take_page(stored)
        return cast("models.ExercisePage", list_part.numbered(await present_all(ctx, docs), total, cursor))
    list_part = ListPart(ctx, "exercises", filters, list_selection.RANKED, page=page, size=size, after=after)
    index, use_counts = await gather_reads(
        ctx, _search_index.load_index(ctx, condition, ownership), load_use_counts(ctx)
    )
    result = search(index, keywords, use_counts)
    ids, cursor = list_part.take_ranked(result.ids)
    exercises = await present_all(ctx, await store.find_by_ids(ctx, ids))
    part = cast("models.ExercisePage", list_part.numbered(exercises, len(result.ids), cursor))
    return {**part, "tolerant": True} if result.tolerant else part


async def present_all(ctx: Context, stored: Sequence[models.StoredExercise]) -> list[models.Exercise]:
    """Return stored exercises as the company sees them."""
    shared = [each["_id"] for each in stored if each["companyId"] is None]
    overrides = await store.find_overrides(ctx, shared) if shared else {}
    return [present(ctx, each, overrides.get(each["_id"])) for each in stored]


async def suggest_exercises(
    ctx: Context, keywords: str, size: int, recent: Collection[ObjectId] = ()
) -> list[models.Exercise]:
    """Return at most `size` exercises that match `keywords` as in a list, or of all exercises if there are none.

    An exercise of exactly this name is first, then `recent` ones in their order, then those that the company plans most
    often, then the others in the order of a list.
    """
    keywords, places = keywords.strip(), {each: place for place, each in enumerate(recent)}
    if keywords:
        index, use_counts = await gather_reads(ctx, _search_index.load_index(ctx, {}, "all"), load_use_counts(ctx))
        name = without_apostrophes(normalize(keywords))
        exact = {entry["_id"] for entry in index.entries if entry["search"].partition("\n")[0] == name}
        ids = search(index, keywords, use_counts).ids
        ids = sorted(ids, key=lambda each: (each not in exact, places.get(each, len(places)), -use_counts.get(each, 0)))
        return await present_all(ctx, await store.find_by_ids(ctx, ids[:size]))
    use_counts, by_name = await gather_reads(ctx, load_use_counts(ctx), list_exercises(ctx, page=1, size=size))
    used = {each for each in use_counts if each not in places}
    ids = [*places, *sorted(used, key=lambda each: (-use_counts[each], each))]
    # Some of the exercises that were used may have been deleted since.
    known_first = await present_all(ctx, (await store.find_by_ids(ctx, ids[: 2 * size]))[:size])
    known = {exercise["_id"] for exercise in known_first}
    return [*known_first, *(exercise for exercise in by_name["docs"] if exercise["_id"] not in known)][:size]


# --- Exercises that can be done in place of another one ---------------------------------------------------------------


_FIELDS: Final = ("name", "muscleGroups", "movementPattern", "equipment")


async def list_alternatives(
    ctx: Context, exercise_id: ObjectId, count: int, known: Sequence[ObjectId] = ()
) -> list[models.ExerciseKind]:
    """Return at most `count` exercises with the movement pattern or a primary muscle of an exercise, best first.

    First those with its pattern, then those with its equipment, then `known` ones in their order, then those with a
    primary muscle of it; among these, those that the company plans most, then by name. Empty for an exercise of another
    company.
    """
    if (exercise := await exercises.find_one(ctx, {"_id": exercise_id}, _FIELDS)) is None:
        return []
    muscles = _primary_muscles(exercise)
    pattern = exercise.get("movementPattern")
    alike: list[Filter] = [
        {"muscleGroups": {"$elemMatch": {"_id": {"$in": list(muscles)}, "role": "primary"}}},
        *([{"movementPattern": pattern}] if pattern else []),
    ]
    others = {"deletedAt": None, "_id": {"$ne": exercise_id}, "$or": alike}
    similar, uses = await gather_reads(
        ctx, exercises.find(ctx, others, fields=_FIELDS, hint=BY_NAME), load_use_counts(ctx)
    )

    places = {each: place for place, each in enumerate(known)}

    def rank(each: models.ExerciseKind) -> tuple[Any, ...]:
        has_pattern = pattern is not None and each.get("movementPattern") == pattern
        has_equipment = exercise["equipment"] is not None and each["equipment"] == exercise["equipment"]
        place = places.get(each["_id"], len(places))
        has_muscle = bool(muscles & _primary_muscles(each))
        return (
            not has_pattern,
            not has_equipment,
            place,
            not has_muscle,
            -uses.get(each["_id"], 0),
            each["name"].casefold(),
        )

    return sorted(similar, key=rank)[:count]


async def list_training(ctx: Context, muscle_id: ObjectId) -> set[ObjectId]:
    """Return the exercises that train a muscle most."""
    where: Filter = {"deletedAt": None, "muscleGroups": {"$elemMatch": {"_id": muscle_id, "role": "primary"}}}
    return {each["_id"] for each in await exercises.find(ctx, where, fields=("_id",), hint=BY_NAME)}


async def find_movement(ctx: Context, exercise_id: ObjectId) -> tuple[str, str] | None:
    """Return the movement pattern and the equipment of an exercise, None unless both are known."""
    exercise = await exercises.find_one(ctx, {"_id": exercise_id}, ("movementPattern", "equipment"))
    if exercise is None or not exercise.get("movementPattern") or not exercise["equipment"]:
        return None
    return str(exercise.get("movementPattern")), exercise["equipment"]


def _primary_muscles(exercise: models.ExerciseKind) -> set[ObjectId]:
    return {muscle["_id"] for muscle in exercise["muscleGroups"] if muscle["role"] == "primary"}


# --- What a company adds to exercises: overrides of shared ones, and uploaded pictures and videos of both kinds -------


async def read_with_override(ctx: Context, exercise_id: ObjectId) -> tuple[models.Exercise, models.Override | None]:
    """Return an exercise as the company sees it, and what the company changes in it. Raises NotFound."""
    stored = await _read(ctx, exercise_id)
    override = await store.find_override(ctx, exercise_id)
    exercise = present(ctx, stored, override)
    changes = ("videoLink", "defaultInstructions", "aliases", "media")
    return exercise, override if override is not None and any(map(override.get, changes)) else None


@transactional
async def set_override(ctx: Context, exercise_id: ObjectId, body: models.ExerciseOverride) -> models.Exercise:
    """Set the company's own video, instructions and aliases of a shared exercise.

    Returns the exercise as the company sees it from now on, everywhere. Other companies are not affected.
    """
    stored = await _read_shared(ctx, exercise_id)
    if body.get("version") not in (None, version_of(stored, await store.find_override(ctx, exercise_id))):
        raise version_conflict()
    fields: models.OverrideFields = {
        "videoLink": body["videoLink"],
        "defaultInstructions": body["defaultInstructions"],
        "aliases": body["aliases"],
    }
    return present(ctx, stored, await store.save_override(ctx, exercise_id, fields))


@transactional
async def remove_override(ctx: Context, exercise_id: ObjectId) -> models.Exercise:
    """Remove everything that the company has changed in a shared exercise.

    Its uploaded pictures and videos are deleted too. Returns the exercise.
    """
    stored = await _read_shared(ctx, exercise_id)
    if (before := await store.find_override(ctx, exercise_id)) is None:
        return present(ctx, stored)
    # The document stays, so that versions of the exercise never repeat.
    override = await store.overrides.update(ctx, {"exerciseId": exercise_id}, {"$set": dict(store.NOTHING)})
    await files.discard(ctx, models.file_ids(before["media"]))
    return present(ctx, stored, override)


@transactional
async def add_media(ctx: Context, exercise_id: ObjectId, file: StoredFile | None) -> models.ExerciseMedia:
    """Add a picture or video to an exercise, own or shared.

    JPEG, PNG, WebP, GIF, HEIC (stored as JPEG), MP4, QuickTime or WebM, recognised by content. Metadata, such as the
    location, is removed, and so are tracks other than picture and sound; a video with one that cannot be removed is
    refused. On a shared exercise only the company sees it.
    """
    stored = await _read(ctx, exercise_id)
    if file is None:
        raise errors.invalid_field("file", "is required", code="REQUIRED")
    media, media_id = models.with_file(await _load_media(ctx, stored), file)
    exercise = await _save_media(ctx, stored, media)
    return next(each for each in exercise["media"] if each["_id"] == media_id)


@transactional
async def remove_media(ctx: Context, exercise_id: ObjectId, media_id: ObjectId) -> None:
    """Remove a picture, video or link that the company has added to an exercise."""
    stored = await _read(ctx, exercise_id)
    remaining = models.without(await _load_media(ctx, stored), media_id)
    media, file_ids = errors.require_found(remaining, "exercise media")
    await _save_media(ctx, stored, media)
    await files.discard(ctx, file_ids)


async def _read(ctx: Context, exercise_id: ObjectId) -> models.StoredExercise:
    return errors.require_found(await store.find_one(ctx, exercise_id), "exercise")


async def _read_shared(ctx: Context, exercise_id: ObjectId) -> models.StoredExercise:
    stored = await _read(ctx, exercise_id)
    if stored["companyId"] is not None:
        raise Conflict("Only shared exercises have an override; change this exercise itself", code="OWN_EXERCISE")
    return stored


async def _load_media(ctx: Context, stored: models.StoredExercise) -> list[models.StoredMedia]:
    """Return the media that the company can change: its own exercise's, or those it has added to a shared one."""
    if stored["companyId"] is not None:
        return stored["media"]
    override = await store.find_override(ctx, stored["_id"])
    return override["media"] if override else []


async def _save_media(ctx: Context, stored: models.StoredExercise, media: list[models.StoredMedia]) -> models.Exercise:
    if stored["companyId"] is None:
        return present(ctx, stored, await store.save_override(ctx, stored["_id"], {"media": media}))
    changed = await store.rewrite(ctx, stored["_id"], lambda _: {"media": media})
    return present(ctx, errors.require_found(changed, "exercise"))


# --- The shared library: JSON files in this package, published to the database by the operator ------------------------


class LibraryEntry(models.Movement):
    """An exercise as it is written in the files, with its translations; `cue` is its instruction.

    `loadType` is written only where loads are assistance or added to the body's weight.
    """

    loadType: models.LoadType
    name: str
    aliases: list[str]
    type: models.ExerciseType
    level: models.Level
    equipment: str
    primary: list[str]
    secondary: list[str]
    tags: list[str]
    cue: str
    translations: models.ExerciseTranslations


@cache
def shared_entries() -> tuple[LibraryEntry, ...]:
    """Return the library as it is written."""
    folder = resources.files(__package__) / "shared_library"
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".json"))
    listed: list[Any] = []
    for name in names:
        spanish = json.loads((folder / "translations" / "es" / name).read_text("utf-8"))
        written, usual = json.loads((folder / name).read_text("utf-8")), {"loadType": models.LOAD}
        listed += [{**usual, **entry, "translations": {"es": spanish[entry["name"]]}} for entry in written]
    return tuple(listed)


async def publish_shared(services: Services) -> int:
    """Store the library in the database, or update it. Returns how many exercises were written or deleted."""
    shared: list[models.SharedExercise] = []
    for entry in shared_entries():
        # What changes with an entry; the usual type of load, which came later, is left out.
        content = {name: value for name, value in entry.items() if (name, value) != ("loadType", models.LOAD)}
        shared.append(
            {
                "_id": stable_id("exercise", entry["name"]),
                "name": entry["name"],
                "aliases": entry["aliases"],
                "type": entry["type"],
                "level": entry["level"],
                "defaultInstructions": entry["cue"],
                "videoLink": None,
                "tags": entry["tags"],
                "muscleGroups": [*_muscles(entry["primary"], "primary"), *_muscles(entry["secondary"], "secondary")],
                "equipment": entry["equipment"],
                "loadType": entry["loadType"],
                **take(models.Movement, entry),
                "translations": entry["translations"],
                "media": [],
                "libraryId": SHARED_LIBRARY,
                "digest": hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest(),
            }
        )
    return await store.publish(services, shared)


def _muscles(names: list[str], role: models.Role) -> list[TrainedMuscle]:
    return [{"_id": models.MUSCLE_IDS[name], "name": name, "role": role} for name in names]


# --- How often each company has planned each exercise: counted in memory, and stored every second ---------------------
# The counts only order search results. As part of a transaction they would make two coaches conflict who plan the same
# exercise at the same time, and a write for each item would cost as much as two reads.


def count_uses(ctx: Context, exercise_ids: Iterable[ObjectId]) -> None:
    """Count one more use of each exercise once the transaction is committed: it moves up in search results."""
    ctx.changes.after_commit.append(partial(ctx.services.exercise_uses.add, ctx.company_id, list(set(exercise_ids))))


async def load_use_counts(ctx: Context) -> dict[ObjectId, int]:
    """Return how often the company has planned each exercise that it uses.

    Other processes are a second behind. Uses that are being stored at this moment may count twice, but are not missing.
    """
    pending = Counter(ctx.services.exercise_uses.of(ctx.company_id))
    return pending + Counter(await store.find_uses(ctx))


async def store_counts(services: Services) -> None:
    """Store what has been counted since the last time, except of companies that have been deleted meanwhile.

    What cannot be stored is lost.
    """
    if not (counted := services.exercise_uses.take()):
        return
    try:
        existing = await account.find_existing(services, list(counted))
        await store.add_uses(services, {company: counted[company] for company in existing})
    finally:
        services.exercise_uses.end_storing()
