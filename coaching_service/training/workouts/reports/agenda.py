"""What is scheduled for clients on a few days, for what announces it to them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.reports._query_parts import PROGRESS
from coaching_service.training.workouts.reports.models import AgendaBlock
from coaching_service.training.workouts.store import BY_DATE, blocks


async def find_agenda(ctx: Context, customer_ids: Collection[ObjectId], first: str, last: str) -> list[AgendaBlock]:
    """Return the blocks of clients from the date `first` to `last`, in the order of each calendar.

    Access is not checked. The number of queries does not depend on the number of clients.
    """
    where: Filter = {"customerId": {"$in": sorted(customer_ids)}, "date": {"$gte": first, "$lte": last}}
    is_check_in = {"$ne": [{"$ifNull": ["$checkInId", None]}, None]}
    is_incomplete = {"$in": [False, "$items.isCompleted"]}
    fields: dict[str, Any] = {
        **PROGRESS,
        "customerId": 1,
        "createdAt": 1,
        "isOpenCheckIn": {"$or": [{"$and": [is_check_in, is_incomplete]}, {"$in": [True, "$items.isPendingForm"]}]},
        "reminders": {
            "$map": {
                "input": {"$filter": {"input": "$items", "cond": {"$eq": ["$$this.type", "REMINDER"]}}},
                "in": {
                    "_id": "$$this._id",
                    "scheduledTime": "$$this.reminderFields.scheduledTime",
                    "isCompleted": "$$this.isCompleted",
                },
            }
        },
    }
    sort = {"$sort": {"customerId": 1, "date": 1, "position": 1, "_id": 1}}
    return await blocks.aggregate(ctx, where, sort, {"$project": fields}, hint=BY_DATE)
