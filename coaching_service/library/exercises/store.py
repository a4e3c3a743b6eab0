"""Exercises in the database, with what companies change in shared ones, and how often they plan each.

Shared exercises belong to no company. Deleted ones remain for the items that refer to them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, cast

from pymongo import UpdateOne

from coaching_service.core.database import declared
from coaching_service.core.database import documents as database_documents
from coaching_service.core.database.across_companies import increment
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Documents
from coaching_service.core.errors import invalid_field
from coaching_service.core.events import EventType
from coaching_service.core.external_identity import BY_EXTERNAL_ID, IDENTITY_CHECKS
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import BY_UPDATE, UPDATED
from coaching_service.core.media import MEDIA_TYPES
from coaching_service.core.text import normalize
from coaching_service.core.validation import TEXT_LENGTH, Choice, Text
from coaching_service.library.exercises import models as exercise_models
from coaching_service.library.exercises.models import MEDIA_CHECKS, ExerciseName, Override, OverrideFields
from coaching_service.people import account


def _event(action: declared.Action, known: Mapping[str, Any], paths: Collection[str]) -> declared.EventData:
    event_type: EventType = "exercise.created" if action == "created" else "exercise.updated"
    if action == "deleted" or ("deletedAt" in paths and known["deletedAt"] is not None):
        event_type = "exercise.deleted"
    return {"type": event_type, "data": {"exerciseId": known["_id"]}}


def _complete_imported(exercise: dict[str, Any]) -> dict[str, Any]:
    """Return an imported exercise of a company with its private fields. Raises InvalidFields for unknown muscles."""
    for muscle in exercise["muscleGroups"]:
        if muscle["_id"] not in exercise_models.MUSCLE_NAMES:
            raise invalid_field("muscleGroups._id", "is not the identifier of a muscle group", code="NOT_FOUND")
        muscle["name"] = exercise_models.MUSCLE_NAMES[muscle["_id"]]
    return {**exercise, **search_fields(exercise)}


exercises = Documents[exercise_models.StoredExercise](
    "exercises",
    (
        declared.Index(("deletedAt", "sortName", "_id")),
        declared.Index(("deletedAt", "type", "sortName", "_id")),
        BY_EXTERNAL_ID,
        declared.Index(("deletedAt", *BY_UPDATE)),
    ),
    private=("sortName", "search", "searchNames", "searchAliases", "deletedAt", "digest"),
    shared=True,
    history=declared.History("exercise", _event, ("deletedAt",)),
    cross_company_reason="the shared library belongs to no company and is published by the operator",
    transfer=declared.Portable(
        exercise_models.StoredExercise,
        declared.LIBRARY,
        extra={"deletedAt": datetime | None},
        checks={
            **IDENTITY_CHECKS,
            "loadType": Choice(*exercise_models.LOAD_TYPES),
            **exercise_models.MEDIA_CHECKS,
        },
        files=declared.FileRule(MEDIA_TYPES, "attachment"),
        complete=_complete_imported,
    ),
)
exercise_uses = Documents[exercise_models.ExerciseUse](
    "exerciseUses",
    (declared.Index(("exerciseId",), unique=True),),
    cross_company_reason="the uses of all companies are stored together",
    transfer=declared.NotExported("counts that only order search results"),
    incidental=True,
)
ORDER = ("sortName", "_id")
BY_NAME = exercises.index_name("deletedAt", *ORDER)
BY_TYPE = exercises.index_name("deletedAt", "type", *ORDER)
_BY_EXTERNAL_ID = exercises.index_name("externalId")
BY_LAST_UPDATE = exercises.index_name("deletedAt", *BY_UPDATE)
_NAME_FIELDS: Final = ("name", "defaultInstructions", "loadType", "companyId", "deletedAt")


def selecting_index(condition: database_documents.Filter) -> str | None:
    """Return the index of a condition that few exercises meet; None if it has none."""
    for field, index in (("externalId", _BY_EXTERNAL_ID), ("_id", "_id_")):
        if field in condition:
            return index
    return None


async def find_by_ids(ctx: Context, ids: Sequence[ObjectId]) -> list[exercise_models.StoredExercise]:
    """Return the exercises with these identifiers that are not deleted, in the order of `ids`."""
    unordered = await exercises.find(ctx, {"_id": {"$in": list(ids)}, "deletedAt": None}, hint="_id_")
    by_id = {exercise["_id"]: exercise for exercise in unordered}
    return [by_id[exercise_id] for exercise_id in ids if exercise_id in by_id]


async def find_id_by_external_id(ctx: Context, external_id: str) -> ObjectId | None:
    """Return the identifier of the company's exercise with this identifier in another system, or None."""
    where = {"externalId": external_id, "deletedAt": None}
    own = await exercises.find(ctx, where, limit=1, fields=("_id",), hint=_BY_EXTERNAL_ID, ownership="own")
    return own[0]["_id"] if own else None


