"""A client's metrics: the sets they are assigned, and the values recorded of each metric."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypedDict, cast

from marshmallow import fields

from coaching_service.core import errors
from coaching_service.core.changes import history
from coaching_service.core.changes.undo import DocumentsRestored
from coaching_service.core.database import declared
from coaching_service.core.database.context import Context, transactional
from coaching_service.core.database.declared import RECORDS, History, Portable, Returned, Stored
from coaching_service.core.database.documents import Documents, Filter, now
from coaching_service.core.database.recording import interface_of
from coaching_service.core.fields import Description, input_of, take
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import CalendarDate, ListOf, Number
from coaching_service.library import metric_sets
from coaching_service.library.metric_sets import Metric, MetricSetWithArchived
from coaching_service.people.activity import service as activity
from coaching_service.people.activity.service import MeasuredValue
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import CustomersCreated
from coaching_service.training import body_weights
from coaching_service.training.body_weights import BodyWeight
from coaching_service.training.workouts.blocks import items as block_items
from coaching_service.training.workouts.blocks.models import RecordedItemsRescheduled
from coaching_service.training.workouts.blocks.service import ClientCalendar
from coaching_service.training.workouts.items.models import MetricValue


class StoredAssignment(Stored):
    """The assignment of a metric set to a client; `unassignedAt` is None while it lasts."""

    customerId: ObjectId
    metricsSetId: ObjectId
    unassignedAt: datetime.datetime | None


class MetricsSetReference(TypedDict):
    """The metric set to assign."""

    metricsSetId: ObjectId


class NewMetricEntry(TypedDict):
    """A value to record."""

    metricId: ObjectId
    date: Annotated[str, CalendarDate()]
    value: Annotated[float, Number(minimum=-1e12)]


class NewMetricValues(TypedDict):
    """Values to record."""

    values: Annotated[list[NewMetricEntry], ListOf(fields.Nested(input_of(NewMetricEntry)), minimum=1, maximum=500)]


class RecordedMetricValues(TypedDict):
    """The result of recording several values."""

    recorded: Annotated[int, Description("How many values were recorded.")]


class MetricEntry(MetricsSetReference, NewMetricEntry, Returned):
    """A recorded value of a metric."""


class NewEntry(MetricsSetReference, NewMetricEntry):
    """The value of a metric of a client; `witemId` is the workout item it was logged with, if any."""

    customerId: ObjectId
    witemId: ObjectId | None


class StoredEntry(NewEntry, Stored):
    """A stored value of a metric."""


class MetricRange(TypedDict):
    """The earliest and the latest value by date of a metric (`_id`), with their dates."""

    _id: ObjectId
    first: float
    firstDate: str
    last: float
    lastDate: str


class MetricsSetName(TypedDict):
    """A metric set by identifier and name."""

    _id: ObjectId
    name: str


class TrackedMetric(TypedDict):
    """A metric with its earliest and latest value by date, in the metric's unit."""

    metric: Metric
    initialValue: float | None
    currentValue: float | None


class AssignedMetricsSet(Returned):
    """A metric set that a client is assigned."""

    customerId: ObjectId
    metricsSet: MetricsSetName
    metrics: list[TrackedMetric]


class MetricHistoryEntry(TypedDict):
    """The value of a metric on a date."""

    date: Annotated[str, CalendarDate()]
    value: float


class Measurement(TypedDict):
    """A metric with its earliest and latest value; None without a value."""

    metric: Metric
    first: MetricHistoryEntry | None
    latest: MetricHistoryEntry | None


class MeasurementSet(MetricsSetName):
    """An assigned metric set with the values of its metrics."""

    measurements: list[Measurement]


# --- Metric assignments and values in the database: at most one value for a metric and date ---------------------------


def _event(action: declared.Action, known: Mapping[str, Any], _: Collection[str]) -> declared.EventData | None:
    is_assigned = action != "deleted" and known["unassignedAt"] is None
    data = {"metricsSetId": known["metricsSetId"]}
    return {"type": "metrics_set.assigned" if is_assigned else "metrics_set.unassigned", "data": data}


