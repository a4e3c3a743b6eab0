"""A client's metrics as they are stored and returned."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.ids import ObjectId
from coaching_service.library.metric_sets.models import Metric


class StoredAssignment(Stored):
    """The assignment of a metric set to a client; `unassignedAt` is None while it lasts."""

    customerId: ObjectId
    metricsSetId: ObjectId
    unassignedAt: datetime | None


class NewEntry(TypedDict):
    """The value of a metric on a date (`YYYY-MM-DD`); `witemId` is the workout item it was logged with, if any."""

    customerId: ObjectId
    metricsSetId: ObjectId
    metricId: ObjectId
    date: str
    value: float
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
    """A metric with its earliest and latest value by date; None without a value."""

    metric: Metric
    initialValue: float | None
    currentValue: float | None


class AssignedMetricSet(TypedDict):
    """A metric set that a client is assigned."""

    _id: ObjectId
    customerId: ObjectId
    metricsSet: MetricsSetName
    metrics: list[TrackedMetric]
    createdAt: datetime
    updatedAt: datetime
    version: int


class MetricHistoryEntry(TypedDict):
    """The value of a metric on a date."""

    date: str
    value: float


class Measurement(TypedDict):
    """A metric with its earliest and latest value; None without a value."""

    metric: Metric
    first: MetricHistoryEntry | None
    latest: MetricHistoryEntry | None


class MeasurementSet(MetricsSetName):
    """An assigned metric set with the values of its metrics."""

    measurements: list[Measurement]


class MetricsSetReference(TypedDict):
    """The metric set to assign."""

    metricsSetId: ObjectId


class NewMetricEntry(TypedDict):
    """A value to record; `date` is the client's."""

    metricId: ObjectId
    date: str
    value: float


class MetricEntry(TypedDict):
    """A recorded value."""

    _id: ObjectId
    metricsSetId: ObjectId
    metricId: ObjectId
    date: str
    value: float
    createdAt: datetime
    updatedAt: datetime
    version: int


class LoggedValue(TypedDict):
    """A value in the log of a workout item."""

    metricId: ObjectId
    value: float


class MeasuredValue(TypedDict):
    """A value as the activity feed shows it; `unit` is the symbol of the unit."""

    metricName: str
    unit: str
    value: float
