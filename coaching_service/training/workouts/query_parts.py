"""The conditions, indexes and types that the queries over workout blocks share."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from coaching_service.core.database.documents import Filter
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.store import blocks

Stage = dict[str, Any]

BY_DATE = blocks.index_name("customerId", "date", "position", "_id")
IS_REGULAR: Filter = {"checkInId": None}
IS_SESSION: Filter = {"done": {"$ne": None}} | IS_REGULAR


def between(customer_id: ObjectId, first: str, last: str) -> Filter:
    """Return the condition of the blocks of a client from the date `first` to `last`."""
    return {"customerId": customer_id, "date": {"$gte": first, "$lte": last}}


def except_dates(dates: Collection[str]) -> Filter:
    """Return the condition of the blocks that are not on some dates."""
    return {"date": {"$nin": sorted(dates)}} if dates else {}