_assignments = Documents[StoredAssignment](
    "metricAssignments",
    (
        declared.Index(("customerId", "metricsSetId"), unique=True),
        declared.Index(("customerId", "unassignedAt", "createdAt")),
    ),
    client_field="customerId",
    history=History("metrics_assignment", _event, ("metricsSetId", "unassignedAt")),
    transfer=Portable(StoredAssignment, RECORDS, references={"customerId": "customers", "metricsSetId": "metricSets"}),
)
_entries = Documents[StoredEntry](
    "metricEntries",
    (
        declared.Index(("customerId", "metricId", "date"), unique=True),
        declared.Index(("customerId", "witemId")),
    ),
    client_field="customerId",
    history=History("metric_value"),
    transfer=Portable(
        StoredEntry,
        RECORDS,
        references={"customerId": "customers", "metricsSetId": "metricSets"},
    ),
)


_KEY = ("customerId", "metricId", "date")


async def list_assignments(ctx: Context, customer_id: ObjectId) -> list[StoredAssignment]:
    """Return the current assignments of a client, oldest first."""
    return await _assignments.find(ctx, {"customerId": customer_id, "unassignedAt": None}, sort=("createdAt", "_id"))


async def find_assignment(ctx: Context, customer_id: ObjectId, set_id: ObjectId) -> StoredAssignment | None:
    """Return the current or former assignment of a set to a client, or None."""
    return await _assignments.find_one(ctx, {"customerId": customer_id, "metricsSetId": set_id})


async def assign_many(ctx: Context, customer_ids: Sequence[ObjectId], set_id: ObjectId) -> None:
    """Assign a set to several clients; the caller has checked that both exist and may be accessed."""
    where = {"customerId": {"$in": list(customer_ids)}, "metricsSetId": set_id, "unassignedAt": None}
    current = await _assignments.find(ctx, where, fields=("customerId",))
    assigned_ids = {assignment["customerId"] for assignment in current}
    new = [
        {"customerId": customer_id, "metricsSetId": set_id, "unassignedAt": None}
        for customer_id in dict.fromkeys(customer_ids)
        if customer_id not in assigned_ids
    ]
    await _assignments.upsert_many(ctx, ("customerId", "metricsSetId"), new)


# --- Body weights -----------------------------------------------------------------------------------------------------
# Body weights among the values of a client's metrics: copied for the exercises whose load is added to the body's.


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


async def copy_body_weights(ctx: Context, customer_id: ObjectId, changed: Iterable[StoredEntry]) -> None:
    """Copy the body weights among values that were recorded or deleted, in the caller's transaction."""
    entries = list(changed)
    units = _units_of((await metric_sets.get_by_id(ctx, {each["metricsSetId"] for each in entries})).values())
    dates = sorted({each["date"] for each in entries if each["metricId"] in units})
    if not dates:
        return
    await customers.lock_and_mark_figures(ctx, customer_id)
    where = {"customerId": customer_id, "metricId": {"$in": [*units]}, "date": {"$in": dates}}
    new = _copy(await _entries.find(ctx, where), units)
    await body_weights.replace(ctx, customer_id, [*units], dates, new)


@transactional
async def copy_all(ctx: Context, customer_id: ObjectId) -> None:
    """Copy all body weights of a client; what follows from them is up to the caller."""
    await customers.lock_and_mark_figures(ctx, customer_id)
    units = _units_of(await metric_sets.list_with_archived(ctx))
    where = {"customerId": customer_id, "metricId": {"$in": [*units]}}
    await body_weights.replace_all(ctx, customer_id, _copy(await _entries.find(ctx, where), units))


