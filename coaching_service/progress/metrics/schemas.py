"""Requests and responses of the operations on a client's metrics."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import Date, DateTime, DryRun, Identifier, Input, ListOf, Number, Output
from coaching_service.library.metric_sets.schemas import Metric


class MetricsSetReference(Input):
    """The metric set to assign."""

    metricsSetId = Identifier(required=True)


class NewMetricEntry(Input):
    """A value to record."""

    metricId = Identifier(required=True)
    date = Date(required=True)
    value = Number(minimum=-1e12, required=True)


class NewMetricValues(DryRun):
    """Values to record."""

    values = ListOf(fields.Nested(NewMetricEntry), minimum=1, maximum=500, required=True)


class RecordedMetricValues(Output):
    """The result of recording several values."""

    recorded = fields.Integer(metadata={"description": "How many values were recorded."})


class MetricsSetName(Output):
    """A metric set by identifier and name."""

    _id = Identifier()
    name = fields.String()


class TrackedMetric(Output):
    """A metric with its earliest and latest value by date, in the metric's unit."""

    metric = fields.Nested(Metric)
    initialValue = fields.Float(allow_none=True)
    currentValue = fields.Float(allow_none=True)


class AssignedMetricsSet(Output):
    """A metric set that a client is assigned."""

    _id = Identifier()
    customerId = Identifier()
    metricsSet = fields.Nested(MetricsSetName)
    metrics = fields.List(fields.Nested(TrackedMetric))
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()


class MetricEntry(Output):
    """A recorded value of a metric."""

    _id = Identifier()
    metricsSetId = Identifier()
    metricId = Identifier()
    date = Date()
    value = fields.Float()
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()


class MetricHistoryEntry(Output):
    """The value of a metric on a date."""

    date = Date()
    value = fields.Float()
