"""Exercises: the shared library and the company's own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import cast

from coaching_service.core.auth.permissions import EXERCISES
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter, Ownership
from coaching_service.core.database.transactions import gather_reads, transactional
from coaching_service.core.errors import Forbidden, NotFound, invalid_field
from coaching_service.core.external_identity import (
    Upserted,
    find_differences,
    stored_fields,
    stored_identity,
    upsert,
)
from coaching_service.core.ids import ObjectId, stable_id
from coaching_service.core.list_selection import ALL_ENTRIES, BY_UPDATE, UPDATED, ListSelection
from coaching_service.core.text import normalize
from coaching_service.core.walking import RankedWalk, Walk
from coaching_service.library.exercises import media_list, muscles, override_store, store
from coaching_service.library.exercises.models import (
    Exercise,
    ExerciseChange,
    ExerciseFields,
    ExerciseInput,
    ExerciseLibrary,
    ExerciseMatch,
    ExerciseName,
    ExercisePage,
    MuscleGroup,
    MuscleInput,
    OwnExercise,
    ResolvedName,
    SearchEntry,
    StoredExercise,
    TrainedMuscle,
)
from coaching_service.library.exercises.presentation import present
from coaching_service.library.exercises.resolution import Candidate, resolve
from coaching_service.library.exercises.search import search, without_apostrophes

SHARED_LIBRARY = stable_id("library", "shared")
_MIN_SURE_SCORE = 85.0  # of a match that is taken without asking


async def list_page(
    ctx: Context,
    *,
    page: int,
    size: int,
    keywords: str = "",
    kind: str | None = None,
    own_only: bool = False,
    library_id: ObjectId | None = None,
    external_id: str | None = None,
    selection: ListSelection = ALL_ENTRIES,
    after: str | None = None,
) -> ExercisePage:
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
    condition |= await _selection_filter(ctx, selection)
    if selection.by_update:
        walk = Walk(ctx, "exercises", filters, BY_UPDATE, page=page, size=size, after=after)
        return await _page_by_update(ctx, condition, ownership, filters["keywords"], walk)
    if not filters["keywords"]:
        order = store.ORDER
        walk = Walk(ctx, "exercises", filters, order, page=page, size=size, after=after, private=order[:1])
        stored, total = await store.find_page(ctx, condition, walk, ownership=ownership)
        docs, cursor = walk.cut(stored)
        return cast("ExercisePage", walk.page(await _present_all(ctx, docs), total, cursor))
    ranked = RankedWalk(ctx, "exercises", filters, page=page, size=size, after=after)
    entries, use_counts = await gather_reads(
        ctx, _load_search_entries(ctx, condition, ownership), store.load_use_counts(ctx)
    )
    result = search(entries, keywords, use_counts)
    ids, cursor = ranked.cut(result.ids)
    exercises = await _present_all(ctx, await store.find_by_ids(ctx, ids))
    part = cast("ExercisePage", ranked.page(exercises, len(result.ids), cursor))
    return {**part, "tolerant": True} if result.tolerant else part


async def _selection_filter(ctx: Context, selection: ListSelection) -> Filter:
    """Return the filter of a selection; an exercise has also changed when the company has changed its override."""
    where = selection.filter()
    if selection.updated_since is None:
        return where
    overridden = await override_store.find_updates(ctx, selection.updated_since)
    changed = {UPDATED: where.pop(UPDATED)}
    return {**where, "$or": [changed, {"_id": {"$in": list(overridden)}}]}


async def _page_by_update(
    ctx: Context, condition: Filter, ownership: Ownership, keywords: str, walk: Walk
) -> ExercisePage:
    """Return a page in the order of the last change, of which each company has its own because of its overrides."""
    updates, overridden = await gather_reads(
        ctx, store.find_updates(ctx, condition, ownership=ownership), override_store.find_updates(ctx)
    )
    listed, tolerant = updates, False
    if keywords:
        result = search(await _load_search_entries(ctx, condition, ownership), keywords, {})
        matching, tolerant = set(result.ids), result.tolerant
        listed = [each for each in updates if each["_id"] in matching]
    for each in listed:
        each["updatedAt"] = max(each["updatedAt"], overridden.get(each["_id"], each["updatedAt"]))
    listed.sort(key=lambda each: (each["updatedAt"], each["_id"]))
    docs, cursor = walk.cut_from(listed)
    exercises = await _present_all(ctx, await store.find_by_ids(ctx, [each["_id"] for each in docs]))
    part = cast("ExercisePage", walk.page(exercises, len(listed), cursor))
    return {**part, "tolerant": True} if tolerant else part


async def resolve_names(ctx: Context, names: Sequence[str]) -> list[ResolvedName]:
    """Return what names of exercises mean, in the same order."""
    entries, use_counts = await gather_reads(ctx, _load_search_entries(ctx, {}, "all"), store.load_use_counts(ctx))
    # Up to a second for 50 unknown names: in a thread, other requests continue meanwhile.
    resolutions = await asyncio.to_thread(lambda: [resolve(entries, name, use_counts) for name in names])
    candidates = [each for resolution in resolutions for each in (resolution.match, *resolution.alternatives) if each]
    names_by_id = await load_names(ctx, [candidate.exercise_id for candidate in candidates])

    def describe(candidate: Candidate) -> ExerciseMatch:
        exercise = names_by_id[candidate.exercise_id]
        return {"_id": exercise["_id"], "name": exercise["name"], "score": candidate.score}

    return [
        {
            "name": name,
            "match": describe(resolution.match) if resolution.match else None,
            "alternatives": [describe(candidate) for candidate in resolution.alternatives],
        }
        for name, resolution in zip(names, resolutions, strict=True)
    ]


async def choose_matches(ctx: Context, resolved: Sequence[ResolvedName]) -> list[ExerciseMatch | None]:
    """Return the one exercise that each resolved name means, in the same order; None if there is none or several.

    It has exactly this name, or resembles it most and with a score of at least 85; of exercises with the same name it
    is the company's own.
    """
    candidates = [_best_candidates(each) for each in resolved]
    several = [match["_id"] for matches in candidates if len(matches) > 1 for match in matches]
    own = await store.find_own_ids(ctx, several) if several else set()

    def choose(matches: Sequence[ExerciseMatch]) -> ExerciseMatch | None:
        chosen = matches if len(matches) == 1 else [match for match in matches if match["_id"] in own]
        return chosen[0] if len(chosen) == 1 else None

    return [choose(matches) for matches in candidates]


def _best_candidates(resolved: ResolvedName) -> list[ExerciseMatch]:
    """Return the exercises that have exactly this name, else those that resemble it most and have the same name."""
    candidates = [each for each in (resolved["match"], *resolved["alternatives"]) if each is not None]
    if exact := [each for each in candidates if normalize(each["name"]) == normalize(resolved["name"])]:
        return exact
    best = max((each["score"] for each in candidates), default=0.0)
    if resolved["match"] is None or best < _MIN_SURE_SCORE:
        return []
    # The match comes first: the search ranks it before others of the same score.
    first = next(each for each in candidates if each["score"] == best)
    return [each for each in candidates if normalize(each["name"]) == normalize(first["name"])]


async def list_deleted_names(ctx: Context, name: str) -> list[str]:
    """Return the names of the company's own exercises that were deleted and have all words of `name`."""
    words = set(normalize(without_apostrophes(name)).split())
    names = await store.find_deleted_names(ctx)
    return [each for each in names if words <= set(normalize(without_apostrophes(each)).split())]