async def find_one(ctx: Context, exercise_id: ObjectId) -> exercise_models.StoredExercise | None:
    """Return the exercise, shared or own, or None if it does not exist or is deleted."""
    return await exercises.find_one(ctx, {"_id": exercise_id, "deletedAt": None})


async def find_names(ctx: Context, ids: Sequence[ObjectId], *, only_usable: bool = False) -> list[ExerciseName]:
    """Return the names of exercises, deleted ones included unless `only_usable`."""
    # Those of shared exercises are in the memory of this process if they were read recently.
    recent: dict[ObjectId, exercise_models.StoredExerciseName] = ctx.services.shared_exercise_names.select(ids)
    if others := [each for each in ids if each not in recent]:
        documents = await exercises.find(ctx, {"_id": {"$in": others}}, fields=_NAME_FIELDS, hint="_id_")
        for each in cast("list[exercise_models.StoredExerciseName]", documents):
            recent[each["_id"]] = each
            if each["companyId"] is None:
                ctx.services.shared_exercise_names.put(each["_id"], each)
    return [_to_name(each) for each in recent.values() if not only_usable or each.get("deletedAt") is None]


def _to_name(exercise: exercise_models.StoredExerciseName) -> ExerciseName:
    name: ExerciseName = {
        "_id": exercise["_id"],
        "name": exercise["name"],
        "defaultInstructions": exercise["defaultInstructions"],
    }
    load_type = exercise.get("loadType", exercise_models.LOAD)
    return name if load_type == exercise_models.LOAD else {**name, "loadType": load_type}


async def rewrite(
    ctx: Context,
    exercise_id: ObjectId,
    changed_fields: Callable[[exercise_models.StoredExercise], exercise_models.ExerciseFields],
    version: int | None = None,
) -> exercise_models.StoredExercise | None:
    """Set the fields that `changed_fields` returns for a stored exercise of the company.

    Returns None if there is no such exercise.
    """

    def mutate(stored: exercise_models.StoredExercise) -> Mapping[str, Any]:
        fields = changed_fields(stored)
        return {**fields, **search_fields({**stored, **fields})} if fields else fields

    return await exercises.rewrite(ctx, {"_id": exercise_id, "deletedAt": None}, mutate, version=version)


async def add_uses(services: Services, counts: Mapping[ObjectId, Mapping[ObjectId, int]]) -> None:
    """Add to the stored counts of uses of exercises, by company and exercise."""
    increments: list[tuple[database_documents.Filter, database_documents.Document]] = [
        ({"companyId": company, "exerciseId": exercise}, {"count": count})
        for company, exercises_of_company in counts.items()
        for exercise, count in exercises_of_company.items()
    ]
    await increment(exercise_uses, services, increments)


async def find_uses(ctx: Context) -> dict[ObjectId, int]:
    """Return the stored counts of the company's uses, by exercise."""
    return {use["exerciseId"]: use["count"] for use in await exercise_uses.find(ctx, {})}


async def publish(services: Services, shared: Sequence[exercise_models.SharedExercise]) -> int:
    """Make `shared` the content of the shared library. Returns how many exercises were written or deleted.

    Exercises that it no longer has are marked as deleted, like exercises of a company.
    """
    collection, at = exercises.across_companies(services), database_documents.now()
    cursor = collection.find({"companyId": None}, {"digest": 1})
    stored: dict[Any, Any] = {entry["_id"]: entry.get("digest") async for entry in cursor}
    removed = [each for each in stored.keys() - {entry["_id"] for entry in shared} if stored[each] is not None]
    # Without a digest it is written again if it ever returns.
    deletion = {"$set": {"deletedAt": at, "updatedAt": at}, "$unset": {"digest": ""}, "$inc": {"version": 1}}
    writes: list[Any] = [UpdateOne({"_id": each}, deletion) for each in removed]
    for entry in shared:
        fields: dict[str, Any] = {
            **entry,
            **search_fields(entry),
            "companyId": None,
            "deletedAt": None,
            "updatedAt": at,
        }
        if entry["_id"] not in stored:  # an upsert: another process may be publishing at the same time
            first = {**fields, "createdAt": at, "version": 0}
            writes.append(UpdateOne({"_id": first.pop("_id")}, {"$setOnInsert": first}, upsert=True))
        elif stored[entry["_id"]] != entry["digest"]:
            writes.append(UpdateOne({"_id": entry["_id"]}, {"$set": fields, "$inc": {"version": 1}}))
    if writes:
        await collection.bulk_write(writes, ordered=False)
    services.shared_exercise_names.clear()
    return len(writes)


