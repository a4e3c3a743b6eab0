"""The conditions, indexes and types that the queries over workout blocks share."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from coaching_service.core.database.documents import Filter
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.items.models import WORKOUT_TYPES

Stage = dict[str, Any]

IS_REGULAR: Filter = {"checkInId": None}
# Forms, measurements and reminders alone make no workout.
HAS_WORKOUT_ITEM: Filter = {"items.type": {"$in": [*WORKOUT_TYPES]}}
# Sessions that were imported have been done, but never scheduled: compliance ignores them.
IS_WORKOUT: Filter = {"isRest": False, "source": None} | HAS_WORKOUT_ITEM | IS_REGULAR
IS_SESSION: Filter = {"done": {"$ne": None}} | HAS_WORKOUT_ITEM | IS_REGULAR
# What a client added makes a workout day only when it is completed.
_IS_PLANNED_OR_COMPLETED: Stage = {
    "$or": [{"$ne": ["$createdBy", "client"]}, {"$allElementsTrue": ["$items.isCompleted"]}]
}
# The fields of BlockProgress, in a projection.
PROGRESS: Stage = {
    **dict.fromkeys(("date", "name", "isRest", "createdBy", "plannedDate"), 1),
    "isWorkout": {
        "$and": [
            {"$not": "$isRest"},
            _IS_PLANNED_OR_COMPLETED,
            {"$eq": [{"$ifNull": ["$checkInId", None]}, None]},
            {"$eq": [{"$ifNull": ["$source", None]}, None]},
            {"$ne": [{"$setIntersection": ["$items.type", [*WORKOUT_TYPES]]}, []]},
        ]
    },
    "totalItems": {"$size": "$items"},
    "completedItems": {"$size": {"$filter": {"input": "$items", "cond": "$$this.isCompleted"}}},
    "hasWork": {"$ne": [{"$ifNull": ["$done", None]}, None]},
}


def of_clients(customer_ids: Collection[ObjectId], first: str, last: str) -> Filter:
    """Return the condition of the blocks of clients from the date `first` to `last`."""
    return {"customerId": {"$in": sorted(customer_ids)}, "date": {"$gte": first, "$lte": last}}


def on_dates(customer_id: ObjectId, dates: Filter, without: Collection[str] = ()) -> Filter:
    """Return the condition of the blocks of a client on dates that satisfy a filter, but not on those in `without`."""
    return {"customerId": customer_id, "date": dates | ({"$nin": sorted(without)} if without else {})}


def between(customer_id: ObjectId, first: str, last: str, without: Collection[str] = ()) -> Filter:
    """Return the condition of the blocks of a client from the date `first` to `last`, but not on those in `without`."""
    return on_dates(customer_id, {"$gte": first, "$lte": last}, without)