async def copy_restored_body_weights(ctx: Context, event: DocumentsRestored) -> None:
    """Copy the body weights among values that an undo has restored."""
    states = [each for document in event.of_kind("metric_value") for each in (document.before, document.after) if each]
    entries = [cast("StoredEntry", each) for each in states]
    for customer_id in {each["customerId"] for each in entries}:
        await copy_body_weights(ctx, customer_id, [each for each in entries if each["customerId"] == customer_id])


def _units_of(sets: Iterable[MetricSetWithArchived]) -> dict[ObjectId, str]:
    """Return the units of the body weights in metric sets, by metric."""
    metrics = [metric for each in sets for metric in _metrics_of(each)]
    return {each["_id"]: each["metricUnit"]["shortName"] for each in metrics if is_body_weight(each)}


def _metrics_of(metric_set: MetricSetWithArchived) -> list[Metric]:
    return [*metric_set["metrics"], *metric_set["archivedMetrics"]]


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


# --- Which values of a client's metrics are plausible -----------------------------------------------------------------
# None of the future, none below zero in units that begin there, and none far from the last without asking.


FAR_FACTOR: Final = 5
FAR_SHARE: Final = 0.2  # of a value of the last 30 days
_RECENT = datetime.timedelta(days=30)
_REMEMBERED = datetime.timedelta(days=365)  # what assistants have recorded
_READ: Final = 20  # values at once, until one is not of an assistant alone
# The units that know values below zero: temperatures, balances and differences.
_SIGNED: Final = frozenset({"%", "count", "score", "kcal", "°C"})


async def require_past_dates(ctx: Context, customer_id: ObjectId, dates: Iterable[tuple[str, str]]) -> None:
    """Raise InvalidFields for each field whose date is after the client's today.

    `dates`: fields with their dates (`YYYY-MM-DD`). Raises NotFound if the company has no such client.
    """
    today = str(await customers.get_local_date(ctx, customer_id))
    if future := [field for field, date in dates if date > today]:
        message = "must not be after today"
        raise errors.InvalidFields([{"field": field, "code": "IN_THE_FUTURE", "message": message} for field in future])


def require_possible(metric: Metric, value: float, field: str) -> None:
    """Raise InvalidFields, naming `field`, for a value that the unit of a metric does not allow."""
    if value < 0 and (unit := metric["metricUnit"]["shortName"]) not in _SIGNED:
        raise errors.invalid_field(
            field, f"must not be negative: {metric['name']} is measured in {unit}", code="OUT_OF_RANGE"
        )


async def find_far_values(
    ctx: Context, customer_id: ObjectId, date: str, values: Mapping[ObjectId, float]
) -> dict[ObjectId, MetricHistoryEntry]:
    """Return values that were recorded before, by metric, from which the new value of a date is far.

    Compared are the last one until that date, the next one within 30 days and, for an assistant, the last one that it
    could not record alone: else it would come to any value in small steps. Far: of another sign, zero, or 20 % more or
    less than a value of 30 days; more than five times as much as an older one, or less than a fifth. Raises what
    `metrics.service.list_assigned` raises.
    """
    await customers.get_visible(ctx, customer_id)
    day, far = datetime.date.fromisoformat(date), dict[ObjectId, MetricHistoryEntry]()
    for metric_id, value in values.items():
        where: Filter = {"customerId": customer_id, "metricId": metric_id}
        later = await _entries.find(ctx, {**where, "date": {"$gt": date}}, sort=("date",), limit=1)
        for last in [*await _find_latest(ctx, where, date), *later]:
            ago = day - datetime.date.fromisoformat(last["date"])
            if ago < -_RECENT:
                continue
            if last["value"] == 0 or value * last["value"] <= 0:
                is_far = last["value"] != 0  # of a value of zero, nothing is known
            elif ago <= _RECENT:
                is_far = abs(value - last["value"]) > FAR_SHARE * abs(last["value"])
            else:
                is_far = not 1 / FAR_FACTOR <= value / last["value"] <= FAR_FACTOR
            if is_far:
                far.setdefault(metric_id, {"date": last["date"], "value": last["value"]})
    return far


