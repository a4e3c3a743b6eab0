"""A client's metrics as they are stored and returned."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypedDict

from marshmallow import fields

from coaching_service.core.database.declared import Returned, Stored
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Description
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import CalendarDate, ListOf, Number
from coaching_service.library.metric_sets import Metric


class StoredAssignment(Stored):
    """The assignment of a metric set to a client; `unassignedAt` is None while it lasts."""

    customerId: ObjectId
    metricsSetId: ObjectId
    unassignedAt: datetime | None


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
