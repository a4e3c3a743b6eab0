"""Lists of exercises: by name, by last change, or by how well they match a search; and suggestions while typing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter, Ownership
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import ALL_ENTRIES, BY_UPDATE, RANKED, UPDATED, ListPart, ListSelection
from coaching_service.core.text import normalize, without_apostrophes
from coaching_service.library.exercises import _search_index, override_store, store
from coaching_service.library.exercises._search_index import search
from coaching_service.library.exercises.models import Exercise, ExerciseKind, ExercisePage, StoredExercise
from coaching_service.library.exercises.service import present
from coaching_service.library.exercises.store import BY_NAME, exercises
from coaching_service.library.exercises.use_counts import load_use_counts


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
        list_part = ListPart(ctx, "exercises", filters, BY_UPDATE, page=page, size=size, after=after)
        return await _page_by_update(ctx, condition, ownership, filters["keywords"], list_part)
    if not filters["keywords"]:
        order = store.ORDER
        list_part = ListPart(ctx, "exercises", filters, order, page=page, size=size, after=after, private=order[:1])
        condition, hint = {"deletedAt": None, **condition}, store.selecting_index(condition)
        stored, total = await list_part.read(ctx, store.exercises, condition, hint=hint, ownership=ownership)
        docs, cursor = list_part.take_page(stored)
        return cast("ExercisePage", list_part.numbered(await present_all(ctx, docs), total, cursor))
    list_part = ListPart(ctx, "exercises", filters, RANKED, page=page, size=size, after=after)
    index, use_counts = await gather_reads(
        ctx, _search_index.load_index(ctx, condition, ownership), load_use_counts(ctx)
    )
    result = search(index, keywords, use_counts)
    ids, cursor = list_part.take_ranked(result.ids)
    exercises = await present_all(ctx, await store.find_by_ids(ctx, ids))
    part = cast("ExercisePage", list_part.numbered(exercises, len(result.ids), cursor))
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
    ctx: Context, condition: Filter, ownership: Ownership, keywords: str, list_part: ListPart
) -> ExercisePage:
    """Return a page in the order of the last change; each company has its own order because of its overrides."""
    updates, overridden = await gather_reads(
        ctx, store.find_updates(ctx, condition, ownership=ownership), override_store.find_updates(ctx)
    )
    listed, tolerant = updates, False
    if keywords:
        result = search(await _search_index.load_index(ctx, condition, ownership), keywords, {})
        matching, tolerant = set(result.ids), result.tolerant
        listed = [each for each in updates if each["_id"] in matching]
    for each in listed:
        each["updatedAt"] = max(each["updatedAt"], overridden.get(each["_id"], each["updatedAt"]))
    listed.sort(key=lambda each: (each["updatedAt"], each["_id"]))
    docs, cursor = list_part.take_page_from(listed)
    exercises = await present_all(ctx, await store.find_by_ids(ctx, [each["_id"] for each in docs]))
    part = cast("ExercisePage", list_part.numbered(exercises, len(listed), cursor))
    return {**part, "tolerant": True} if tolerant else part


async def present_all(ctx: Context, stored: Sequence[StoredExercise]) -> list[Exercise]:
    """Return stored exercises as the company sees them."""
    shared = [each["_id"] for each in stored if each["companyId"] is None]
    overrides = await override_store.find(ctx, shared) if shared else {}
    return [present(ctx, each, overrides.get(each["_id"])) for each in stored]


async def suggest_exercises(ctx: Context, keywords: str, size: int) -> list[Exercise]:
    """Return at most `size` exercises that match `keywords` as in a list, or of all exercises if there are none.

    An exercise of exactly this name is first, then those that the company plans most often, then the others in the
    order of a list.
    """
    keywords = keywords.strip()
    return await _suggest_matches(ctx, keywords, size) if keywords else await _suggest_used(ctx, size)


async def _suggest_matches(ctx: Context, keywords: str, size: int) -> list[Exercise]:
    index, use_counts = await gather_reads(ctx, _search_index.load_index(ctx, {}, "all"), load_use_counts(ctx))
    name = without_apostrophes(normalize(keywords))
    exact = {entry["_id"] for entry in index.entries if entry["search"].partition("\n")[0] == name}
    ids = search(index, keywords, use_counts).ids
    ids = sorted(ids, key=lambda each: (each not in exact, -use_counts.get(each, 0)))
    return await present_all(ctx, await store.find_by_ids(ctx, ids[:size]))


async def _suggest_used(ctx: Context, size: int) -> list[Exercise]:
    use_counts, by_name = await gather_reads(ctx, load_use_counts(ctx), list_exercises(ctx, page=1, size=size))
    ids = sorted(use_counts, key=lambda each: (-use_counts[each], each))
    # Some of the exercises that were used may have been deleted since.
    used = await present_all(ctx, (await store.find_by_ids(ctx, ids[: 2 * size]))[:size])
    known = {exercise["_id"] for exercise in used}
    return [*used, *(exercise for exercise in by_name["docs"] if exercise["_id"] not in known)][:size]


# --- Exercises that can be done in place of another one ---------------------------------------------------------------


_FIELDS: Final = ("name", "muscleGroups", "movementPattern")


async def list_alternatives(ctx: Context, exercise_id: ObjectId, count: int) -> list[ExerciseKind]:
    """Return at most `count` exercises with the movement pattern or a primary muscle of an exercise, best first.

    First those with both, then those with the pattern; among these, those that the company plans most, then by name.
    Empty for an exercise of another company.
    """
    exercise = await exercises.find_one(ctx, {"_id": exercise_id}, _FIELDS)
    if exercise is None:
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

    def rank(each: ExerciseKind) -> tuple[int, int, str]:
        has_pattern = pattern is not None and each.get("movementPattern") == pattern
        has_muscle = bool(muscles & _primary_muscles(each))
        return -(2 * has_pattern + has_muscle), -uses.get(each["_id"], 0), each["name"].casefold()

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


def _primary_muscles(exercise: ExerciseKind) -> set[ObjectId]:
    return {muscle["_id"] for muscle in exercise["muscleGroups"] if muscle["role"] == "primary"}
