"""Request and response schemas of metric sets."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import Boolean, DateTime, Identifier, Input, ListOf, Output, Text


class NewMetric(Input):
    """A metric of a set; `_id` refers to one that the set already has."""

    _id = Identifier()
    name = Text(required=True)
    metricUnitId = Identifier(required=True)


class NewMetricsSet(Input):
    """A metric set to create."""

    name = Text(required=True)
    assignAutomatically = Boolean(load_default=False, metadata={"description": "Assign the set to every new client."})
    metrics = ListOf(fields.Nested(NewMetric), minimum=1, required=True)


class MetricUnit(Output):
    """A unit of measurement."""

    _id = Identifier()
    name = fields.String()
    shortName = fields.String()


class Metric(Output):
    """A metric with its unit."""

    _id = Identifier()
    name = fields.String()
    metricUnit = fields.Nested(MetricUnit)


class MetricsSet(Output):
    """A set of metrics that can be assigned to clients."""

    _id = Identifier()
    name = fields.String()
    assignAutomatically = fields.Boolean()
    metrics = fields.List(fields.Nested(Metric))
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()
