"""What a coach does with a client's metrics."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.errors import Conflict, LegacyFailure, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.library.metric_sets import service as metric_sets
from coaching_service.library.metric_sets.models import Metric, MetricSetWithArchived
from coaching_service.people.activity import service as activity
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.events import CustomerCreated
from coaching_service.progress.metrics import store
from coaching_service.training.workouts.events import RecordedItemsRescheduled


async def assigned(ctx: Context, customer_id: ObjectId) -> list[Document]:
    """The metric sets a client is assigned, each metric with its earliest and latest value."""
    await customers.get_visible(ctx, customer_id)
    assignments = await store.assigned(ctx, customer_id)
    sets = await metric_sets.load_by_id(ctx, [each["metricsSetId"] for each in assignments])
    metric_ids = [metric["_id"] for found in sets.values() for metric in found["metrics"]]
    ends = {each["_id"]: each for each in await store.first_and_last(ctx, customer_id, metric_ids)}
    return [_present(each, sets[each["metricsSetId"]], ends) for each in assignments]


def _present(assignment: Document, metric_set: MetricSetWithArchived, ends: dict[ObjectId, Document]) -> Document:
    none: Document = {"first": None, "last": None}
    metrics = [
        {
            "metric": metric,
            "initialValue": ends.get(metric["_id"], none)["first"],
            "currentValue": ends.get(metric["_id"], none)["last"],
        }
        for metric in metric_set["metrics"]
    ]
    return {
        "_id": assignment["_id"],
        "customerId": assignment["customerId"],
        "metricsSet": {"_id": metric_set["_id"], "name": metric_set["name"]},
        "metrics": metrics,
        **{name: assignment[name] for name in ("createdAt", "updatedAt", "version")},
    }


async def assign(ctx: Context, customer_id: ObjectId, set_id: ObjectId) -> Document:
    """Assign a metric set to a client; assigned again, its history is back. Repeating is harmless.

    Raises NotFound, Forbidden for the client, LegacyFailure for a missing set.
    """
    await customers.get_visible(ctx, customer_id)

    async def settled(tx: Context) -> Document:
        await _existing(tx, set_id)
        if not await store.is_assigned(tx, customer_id, set_id):
            await store.assign(tx, customer_id, set_id)
        return next(each for each in await assigned(tx, customer_id) if each["metricsSet"]["_id"] == set_id)

    return await in_transaction(ctx, settled)


async def assign_many(ctx: Context, customer_ids: list[ObjectId], set_id: ObjectId) -> None:
    """Assign a set that has been checked to clients who have been checked; those assigned already stay so."""
    await store.assign_many(ctx, customer_ids, set_id)


async def assign_automatic_sets(ctx: Context, event: CustomerCreated) -> None:
    """Assign the metric sets marked `assignAutomatically` to a new client."""
    for metric_set in await metric_sets.list_automatic(ctx):
        await store.assign(ctx, event.customer["_id"], metric_set["_id"])


async def unassign(ctx: Context, customer_id: ObjectId, set_id: ObjectId) -> None:
    """End an assignment; the history stays.

    Raises LegacyFailure for a missing set, NotFound when it is not assigned.
    """
    await customers.get_visible(ctx, customer_id)
    await _existing(ctx, set_id, deleted_too=True)
    if not await store.unassign(ctx, customer_id, set_id):
        raise NotFound("assignment")


async def record(
    ctx: Context, customer_id: ObjectId, set_id: ObjectId, metric_id: ObjectId, date: str, value: float
) -> Document:
    """Record a metric's value on a date (`YYYY-MM-DD`, the client's); a second one replaces it.

    Raises LegacyFailure for a missing set, a deleted one too, NotFound for a metric that is not in it, Conflict when
    the set is not assigned or the metric is archived.
    """
    await customers.get_visible(ctx, customer_id)
    metric_set = await _existing(ctx, set_id)
    if not await store.is_assigned(ctx, customer_id, set_id):
        raise _unassigned()
    metric = _metric(metric_set, metric_id)

    async def recorded(tx: Context) -> Document:
        entry = await store.record(tx, customer_id, set_id, metric_id, date, value, None)
        await activity.record_event(
            *(tx, "metric_recorded", customer_id, entry["_id"]),
            metricId=metric_id,
            **_measured(metric, value),
            day=date,
        )
        return entry

    entry = await in_transaction(ctx, recorded)
    shown = ("_id", "metricsSetId", "metricId", "date", "value", "createdAt", "updatedAt", "version")
    return {name: entry[name] for name in shown}


async def value_on(ctx: Context, customer_id: ObjectId, metric_id: ObjectId, date: str) -> float | None:
    """What is recorded of a metric on a date, or None. Raises NotFound, Forbidden for the client."""
    await customers.get_visible(ctx, customer_id)
    return await store.value_on(ctx, customer_id, metric_id, date)


async def log(
    ctx: Context, customer_id: ObjectId, witem_id: ObjectId, set_id: ObjectId, date: str, values: list[Document]
) -> list[Document]:
    """The values logged with a METRICS item enter the history, in the log's transaction; those it had before go. Gives
    what was measured: `{metricName, unit, value}`.

    A set that was scheduled and never assigned is assigned with its first values. Raises NotFound for a metric that is
    not in the item's set, Conflict when the assignment has been ended.
    """
    await store.forget_item(ctx, customer_id, witem_id)
    if not values:
        return []
    if not await store.is_assigned(ctx, customer_id, set_id):
        if await store.was_assigned(ctx, customer_id, set_id):
            raise _unassigned()
        await store.assign(ctx, customer_id, set_id)
    metric_set = (await metric_sets.load_by_id(ctx, [set_id]))[set_id]
    measured = []
    for each in values:
        metric = _metric(metric_set, each["metricId"])
        await store.record(ctx, customer_id, set_id, each["metricId"], date, each["value"], witem_id)
        measured.append(_measured(metric, each["value"]))
    return measured


async def move_values(ctx: Context, event: RecordedItemsRescheduled) -> None:
    """Move the values logged with rescheduled items to the new date."""
    await store.redate(ctx, event.customer_id, event.item_ids, event.date)


async def history(ctx: Context, customer_id: ObjectId, set_id: ObjectId, metric_id: ObjectId) -> list[Document]:
    """What was recorded of a metric, `{date, value}` by date; readable after the set was unassigned.

    Raises LegacyFailure for a missing set, NotFound for a metric that was never in it.
    """
    await customers.get_visible(ctx, customer_id)
    await metric_of(ctx, set_id, metric_id)
    return await store.history(ctx, customer_id, metric_id)


async def metric_of(ctx: Context, set_id: ObjectId, metric_id: ObjectId) -> Metric:
    """A metric that is or was in a set, as it is called and measured. Raises as `history`."""
    metric_set = await _existing(ctx, set_id, deleted_too=True)
    for metric in (*metric_set["metrics"], *metric_set["archivedMetrics"]):
        if metric["_id"] == metric_id:
            return metric
    raise NotFound("metric")


def _measured(metric: Metric, value: float) -> Document:
    return {"metricName": metric["name"], "unit": metric["metricUnit"]["shortName"], "value": value}


def _unassigned() -> Conflict:
    about = "a coach assigns it, on the client's Progress page in the application, before anything is recorded"
    return Conflict(f"This metric set is not assigned to the client; {about}")


async def _existing(ctx: Context, set_id: ObjectId, *, deleted_too: bool = False) -> MetricSetWithArchived:
    try:
        return await metric_sets.read_with_archived(ctx, set_id, include_deleted=deleted_too)
    except NotFound:
        raise LegacyFailure("METRICS_SET_MISSING", "The metrics set does not exist") from None


def _metric(metric_set: MetricSetWithArchived, metric_id: ObjectId) -> Metric:
    for metric in metric_set["metrics"]:
        if metric["_id"] == metric_id:
            return metric
    if any(metric["_id"] == metric_id for metric in metric_set["archivedMetrics"]):
        raise Conflict("This metric has been taken out of its set; nothing new is recorded")
    raise NotFound("metric")