async def read(ctx: Context, exercise_id: ObjectId) -> Exercise:
    """Return an exercise as the company sees it, shared or own. Raises NotFound."""
    stored, override = await gather_reads(
        ctx, store.find_one(ctx, exercise_id), override_store.find_one(ctx, exercise_id)
    )
    if stored is None:
        raise NotFound("exercise")
    return present(ctx, stored, override)


async def read_for_client(ctx: Context, exercise_id: ObjectId) -> OwnExercise:
    """Return what a client sees of an exercise of the company, shared or own. Raises NotFound."""
    exercise = await read(ctx, exercise_id)
    return {
        "_id": exercise["_id"],
        "name": exercise["name"],
        "type": exercise["type"],
        "level": exercise["level"],
        "defaultInstructions": exercise["defaultInstructions"],
        "videoLink": exercise["videoLink"],
        "muscleGroups": exercise["muscleGroups"],
        "equipment": exercise["equipment"],
        "media": exercise["media"],
        "image": exercise["image"],
        "thumbnail": exercise["thumbnail"],
    }


async def require(ctx: Context, exercise_ids: Iterable[ObjectId]) -> dict[ObjectId, ExerciseName]:
    """Return the names of exercises by identifier. Raises NotFound if one does not exist or is deleted."""
    ids = set(exercise_ids)
    names = await load_usable_names(ctx, ids)
    if names.keys() != ids:
        raise NotFound("exercise")
    return names


