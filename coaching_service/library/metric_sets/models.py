"""Metric sets as they are sent, stored and read."""

from __future__ import annotations

from datetime import datetime
from typing import NotRequired, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.ids import ObjectId


class MetricUnit(TypedDict):
    """A unit of measurement, such as Kilograms (`kg`)."""

    _id: ObjectId
    name: str
    shortName: str


class MetricInput(TypedDict):
    """A metric as it is sent; with `_id` it is one that the set already has."""

    _id: NotRequired[ObjectId]
    name: str
    metricUnitId: ObjectId


class MetricSetInput(TypedDict):
    """A metric set to create."""

    name: str
    assignAutomatically: bool
    metrics: list[MetricInput]


class MetricSetChange(TypedDict, total=False):
    """The fields of a metric set to change, and the version the change is based on."""

    name: str
    assignAutomatically: bool
    metrics: list[MetricInput]
    version: int | None


class StoredMetric(TypedDict):
    """A metric in a stored set; an archived one is no longer recorded, but its history remains."""

    _id: ObjectId
    name: str
    metricUnitId: ObjectId
    isArchived: bool


class MetricSetFields(TypedDict, total=False):
    """The fields of a stored metric set to set."""

    name: str
    assignAutomatically: bool
    metrics: list[StoredMetric]


class StoredMetricSet(Stored):
    """A metric set in the database."""

    name: str
    assignAutomatically: bool
    metrics: list[StoredMetric]


class Metric(TypedDict):
    """A metric with its unit."""

    _id: ObjectId
    name: str
    metricUnit: MetricUnit


class MetricSet(TypedDict):
    """A metric set as it is read: without its archived metrics."""

    _id: ObjectId
    name: str
    assignAutomatically: bool
    metrics: list[Metric]
    createdAt: datetime
    updatedAt: datetime
    version: int


class MetricSetWithArchived(MetricSet):
    """A metric set with its archived metrics."""

    archivedMetrics: list[Metric]
