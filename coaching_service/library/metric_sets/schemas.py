"""What the metric set operations read and answer."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.kernel.validation import Answer, Flag, Identifier, Input, ListOf, Moment, Text


class NewMetric(Input):
    """Something to measure. `_id` keeps a metric that is there already."""

    _id = Identifier()
    name = Text(required=True)
    metricUnitId = Identifier(required=True)


class NewMetricsSet(Input):
    """A metric set of the company's."""

    name = Text(required=True)
    assignAutomatically = Flag(
        load_default=False, metadata={"description": "New clients are assigned the set as they are created."}
    )
    metrics = ListOf(fields.Nested(NewMetric), least=1, required=True)


class MetricUnit(Answer):
    """A unit metrics are recorded in."""

    _id = Identifier()
    name = fields.String()
    shortName = fields.String()


class Metric(Answer):
    """Something measured."""

    _id = Identifier()
    name = fields.String()
    metricUnit = fields.Nested(MetricUnit)


class MetricsSet(Answer):
    """A metric set of the company's."""

    _id = Identifier()
    name = fields.String()
    assignAutomatically = fields.Boolean()
    metrics = fields.List(fields.Nested(Metric))
    createdAt = Moment()
    updatedAt = Moment()
    version = fields.Integer()
