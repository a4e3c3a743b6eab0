"""What clients weigh: the latest body weight of 30 days."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal, TypedDict

from coaching_service.core.database.context import Context
from coaching_service.core.database.declared import Index, NotExported, Stored
from coaching_service.core.database.documents import Documents, Filter
from coaching_service.core.events import DomainEvent
from coaching_service.core.ids import ObjectId
from coaching_service.people.account import convert_stored_load

# --- Body weights as they are stored ----------------------------------------------------------------------------------


class BodyWeight(TypedDict):
    """What a client weighed on a date by the values of a metric, in its unit."""

    metricId: ObjectId
    date: str
    value: float
    unit: Literal["kg", "lb"]


class StoredBodyWeight(BodyWeight, Stored):
    """A stored body weight."""

    customerId: ObjectId


# --- Body weights in the database -------------------------------------------------------------------------------------


body_weights = Documents[StoredBodyWeight](
    "bodyWeights",
    (Index(("customerId", "date", "metricId"), unique=True),),
    client_field="customerId",
    transfer=NotExported("a copy of values of metrics, made again after an import"),
)


# --- Domain events about body weights ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class BodyWeightsChanged(DomainEvent):
    """What a client weighs from the date `first` to `last` changed: estimates of added loads follow it."""

    customer_id: ObjectId
    first: str
    last: str


_VALID = timedelta(days=30)


async def find_on_dates(
    ctx: Context, customer_id: ObjectId, dates: Collection[str], load_unit: str
) -> dict[str, float]:
    """Return what a client weighs on dates, in `load_unit`: the latest body weight of the 30 days up to each.

    Dates without one are left out. Access is not checked.
    """
    if not dates:
        return {}
    where: Filter = {"customerId": customer_id, "date": {"$gte": _shift(min(dates), -_VALID), "$lte": max(dates)}}
    known = await body_weights.find(ctx, where, sort=("date", "metricId"), fields=("date", "value", "unit"))
    recorded = [each["date"] for each in known]
    weights: dict[str, float] = {}
    for day in dates:
        if (position := bisect_right(recorded, day)) and recorded[position - 1] >= _shift(day, -_VALID):
            latest = known[position - 1]
            weights[day] = convert_stored_load(latest["value"], latest["unit"], load_unit)
    return weights


async def replace(
    ctx: Context, customer_id: ObjectId, metric_ids: Sequence[ObjectId], dates: Sequence[str], new: Sequence[BodyWeight]
) -> None:
    """Store what a client weighed on some dates by some metrics, in place of what is stored of these."""
    where: Filter = {"customerId": customer_id, "date": {"$in": [*dates]}, "metricId": {"$in": [*metric_ids]}}
    await body_weights.delete_many(ctx, where)
    await body_weights.insert_many(ctx, [{"customerId": customer_id, **each} for each in new])
    await ctx.publish(BodyWeightsChanged(customer_id, min(dates), _shift(max(dates), _VALID)))


async def replace_all(ctx: Context, customer_id: ObjectId, new: Sequence[BodyWeight]) -> None:
    """Store what a client weighed in place of all that is stored; what follows from it is up to the caller."""
    await body_weights.delete_many(ctx, {"customerId": customer_id})
    await body_weights.insert_many(ctx, [{"customerId": customer_id, **each} for each in new])


def _shift(day: str, by: timedelta) -> str:
    return str(date.fromisoformat(day) + by)
