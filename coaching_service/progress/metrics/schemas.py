"""What the operations on a client's metrics read and answer."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.kernel.validation import Answer, Day, Identifier, Input, Moment, Number
from coaching_service.library.metric_sets.schemas import Metric


class MetricsSetReference(Input):
    """The set to assign."""

    metricsSetId = Identifier(required=True)


class NewEntry(Input):
    """A value to record."""

    metricId = Identifier(required=True)
    date = Day(required=True)
    value = Number(least=-1e12, required=True)


class MetricsSetName(Answer):
    """A metric set as it is called."""

    _id = Identifier()
    name = fields.String()


class TrackedMetric(Answer):
    """A metric with its earliest and its latest value by date, in the metric's unit."""

    metric = fields.Nested(Metric)
    initialValue = fields.Float(allow_none=True)
    currentValue = fields.Float(allow_none=True)


class AssignedMetricsSet(Answer):
    """A metric set a client is assigned."""

    _id = Identifier()
    customerId = Identifier()
    metricsSet = fields.Nested(MetricsSetName)
    metrics = fields.List(fields.Nested(TrackedMetric))
    createdAt = Moment()
    updatedAt = Moment()
    version = fields.Integer()


class Entry(Answer):
    """A value as it was recorded."""

    _id = Identifier()
    metricsSetId = Identifier()
    metricId = Identifier()
    date = Day()
    value = fields.Float()
    createdAt = Moment()
    updatedAt = Moment()
    version = fields.Integer()


class HistoryEntry(Answer):
    """A value on a date."""

    date = Day()
    value = fields.Float()
