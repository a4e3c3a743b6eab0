"""A client's weight at the dates of photos: the metric that is the weight, and its latest value up to a date."""

from __future__ import annotations

from bisect import bisect_right
from typing import TypedDict

from coaching_service.core.auth.permissions import METRICS
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.progress.metrics import service as metrics
from coaching_service.progress.metrics.models import MetricHistoryEntry

_NAMES = ("weight", "peso")
_UNITS = ("kg", "lb")


class Weights(TypedDict):
    """The history of the metric that is the client's weight, by date."""

    name: str
    unit: str
    values: list[MetricHistoryEntry]


async def find_weights(ctx: Context, customer_id: ObjectId) -> Weights | None:
    """Return the history of the first assigned metric that is a client's weight, if there is one.

    Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    for assignment in await metrics.list_assigned(ctx, customer_id):
        for entry in assignment["metrics"]:
            metric = entry["metric"]
            unit, name = metric["metricUnit"]["shortName"], metric["name"]
            if unit in _UNITS and any(word in name.casefold() for word in _NAMES):
                set_id = assignment["metricsSet"]["_id"]
                values = await metrics.list_history(ctx, customer_id, set_id, metric["_id"])
                return {"name": name, "unit": unit, "values": values}
    return None


async def load_weights(ctx: Context, customer_id: ObjectId) -> Weights | None:
    """Return what `find_weights` returns, for a coach who may see metrics; None for any other."""
    return await find_weights(ctx, customer_id) if METRICS.VIEW in ctx.caller.permissions else None


def weight_at(weights: Weights | None, day: str) -> MetricHistoryEntry | None:
    """Return the latest weight up to a date (YYYY-MM-DD), which may be long before; None without one."""
    values = weights["values"] if weights else []
    at = bisect_right(values, day, key=lambda entry: entry["date"])
    return values[at - 1] if at else None