async def load_usable_names(ctx: Context, exercise_ids: Iterable[ObjectId]) -> dict[ObjectId, ExerciseName]:
    """Return the names of those exercises that exist and are not deleted, by identifier."""
    ids = set(exercise_ids)
    return await _load_names(ctx, store.find_usable_names(ctx, list(ids)), ids) if ids else {}


async def load_names(ctx: Context, exercise_ids: Iterable[ObjectId]) -> dict[ObjectId, ExerciseName]:
    """Return the names of exercises by identifier, deleted ones included."""
    ids = set(exercise_ids)
    return await _load_names(ctx, store.find_names(ctx, list(ids)), ids) if ids else {}


async def _load_names(
    ctx: Context, read_names: Awaitable[list[ExerciseName]], exercise_ids: Collection[ObjectId]
) -> dict[ObjectId, ExerciseName]:
    """Return the names that `read_names` finds by exercise, with the company's own instructions."""
    matching, instructions = await gather_reads(
        ctx, read_names, override_store.find_instructions(ctx, list(exercise_ids))
    )
    names: dict[ObjectId, ExerciseName] = {each["_id"]: each for each in matching}
    for exercise_id in names.keys() & instructions.keys():
        names[exercise_id]["defaultInstructions"] = instructions[exercise_id]
    return names


async def require_known(ctx: Context, exercise_id: ObjectId) -> None:
    """Raise NotFound unless the company can use the exercise, or could before it was deleted."""
    if not await store.find_names(ctx, [exercise_id]):
        raise NotFound("exercise")


async def load_trained_muscles(ctx: Context, exercise_ids: Sequence[ObjectId]) -> dict[ObjectId, list[TrainedMuscle]]:
    """Return the muscles that exercises train by identifier, deleted exercises included."""
    exercises = await store.find_muscles(ctx, exercise_ids) if exercise_ids else []
    return {exercise["_id"]: exercise["muscleGroups"] for exercise in exercises}


async def list_shared_ids(ctx: Context) -> list[ObjectId]:
    """Return the identifiers of the shared exercises, deleted ones included."""
    return await store.find_shared_ids(ctx)


async def count_uses(ctx: Context, exercise_ids: Iterable[ObjectId]) -> None:
    """Count one more use of each exercise, which moves it up in search results."""
    await store.count_uses(ctx, list(set(exercise_ids)))


@transactional
async def create(ctx: Context, exercise: ExerciseInput) -> Exercise:
    """Create an exercise of the company. Raises NotFound for an unknown muscle group."""
    stored = await store.insert(
        ctx,
        {
            "name": exercise["name"],
            "aliases": exercise["aliases"],
            "type": exercise["type"],
            "level": exercise["level"],
            "defaultInstructions": exercise["defaultInstructions"],
            "videoLink": exercise["videoLink"],
            "tags": exercise["tags"],
            "muscleGroups": _name_muscles(exercise["muscleGroups"]),
            "equipment": exercise["equipment"],
            "media": media_list.merge([], exercise["media"]),
            "libraryId": ctx.company_id,
        },
        stored_identity(exercise),
    )
    return present(ctx, stored)