async def _find_latest(ctx: Context, where: Filter, date: str) -> list[StoredEntry]:
    """Return the last value of a metric until a date and, for an assistant, the last one not recorded by one alone."""
    is_assistant, until = interface_of(ctx) == "assistant", {"$lte": date}
    latest: list[StoredEntry] = []
    limit = _READ if is_assistant else 1
    while read := await _entries.find(ctx, {**where, "date": until}, sort=("-date",), limit=limit):
        latest = latest or read[:1]
        if not is_assistant:
            break
        ids = [each["_id"] for each in read]
        changes = await history.list_unapproved(ctx, where["customerId"], ids, _REMEMBERED)
        alone = {(each["_id"], each["toVersion"]) for change in changes for each in change["documents"]}
        if by_people := [each for each in read if (each["_id"], each["version"]) not in alone]:
            return [*latest, by_people[0]]
        until = {"$lt": read[-1]["date"]}
    return latest


async def list_assigned(ctx: Context, customer_id: ObjectId) -> list[AssignedMetricsSet]:
    """Return the metric sets a client is assigned, each metric with its earliest and latest value by date.

    Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    assigned, ranges = await _load_assigned(ctx, customer_id)
    return [
        {
            "_id": assignment["_id"],
            "customerId": assignment["customerId"],
            "metricsSet": {"_id": metric_set["_id"], "name": metric_set["name"]},
            "metrics": [
                {
                    "metric": metric,
                    "initialValue": ranges[metric["_id"]]["first"] if metric["_id"] in ranges else None,
                    "currentValue": ranges[metric["_id"]]["last"] if metric["_id"] in ranges else None,
                }
                for metric in metric_set["metrics"]
            ],
            "createdAt": assignment["createdAt"],
            "updatedAt": assignment["updatedAt"],
            "version": assignment["version"],
        }
        for assignment, metric_set in assigned
    ]


async def _load_assigned(
    ctx: Context, customer_id: ObjectId, last_date: str | None = None
) -> tuple[list[tuple[StoredAssignment, MetricSetWithArchived]], dict[ObjectId, MetricRange]]:
    """Return the assignments of a client with their sets, and the values of each metric up to `last_date`, if any."""
    await customers.get_visible(ctx, customer_id)
    assignments = await list_assignments(ctx, customer_id)
    sets = await metric_sets.get_by_id(ctx, [assignment["metricsSetId"] for assignment in assignments])
    metric_ids = [metric["_id"] for metric_set in sets.values() for metric in metric_set["metrics"]]
    where: Filter = {"customerId": customer_id, "metricId": {"$in": metric_ids}}
    if last_date is not None:
        where["date"] = {"$lte": last_date}
    group = {
        "_id": "$metricId",
        "first": {"$first": "$value"},
        "firstDate": {"$first": "$date"},
        "last": {"$last": "$value"},
        "lastDate": {"$last": "$date"},
    }
    ranges: list[MetricRange] = await _entries.aggregate(
        ctx, where, {"$sort": {"metricId": 1, "date": 1}}, {"$group": group}
    )
    assigned = [(assignment, sets[assignment["metricsSetId"]]) for assignment in assignments]
    return assigned, {each["_id"]: each for each in ranges}


async def list_measurements(ctx: Context, customer_id: ObjectId, last_date: str | None = None) -> list[MeasurementSet]:
    """Return the metric sets a client is assigned, each metric with its first and latest value (up to `last_date`).

    Raises what `list_assigned` raises.
    """
    assigned, ranges = await _load_assigned(ctx, customer_id, last_date)
    return [
        {
            "_id": metric_set["_id"],
            "name": metric_set["name"],
            "measurements": [
                {
                    "metric": metric,
                    "first": {"date": values["firstDate"], "value": values["first"]} if values else None,
                    "latest": {"date": values["lastDate"], "value": values["last"]} if values else None,
                }
                for metric in metric_set["metrics"]
                for values in [ranges.get(metric["_id"])]
            ],
        }
        for _, metric_set in assigned
    ]


@transactional
async def assign(ctx: Context, customer_id: ObjectId, set_id: ObjectId) -> AssignedMetricsSet:
    """Assign a metric set to a client and return it with the earlier history. Repeating is harmless.

    Raises LegacyFailure if the set does not exist, and what `list_assigned` raises.
    """
    await customers.get_visible(ctx, customer_id)
    await _load_set(ctx, set_id)
    if not await _is_assigned(ctx, customer_id, set_id):  # also a former assignment
        await _assignments.upsert(ctx, {"customerId": customer_id, "metricsSetId": set_id}, {"unassignedAt": None})
    assigned = await list_assigned(ctx, customer_id)
    return next(each for each in assigned if each["metricsSet"]["_id"] == set_id)


async def assign_automatic_sets(ctx: Context, event: CustomersCreated) -> None:
    """Assign the metric sets marked `assignAutomatically` to new clients."""
    set_ids = [metric_set["_id"] for metric_set in await metric_sets.list_automatic(ctx)]
    new = [
        {"customerId": each.customer["_id"], "metricsSetId": set_id, "unassignedAt": None}
        for each in event.created
        for set_id in set_ids
    ]
    await _assignments.insert_many(ctx, new)


async def unassign(ctx: Context, customer_id: ObjectId, set_id: ObjectId) -> None:
    """End an assignment; its history stays.

    Raises LegacyFailure if the set does not exist, NotFound if it is not assigned, and what `list_assigned` raises.
    """
    await customers.get_visible(ctx, customer_id)
    await _load_set(ctx, set_id, include_deleted=True)
    where = {"customerId": customer_id, "metricsSetId": set_id, "unassignedAt": None}
    errors.require_found(await _assignments.update(ctx, where, {"$set": {"unassignedAt": now()}}), "assignment")


@transactional
async def record(
    ctx: Context, customer_id: ObjectId, set_id: ObjectId, metric_id: ObjectId, date: str, value: float
) -> MetricEntry:
    """Record the value of a metric on a date (`YYYY-MM-DD`, the client's), replacing an existing one.

    Raises InvalidFields for a date after the client's today, and for a value that the unit does not allow,
    LegacyFailure if the set does not exist or is deleted, NotFound if the metric is not in it, Conflict if the set is
    not assigned or the metric is archived, and what `list_assigned` raises. For a client a set that does not exist, or
    was never assigned, is NotFound.
    """
    await require_past_dates(ctx, customer_id, [("date", date)])
    await _require_known_to_client(ctx, customer_id, set_id)
    metric_set = await _load_set(ctx, set_id)
    if not await _is_assigned(ctx, customer_id, set_id):
        raise _not_assigned(ctx)
    metric = _find_active(metric_set, metric_id)
    require_possible(metric, value, "value")
    if not ctx.caller.is_coach:
        await customers.record_activity(ctx, customer_id)
    new = _new_entries(customer_id, set_id, date, [{"metricId": metric_id, "value": value}])
    return (await _record(ctx, new, [metric]))[0]


def _new_entries(
    customer_id: ObjectId, set_id: ObjectId, date: str, values: Iterable[MetricValue], item_id: ObjectId | None = None
) -> list[NewEntry]:
    return [
        {"customerId": customer_id, "metricsSetId": set_id, "date": date, "witemId": item_id, **take(MetricValue, each)}
        for each in values
    ]


@transactional
async def record_many(ctx: Context, customer_id: ObjectId, values: Sequence[NewMetricEntry]) -> list[MetricEntry]:
    """Record values of metrics of any sets that a client is assigned, as `record` does: all or none.

    Returns the entries in the order of `values`.

    Raises InvalidFields if a metric and date are repeated or a date is after the client's today, NotFound if the
    company has no such metric, Conflict if its set is not assigned or it is archived, naming the entry
    (`values.2.metricId`), and what `list_assigned` raises.
    """
    dates = [(f"values.{index}.date", value["date"]) for index, value in enumerate(values)]
    await require_past_dates(ctx, customer_id, dates)
    sets = await metric_sets.list_with_archived(ctx)
    assigned_ids = {assignment["metricsSetId"] for assignment in await list_assignments(ctx, customer_id)}
    set_of = {metric["_id"]: each for each in sets for metric in _metrics_of(each)}
    keys = [(value["metricId"], value["date"]) for value in values]
    if repeated := [index for index, key in enumerate(keys) if key in keys[:index]]:
        raise errors.invalid_field(f"values.{repeated[0]}", "must not repeat a metric and date", code="DUPLICATE")
    new_entries: list[NewEntry] = []
    metrics: list[Metric] = []
    for index, value in enumerate(values):
        path, metric_set = f"values.{index}.metricId", set_of.get(value["metricId"])
        if metric_set is None:
            raise errors.NotFound("metric", f"{path}: Metric not found")
        try:
            if metric_set["_id"] not in assigned_ids:
                raise _not_assigned(ctx)
            metrics.append(_find_active(metric_set, value["metricId"]))
        except errors.Conflict as error:
            raise errors.Conflict(f"{path}: {error.message}", code=error.code) from None
        require_possible(metrics[-1], value["value"], f"values.{index}.value")
        new_entries.append({**value, "customerId": customer_id, "metricsSetId": metric_set["_id"], "witemId": None})
    return await _record(ctx, new_entries, metrics)


async def find_values(
    ctx: Context, customer_id: ObjectId, metric_ids: Collection[ObjectId], dates: Collection[str]
) -> dict[tuple[ObjectId, str], float]:
    """Return the values of metrics on dates. Raises what `list_assigned` raises."""
    await customers.get_visible(ctx, customer_id)
    where = {"customerId": customer_id, "metricId": {"$in": list(metric_ids)}, "date": {"$in": list(dates)}}
    found = await _entries.find(ctx, where, fields=("metricId", "date", "value"))
    return {(each["metricId"], each["date"]): each["value"] for each in found}


async def find_ended(ctx: Context, customer_id: ObjectId, set_ids: Collection[ObjectId]) -> dict[ObjectId, bool]:
    """Return of each set that a client is or was assigned whether the assignment has ended."""
    where = {"customerId": customer_id, "metricsSetId": {"$in": list(set_ids)}}
    found = await _assignments.find(ctx, where, fields=("metricsSetId", "unassignedAt"))
    return {each["metricsSetId"]: each["unassignedAt"] is not None for each in found}


@transactional
async def remove_imported(ctx: Context, ids: Collection[ObjectId]) -> tuple[int, list[ObjectId]]:
    """Delete values that an import has recorded, unless they have changed since.

    Returns how many were deleted, and those that stay.
    """
    found = await _entries.find(ctx, {"_id": {"$in": list(ids)}})
    unchanged = [each for each in found if each["version"] == 0 and each["witemId"] is None]
    for customer_id in {each["customerId"] for each in unchanged}:
        entries = [each for each in unchanged if each["customerId"] == customer_id]
        await customers.lock_and_mark_figures(ctx, customer_id)
        await _entries.delete_many(ctx, {"customerId": customer_id, "_id": {"$in": [e["_id"] for e in entries]}})
        await copy_body_weights(ctx, customer_id, entries)
        for each in entries:
            await activity.delete_events(ctx, customer_id, each["_id"], "metric_recorded")
    return len(unchanged), [each["_id"] for each in found if each not in unchanged]


@transactional
async def remove_unused_assignments(ctx: Context, ids: Collection[ObjectId]) -> None:
    """Delete assignments that an import has made, unless they have changed since or their sets have values."""
    for each in await _assignments.find(ctx, {"_id": {"$in": list(ids)}, "version": 0}):
        [metric_set] = (await metric_sets.get_by_id(ctx, [each["metricsSetId"]])).values()
        metric_ids = [metric["_id"] for metric in _metrics_of(metric_set)]
        where = {"customerId": each["customerId"], "metricId": {"$in": metric_ids}}
        if await _entries.find_one(ctx, where, ("_id",)) is None:
            await _assignments.delete(ctx, {"customerId": each["customerId"], "_id": each["_id"]})


async def _record(ctx: Context, new_entries: Sequence[NewEntry], metrics: Sequence[Metric]) -> list[MetricEntry]:
    """Store values, each with its metric, and report them in the activity feed."""
    entries = await _entries.upsert_many(ctx, _KEY, new_entries)
    for entry, metric in zip(entries, metrics, strict=True):
        data = {"metricId": metric["_id"], "day": entry["date"], **_measured(metric, entry["value"])}
        await activity.record_event(ctx, "metric_recorded", entry["customerId"], entry["_id"], **data)
    await copy_body_weights(ctx, new_entries[0]["customerId"], entries)
    return [take(MetricEntry, entry) for entry in entries]


async def record_logged_values(
    ctx: Context,
    customer_id: ObjectId,
    item_id: ObjectId,
    set_id: ObjectId,
    date: str,
    values: Sequence[MetricValue],
    previous: Sequence[MetricValue],
) -> list[MeasuredValue]:
    """Record the values that the log of a METRICS item changes, in the transaction of the log.

    `previous` are those of its log before: what is recorded of them stays as it is, also if it was corrected since.
    Values that the log leaves out are deleted, but for those of archived metrics. A set that was never assigned is
    assigned with its first values. Raises InvalidFields for new values of a date after the client's today, NotFound if
    a metric is not in the set, Conflict for new values if the assignment has ended or the metric is archived.
    """
    if not values and not previous:
        return []
    metric_set = (await metric_sets.get_by_id(ctx, [set_id]))[set_id]
    kept_ids = [each["_id"] for each in metric_set["archivedMetrics"]] + [logged["metricId"] for logged in values]
    left_out = {"customerId": customer_id, "witemId": item_id, "metricId": {"$nin": kept_ids}}
    changed = await _entries.find(ctx, left_out)
    await _entries.delete_many(ctx, left_out)
    if new := [logged for logged in values if logged not in previous]:
        await require_past_dates(ctx, customer_id, [("values", date)])
        assignment = await find_assignment(ctx, customer_id, set_id)
        if assignment is None:
            await _assignments.upsert(ctx, {"customerId": customer_id, "metricsSetId": set_id}, {"unassignedAt": None})
        elif assignment["unassignedAt"] is not None:
            raise _not_assigned(ctx)
        for logged in new:
            require_possible(_find_active(metric_set, logged["metricId"]), logged["value"], "values")
        new_entries = _new_entries(customer_id, set_id, date, new, item_id)
        changed += await _entries.upsert_many(ctx, _KEY, new_entries)
    await copy_body_weights(ctx, customer_id, changed)
    known = _metrics_of(metric_set)
    return [_measured(errors.require_by_id(known, logged["metricId"], "metric"), logged["value"]) for logged in values]


async def move_values(ctx: Context, event: RecordedItemsRescheduled) -> None:
    """Move the values logged with rescheduled items to the new date. Raises InvalidFields if it is in the future."""
    customer_id, date = event.customer_id, event.date
    recorded = await _entries.find(ctx, {"customerId": customer_id, "witemId": {"$in": list(event.item_ids)}})
    if recorded:
        await require_past_dates(ctx, customer_id, [("date", date)])
    for entry in recorded:
        if entry["date"] != date:
            await _entries.delete(ctx, {"customerId": customer_id, "_id": entry["_id"]})
            moved = await _entries.upsert_many(ctx, _KEY, [{**take(NewEntry, entry), "date": date}])
            await copy_body_weights(ctx, customer_id, [entry, *moved])


async def list_history(
    ctx: Context, customer_id: ObjectId, set_id: ObjectId, metric_id: ObjectId
) -> list[MetricHistoryEntry]:
    """Return the values of a metric by date, also after its set was unassigned or deleted.

    Raises LegacyFailure if the set never existed, NotFound if the metric was never in it, and what `list_assigned`
    raises. For a client a set that never existed, or was never assigned, is NotFound.
    """
    await customers.get_visible(ctx, customer_id)
    await _require_known_to_client(ctx, customer_id, set_id)
    await find_metric(ctx, set_id, metric_id)
    where = {"customerId": customer_id, "metricId": metric_id}
    stored = await _entries.find(ctx, where, sort=("date",), fields=("date", "value"))
    return [{"date": entry["date"], "value": entry["value"]} for entry in stored]


@transactional
async def delete_value(ctx: Context, customer_id: ObjectId, set_id: ObjectId, metric_id: ObjectId, date: str) -> None:
    """Delete the value of a metric on a date, in the log of the workout item that it was recorded with too.

    Raises NotFound if there is no such value, and what `list_history` raises.
    """
    await customers.get_visible(ctx, customer_id)
    await _require_known_to_client(ctx, customer_id, set_id)
    await find_metric(ctx, set_id, metric_id)
    await customers.lock_and_mark_figures(ctx, customer_id)
    where = {"customerId": customer_id, "metricId": metric_id, "date": date}
    entry = errors.require_found(await _entries.delete(ctx, where), "value")
    await copy_body_weights(ctx, customer_id, [entry])
    await activity.delete_events(ctx, customer_id, entry["_id"], "metric_recorded")
    if entry["witemId"] is not None:
        await block_items.remove_value(ctx, ClientCalendar(customer_id), entry["witemId"], metric_id)


async def find_metric(ctx: Context, set_id: ObjectId, metric_id: ObjectId) -> Metric:
    """Return a metric that is or was in a set, deleted or not. Raises LegacyFailure and NotFound as `list_history`."""
    metric_set = await _load_set(ctx, set_id, include_deleted=True)
    return errors.require_by_id(_metrics_of(metric_set), metric_id, "metric")


async def _load_set(ctx: Context, set_id: ObjectId, *, include_deleted: bool = False) -> MetricSetWithArchived:
    try:
        return await metric_sets.get_with_archived(ctx, set_id, include_deleted=include_deleted)
    except errors.NotFound:
        if not ctx.caller.is_coach:
            raise
        raise errors.LegacyFailure("METRICS_SET_MISSING", "The metrics set does not exist") from None


async def _require_known_to_client(ctx: Context, customer_id: ObjectId, set_id: ObjectId) -> None:
    """Raise NotFound if the caller is a client who was never assigned the set."""
    if not ctx.caller.is_coach and await find_assignment(ctx, customer_id, set_id) is None:
        raise errors.NotFound("metrics set")


async def _is_assigned(ctx: Context, customer_id: ObjectId, set_id: ObjectId) -> bool:
    assignment = await find_assignment(ctx, customer_id, set_id)
    return assignment is not None and assignment["unassignedAt"] is None


def _find_active(metric_set: MetricSetWithArchived, metric_id: ObjectId) -> Metric:
    for metric in metric_set["metrics"]:
        if metric["_id"] == metric_id:
            return metric
    if any(metric["_id"] == metric_id for metric in metric_set["archivedMetrics"]):
        raise errors.Conflict(
            "This metric was removed from its set: new values are not recorded", code="METRIC_ARCHIVED"
        )
    raise errors.NotFound("metric")


def _measured(metric: Metric, value: float) -> MeasuredValue:
    return {"metricName": metric["name"], "unit": metric["metricUnit"]["shortName"], "value": value}


def _not_assigned(ctx: Context) -> errors.Conflict:
    message = "This metric set is not assigned to the client; assign it on the client's Progress page first"
    if not ctx.caller.is_coach:
        message = "This metric set is no longer assigned to you"
    return errors.Conflict(message, code="METRICS_SET_NOT_ASSIGNED")
