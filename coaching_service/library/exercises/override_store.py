"""What companies change in shared exercises, in the database: one document for a company and exercise."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from coaching_service.core.database import declared
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import UPDATED
from coaching_service.core.media import MEDIA_TYPES
from coaching_service.core.validation import TEXT_LENGTH, Text
from coaching_service.library.exercises.models import MEDIA_CHECKS, Override, OverrideFields
from coaching_service.people import account


def _event(action: declared.Action, known: Mapping[str, Any], paths: Collection[str]) -> declared.EventData:
    del action, paths
    return {"type": "exercise.updated", "data": {"exerciseId": known["exerciseId"]}}


overrides = Documents[Override](
    "exerciseOverrides",
    (declared.Index(("exerciseId",), unique=True), declared.Index((UPDATED,))),
    history=declared.History("exercise_override", _event, ("exerciseId",)),
    transfer=declared.Portable(
        Override,
        declared.TEMPLATES,
        checks={"aliases": Text(), "defaultInstructions": Text(max_length=TEXT_LENGTH), **MEDIA_CHECKS},
        references={"exerciseId": "exercises"},
        files=declared.FileRule(MEDIA_TYPES, "attachment"),
    ),
)
_BY_EXERCISE = overrides.index_name("exerciseId")
_NOTHING: OverrideFields = {"videoLink": None, "defaultInstructions": None, "aliases": [], "media": []}


async def find(ctx: Context, exercise_ids: Sequence[ObjectId]) -> dict[ObjectId, Override]:
    """Return the overrides of these exercises, by exercise."""
    matching = await overrides.find(ctx, {"exerciseId": {"$in": list(exercise_ids)}}, hint=_BY_EXERCISE)
    return {override["exerciseId"]: override for override in matching}


async def find_one(ctx: Context, exercise_id: ObjectId) -> Override | None:
    """Return the override of an exercise, or None."""
    return await overrides.find_one(ctx, {"exerciseId": exercise_id})


async def find_instructions(ctx: Context, exercise_ids: Sequence[ObjectId]) -> dict[ObjectId, str]:
    """Return the instructions of the exercises for which the company has its own."""
    if not ctx.caller.company.has_overrides:
        return {}
    where = {"exerciseId": {"$in": list(exercise_ids)}, "defaultInstructions": {"$ne": None}}
    matching = await overrides.find(ctx, where, fields=("exerciseId", "defaultInstructions"), hint=_BY_EXERCISE)
    return {each["exerciseId"]: each["defaultInstructions"] or "" for each in matching}


async def find_aliases(ctx: Context) -> dict[ObjectId, list[str]]:
    """Return the aliases that the company has added, by exercise."""
    matching = await overrides.find(ctx, {"aliases.0": {"$exists": True}}, fields=("exerciseId", "aliases"))
    return {each["exerciseId"]: each["aliases"] for each in matching}


async def find_updates(ctx: Context, since: datetime | None = None) -> dict[ObjectId, datetime]:
    """Return when the company's overrides were last changed, by exercise; with `since`, only those changed since."""
    where = {} if since is None else {UPDATED: {"$gte": since}}
    matching = await overrides.find(ctx, where, fields=("exerciseId", UPDATED))
    return {each["exerciseId"]: each["updatedAt"] for each in matching}


async def save(ctx: Context, exercise_id: ObjectId, fields: OverrideFields) -> Override:
    """Set `fields` of the override of an exercise and return it; created if missing.

    Must be called in the transaction in which the override was read. A new one is stored empty and then changed, so
    that an undo does not delete it: the exercise has changed then too.
    """
    if await overrides.find_one(ctx, {"exerciseId": exercise_id}, ("_id",)) is None:
        await account.record_overrides(ctx)
        await overrides.insert_many(ctx, [{"exerciseId": exercise_id, **_NOTHING}], recorded=False)
    return await overrides.upsert(ctx, {"exerciseId": exercise_id}, fields)


async def clear(ctx: Context, exercise_id: ObjectId) -> Override | None:
    """Empty the override of an exercise and return it; None if there is none.

    The document stays, so that versions of the exercise never repeat.
    """
    return await overrides.update(ctx, {"exerciseId": exercise_id}, {"$set": dict(_NOTHING)})
