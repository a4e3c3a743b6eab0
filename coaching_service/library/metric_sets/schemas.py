"""What the metric set operations read and answer."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import Boolean, DateTime, Identifier, Input, ListOf, Output, Text


class NewMetric(Input):
    """Something to measure. `_id` keeps a metric that is there already."""

    _id = Identifier()
    name = Text(required=True)
    metricUnitId = Identifier(required=True)


class NewMetricsSet(Input):
    """A metric set of the company's."""

    name = Text(required=True)
    assignAutomatically = Boolean(
        load_default=False, metadata={"description": "New clients are assigned the set as they are created."}
    )
    metrics = ListOf(fields.Nested(NewMetric), minimum=1, required=True)


class MetricUnit(Output):
    """A unit metrics are recorded in."""

    _id = Identifier()
    name = fields.String()
    shortName = fields.String()


class Metric(Output):
    """Something measured."""

    _id = Identifier()
    name = fields.String()
    metricUnit = fields.Nested(MetricUnit)


class MetricsSet(Output):
    """A metric set of the company's."""

    _id = Identifier()
    name = fields.String()
    assignAutomatically = fields.Boolean()
    metrics = fields.List(fields.Nested(Metric))
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()
