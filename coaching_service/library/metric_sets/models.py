"""Metric sets as they are sent, stored and read."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypeAlias, TypedDict

from marshmallow import fields

from coaching_service.core.database.models import Returned, Stored
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Change, Default, Description, Partial
from coaching_service.core.ids import ObjectId, stable_id
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


# --- The units in which metrics are recorded; they are the same for every company -------------------------------------


_UNITS = (
    ("Kilograms", "kg"),
    ("Pounds", "lb"),
    ("Centimeters", "cm"),
    ("Inches", "in"),
    ("Meters", "m"),
    ("Kilometers", "km"),
    ("Miles", "mi"),
    ("Percent", "%"),
    ("Count", "count"),
    ("Score", "score"),
    ("Steps", "steps"),
    ("Seconds", "s"),
    ("Minutes", "min"),
    ("Hours", "h"),
    ("Beats per minute", "bpm"),
    ("Milliseconds", "ms"),
    ("Millimeters of mercury", "mmHg"),
    ("Degrees Celsius", "°C"),
    ("Kilocalories", "kcal"),
    ("Grams", "g"),
    ("Milliliters", "ml"),
    ("Liters", "l"),
    ("Watts", "W"),
    ("Milliliters per kilogram and minute", "ml/kg/min"),
    ("Millimoles per liter", "mmol/l"),
    ("Milligrams per deciliter", "mg/dl"),
)

UNITS: dict[ObjectId, MetricUnit] = {
    stable_id("metric unit", name): {"_id": stable_id("metric unit", name), "name": name, "shortName": short}
    for name, short in _UNITS
}


def unit_id(short_name: str) -> ObjectId:
    """Return the identifier of the unit with this short name. Raises KeyError."""
    ids = {unit["shortName"]: identifier for identifier, unit in UNITS.items()}
    return ids[short_name]