async def upsert_external(
    ctx: Context, external_id: str, sent: ExerciseChange, complete: Callable[[], ExerciseInput]
) -> Upserted:
    """Change the company's exercise with this identifier in another system, or create one of what `complete` returns.

    What is stored already is no change. Raises what `change`, `create` and core's `upsert` raise.
    """
    return await upsert(
        ctx,
        lambda tx: store.find_id_by_external_id(tx, external_id),
        lambda tx, exercise_id: change(tx, exercise_id, sent, only_differences=True),
        lambda tx: create(tx, {**complete(), "externalId": external_id}),
        (EXERCISES.CREATE, EXERCISES.EDIT),
    )


@transactional
async def change(
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
    await _require_own(ctx, exercise_id)

    def changed_fields(stored: StoredExercise) -> ExerciseFields:
        changed = fields
        if "media" in change:
            media = media_list.merge(stored["media"], change["media"], keep_equal=only_differences)
            changed = {**fields, "media": media}
        return cast("ExerciseFields", find_differences(stored, changed)) if only_differences else changed

    exercise = await store.rewrite(ctx, exercise_id, changed_fields, change.get("version"))
    if exercise is None:
        raise NotFound("exercise")
    return present(ctx, exercise)


@transactional
async def remove(ctx: Context, exercise_id: ObjectId) -> None:
    """Delete one of the company's exercises; scheduled blocks keep its name, and it keeps its files.

    Raises NotFound, and Forbidden for a shared exercise.
    """
    await _require_own(ctx, exercise_id)
    if not await store.soft_delete(ctx, exercise_id):
        raise NotFound("exercise")


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


async def _present_all(ctx: Context, stored: Sequence[StoredExercise]) -> list[Exercise]:
    shared = [each["_id"] for each in stored if each["companyId"] is None]
    overrides = await override_store.find(ctx, shared) if shared else {}
    return [present(ctx, each, overrides.get(each["_id"])) for each in stored]


async def _load_search_entries(ctx: Context, condition: Filter, ownership: Ownership) -> list[SearchEntry]:
    """Return what is searched of each exercise, with the aliases that the company has added."""
    entries, own_aliases = await gather_reads(
        ctx, store.find_search_entries(ctx, condition, ownership=ownership), override_store.find_aliases(ctx)
    )
    complete = [_with_aliases(entry, own_aliases.get(entry["_id"])) for entry in entries]
    return [{**entry, "search": without_apostrophes(entry["search"])} for entry in complete]


def _with_aliases(entry: SearchEntry, added: Sequence[str] | None) -> SearchEntry:
    """Return what is searched of an exercise with the aliases that the company has added."""
    if not added:
        return entry
    lines, last = entry["search"].split("\n"), entry["names"] + entry["aliases"]
    search_text = "\n".join([*lines[:last], *map(normalize, added), *lines[last:]])
    return {**entry, "search": search_text, "aliases": entry["aliases"] + len(added)}


async def _require_own(ctx: Context, exercise_id: ObjectId) -> None:
    if (await read(ctx, exercise_id))["companyId"] is None:
        message = "Shared exercises cannot be changed; set an override of it, or create one of your own"
        raise Forbidden(message, code="SHARED_EXERCISE")


def _name_muscles(sent: Sequence[MuscleInput]) -> list[TrainedMuscle]:
    """Return muscles with their names. Raises NotFound for an unknown one, InvalidFields for a repeated one."""
    roles = {muscle["_id"]: muscle["role"] for muscle in sent}
    if len(roles) < len(sent):
        raise invalid_field("muscleGroups", "must name each muscle only once", code="DUPLICATE")
    if not roles.keys() <= muscles.NAME_OF.keys():
        raise NotFound("muscle group")
    return [{"_id": key, "name": muscles.NAME_OF[key], "role": role} for key, role in roles.items()]