def search_fields(exercise: Mapping[str, Any]) -> dict[str, Any]:
    """Return the private fields by which an exercise is sorted and searched."""
    translations: exercise_models.ExerciseTranslations | dict[str, Any] = exercise.get("translations") or {}
    translated = list(cast("dict[str, Any]", translations).values())
    names = [exercise["name"], *(each["name"] for each in translated)]
    aliases = [*exercise["aliases"], *(alias for each in translated for alias in each["aliases"])]
    muscles = [muscle["name"] for muscle in exercise["muscleGroups"]]
    texts = [*names, *aliases, *exercise["tags"], *muscles, exercise["equipment"] or ""]
    return {
        "sortName": normalize(exercise["name"]),
        "search": "\n".join(map(normalize, texts)),
        "searchNames": len(names),
        "searchAliases": len(aliases),
    }


# --- What companies change in shared exercises: one document for a company and exercise -------------------------------


overrides = Documents[Override](
    "exerciseOverrides",
    (declared.Index(("exerciseId",), unique=True), declared.Index((UPDATED,))),
    history=declared.History(
        "exercise_override",
        lambda _, known, __: {"type": "exercise.updated", "data": {"exerciseId": known["exerciseId"]}},
        ("exerciseId",),
    ),
    transfer=declared.Portable(
        Override,
        declared.TEMPLATES,
        checks={"aliases": Text(), "defaultInstructions": Text(max_length=TEXT_LENGTH), **MEDIA_CHECKS},
        references={"exerciseId": "exercises"},
        files=declared.FileRule(MEDIA_TYPES, "attachment"),
    ),
)
_BY_EXERCISE = overrides.index_name("exerciseId")
NOTHING: OverrideFields = {"videoLink": None, "defaultInstructions": None, "aliases": [], "media": []}


async def find_overrides(ctx: Context, exercise_ids: Sequence[ObjectId]) -> dict[ObjectId, Override]:
    """Return the overrides of these exercises, by exercise."""
    matching = await overrides.find(ctx, {"exerciseId": {"$in": list(exercise_ids)}}, hint=_BY_EXERCISE)
    return {override["exerciseId"]: override for override in matching}


async def find_override(ctx: Context, exercise_id: ObjectId) -> Override | None:
    """Return the override of an exercise, or None."""
    return await overrides.find_one(ctx, {"exerciseId": exercise_id})


async def find_own_instructions(ctx: Context, exercise_ids: Sequence[ObjectId]) -> dict[ObjectId, str]:
    """Return the instructions of the exercises for which the company has its own."""
    if not ctx.caller.company.has_overrides:
        return {}
    where = {"exerciseId": {"$in": list(exercise_ids)}, "defaultInstructions": {"$ne": None}}
    matching = await overrides.find(ctx, where, fields=("exerciseId", "defaultInstructions"), hint=_BY_EXERCISE)
    return {each["exerciseId"]: each["defaultInstructions"] or "" for each in matching}


async def find_override_updates(ctx: Context, since: datetime | None = None) -> dict[ObjectId, datetime]:
    """Return when the company's overrides were last changed, by exercise; with `since`, only those changed since."""
    where = {} if since is None else {UPDATED: {"$gte": since}}
    matching = await overrides.find(ctx, where, fields=("exerciseId", UPDATED))
    return {each["exerciseId"]: each["updatedAt"] for each in matching}


async def save_override(ctx: Context, exercise_id: ObjectId, fields: OverrideFields) -> Override:
    """Set `fields` of the override of an exercise and return it; created if missing.

    Must be called in the transaction in which the override was read. A new one is stored empty and then changed, so
    that an undo does not delete it: the exercise has changed then too.
    """
    if await overrides.find_one(ctx, {"exerciseId": exercise_id}, ("_id",)) is None:
        await account.record_overrides(ctx)
        await overrides.insert_many(ctx, [{"exerciseId": exercise_id, **NOTHING}], recorded=False)
    return await overrides.upsert(ctx, {"exerciseId": exercise_id}, fields)
