"""Body weights among the values of a client's metrics: copied for the exercises whose load is added to the body's."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final, Literal, cast

from coaching_service.core.changes.undo import DocumentsRestored
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import transactional
from coaching_service.core.ids import ObjectId
from coaching_service.library.metric_sets import service as metric_sets
from coaching_service.library.metric_sets.models import Metric
from coaching_service.people.customers import service as customers
from coaching_service.progress.metrics import store
from coaching_service.progress.metrics.models import StoredEntry
from coaching_service.training.body_weights import service as body_weights
from coaching_service.training.body_weights.models import BodyWeight

# Names, without what is in brackets, and without spaces and hyphens.
_NAME: Final = re.compile(
    r"(my|current|actual|average|daily|fasted|morning|scale)?(body)?weight|bodymass|peso(corporal|actual|corporeo)?"
    r"|(körper)?gewicht|poids(corporel|ducorps)?"
)
_HIGHEST: Final = 1_000  # in kg or lb; above it is a typing error
_NOT_OF_NAME: Final = re.compile(r"\(.*?\)|\[.*?\]|[^\w]|_")


def is_body_weight(metric: Metric) -> bool:
    """Return whether the values of a metric are what a client weighs: by its name, and a unit of weight."""
    name = _NOT_OF_NAME.sub("", metric["name"].casefold())
    return metric["metricUnit"]["shortName"] in ("kg", "lb") and _NAME.fullmatch(name) is not None


async def follow(ctx: Context, customer_id: ObjectId, changed: Iterable[StoredEntry]) -> None:
    """Copy the body weights among values that were recorded or deleted, in the caller's transaction."""
    entries = list(changed)
    units = await _find_units(ctx, {each["metricsSetId"] for each in entries})
    dates = sorted({each["date"] for each in entries if each["metricId"] in units})
    if not dates:
        return
    await customers.lock_and_mark_figures(ctx, customer_id)
    where = {"customerId": customer_id, "metricId": {"$in": [*units]}, "date": {"$in": dates}}
    new = _copy(await store.entries.find(ctx, where), units)
    await body_weights.replace(ctx, customer_id, [*units], dates, new)


@transactional
async def copy_all(ctx: Context, customer_id: ObjectId) -> None:
    """Copy all body weights of a client; what follows from them is up to the caller."""
    await customers.lock_and_mark_figures(ctx, customer_id)
    sets = await metric_sets.list_with_archived(ctx)
    units = _units_of(metric for each in sets for metric in (*each["metrics"], *each["archivedMetrics"]))
    where = {"customerId": customer_id, "metricId": {"$in": [*units]}}
    await body_weights.replace_all(ctx, customer_id, _copy(await store.entries.find(ctx, where), units))


async def follow_restored_values(ctx: Context, event: DocumentsRestored) -> None:
    """Copy the body weights among values that an undo has restored."""
    states = [each for document in event.of_kind("metric_value") for each in (document.before, document.after) if each]
    entries = [cast("StoredEntry", each) for each in states]
    for customer_id in {each["customerId"] for each in entries}:
        await follow(ctx, customer_id, [each for each in entries if each["customerId"] == customer_id])


async def _find_units(ctx: Context, set_ids: Collection[ObjectId]) -> dict[ObjectId, str]:
    """Return the units of the body weights in metric sets, by metric."""
    sets = await metric_sets.get_by_id(ctx, set_ids)
    return _units_of(metric for each in sets.values() for metric in (*each["metrics"], *each["archivedMetrics"]))


def _units_of(metrics: Iterable[Metric]) -> dict[ObjectId, str]:
    return {each["_id"]: each["metricUnit"]["shortName"] for each in metrics if is_body_weight(each)}


def _copy(entries: Sequence[StoredEntry], units: dict[ObjectId, str]) -> list[BodyWeight]:
    return [
        {
            "metricId": each["metricId"],
            "date": each["date"],
            "value": each["value"],
            "unit": cast("Literal['kg', 'lb']", units[each["metricId"]]),
        }
        for each in entries
        if 0 < each["value"] <= _HIGHEST
    ]
