"""A session needs a completed set that is not warm-up, or a completed item of a type without sets.

`doneExerciseIds` of an item are the exercises with such a set, and `done` of a block is null unless it is a session.
The figures of clients are computed again, as their last trained date was not stored before.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.context import Database

_LONG_AGO = datetime(1970, 1, 1)  # noqa: DTZ001 - stored times are UTC without a time zone
_TRAINED_IDS = {"$ifNull": ["$$item.tally.exercises.exerciseId", []]}
_ITEM = {"$mergeObjects": ["$$item", {"doneExerciseIds": _TRAINED_IDS}]}
_HAS_SETS = {"$in": ["$$item.type", ["EXERCISE", "CIRCUIT"]]}
_IS_TRAINED = {"$cond": [_HAS_SETS, {"$gt": [{"$size": _TRAINED_IDS}, 0]}, "$$item.isCompleted"]}


def _map_items(expression: dict[str, Any]) -> dict[str, Any]:
    return {"$map": {"input": "$items", "as": "item", "in": expression}}


async def apply(db: Database, vault: Vault) -> None:
    """Derive the fields of blocks with completed work again, and mark the figures of clients as due."""
    del vault
    is_session = {"$anyElementTrue": [_map_items(_IS_TRAINED)]}
    fields = {"items": _map_items(_ITEM), "done": {"$cond": [is_session, "$done", None]}}
    await db["workoutBlocks"].update_many({"done": {"$ne": None}}, [{"$set": fields}])
    not_computed = {"customerRoleData.lastTrainedDate": None, "figuresUntil": {"$ne": _LONG_AGO}}
    await db["customers"].update_many(not_computed, {"$set": {"figuresUntil": _LONG_AGO}})
