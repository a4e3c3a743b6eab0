"""Which values of a client's metrics are plausible.

None of the future, none below zero in units that begin there, and none far from the last without asking.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Final

from coaching_service.core.database.context import Context
from coaching_service.core.errors import InvalidFields, invalid_field
from coaching_service.core.ids import ObjectId
from coaching_service.library.metric_sets.models import Metric
from coaching_service.people.customers import service as customers
from coaching_service.progress.metrics import store
from coaching_service.progress.metrics.models import MetricHistoryEntry

FAR_FACTOR: Final = 5
FAR_SHARE: Final = 0.2  # of a value of the last 30 days
_RECENT = datetime.timedelta(days=30)
# The units that know values below zero: temperatures, balances and differences.
_SIGNED: Final = frozenset({"%", "count", "score", "kcal", "°C"})


async def require_past_dates(ctx: Context, customer_id: ObjectId, dates: Iterable[tuple[str, str]]) -> None:
    """Raise InvalidFields for each field whose date is after the client's today.

    `dates`: fields with their dates (`YYYY-MM-DD`). Raises NotFound if the company has no such client.
    """
    customer = await customers.get_visible(ctx, customer_id, (*customers.SCOPE_FIELDS, "timezone"))
    today = str(ctx.caller.today(customer["timezone"]))
    future = [field for field, date in dates if date > today]
    if future:
        message = "must not be after today"
        raise InvalidFields([{"field": field, "code": "IN_THE_FUTURE", "message": message} for field in future])


def require_possible(metric: Metric, value: float, field: str) -> None:
    """Raise InvalidFields, naming `field`, for a value that the unit of a metric does not allow."""
    if value < 0 and (unit := metric["metricUnit"]["shortName"]) not in _SIGNED:
        raise invalid_field(field, f"must not be negative: {metric['name']} is measured in {unit}", code="OUT_OF_RANGE")


async def find_far_values(
    ctx: Context, customer_id: ObjectId, date: str, values: Mapping[ObjectId, float]
) -> dict[ObjectId, MetricHistoryEntry]:
    """Return the last values until a date, by metric, where the new value is far from it.

    Far: of another sign, zero, or 20 % more or less than a value of the last 30 days; more than five times as much
    as an older one, or less than a fifth. Raises what `metrics.service.list_assigned` raises.
    """
    await customers.get_visible(ctx, customer_id)
    last = await store.find_last_until(ctx, customer_id, list(values), date)
    recent = str(datetime.date.fromisoformat(date) - _RECENT)
    return {
        metric_id: entry
        for metric_id, entry in last.items()
        if _is_far(values[metric_id], entry["value"], is_recent=entry["date"] >= recent)
    }


def _is_far(value: float, last: float, *, is_recent: bool) -> bool:
    """Return whether a value is far from the last; of a value of zero, nothing is known."""
    if last == 0 or value * last <= 0:
        return last != 0
    if is_recent:
        return abs(value - last) > FAR_SHARE * abs(last)
    return not 1 / FAR_FACTOR <= value / last <= FAR_FACTOR
