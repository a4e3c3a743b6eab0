"""Metric sets as they are sent, stored and read."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypeAlias, TypedDict

from marshmallow import fields

from coaching_service.core.database.models import Returned, Stored
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Change, Default, Description, Partial
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import ListOf, Text


class MetricUnit(TypedDict):
    """A unit of measurement."""

    _id: ObjectId
    name: str
    shortName: str


class NewMetric(TypedDict):
    """A metric of a set; `_id` refers to one that the set already has."""

    _id: NotRequired[ObjectId]
    name: Annotated[str, Text()]
    metricUnitId: ObjectId


class MetricSetDetails(TypedDict):
    """The fields of a metric set without its metrics."""

    name: Annotated[str, Text()]
    assignAutomatically: Annotated[bool, Default(False), Description(request="Assign the set to every new client.")]


class NewMetricsSet(MetricSetDetails):
    """A metric set to create."""

    metrics: Annotated[list[NewMetric], ListOf(fields.Nested(input_of(NewMetric)), minimum=1)]


class StoredMetric(TypedDict):
    """A metric in a stored set; an archived one is no longer recorded, but its history remains."""

    _id: ObjectId
    name: str
    metricUnitId: ObjectId
    isArchived: bool


class MetricSetContent(MetricSetDetails):
    """The content of a stored metric set."""

    metrics: list[StoredMetric]


class StoredMetricSet(MetricSetContent, Stored):
    """A metric set in the database."""


class Metric(TypedDict):
    """A metric with its unit."""

    _id: ObjectId
    name: str
    metricUnit: MetricUnit


class MetricSet(MetricSetDetails, Returned):
    """A set of metrics that can be assigned to clients."""

    metrics: list[Metric]


class MetricSetWithArchived(MetricSet):
    """A metric set with its archived metrics."""

    archivedMetrics: list[Metric]


MetricSetChange: TypeAlias = Change[NewMetricsSet]
MetricSetFields: TypeAlias = Partial[MetricSetContent]
