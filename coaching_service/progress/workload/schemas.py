"""Requests and responses of the workload."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.query import DateRange
from coaching_service.core.validation import Choice, Date, Output


class WorkloadQuery(DateRange):
    """The date range, and how its days are grouped."""

    groupBy = Choice("day", "week", "month", load_default="day")


class WorkloadPeriod(Output):
    """What was done in a day, a week (from Monday) or a month."""

    date = Date(metadata={"description": "The period's first day."})
    sessions = fields.Integer(metadata={"description": "Blocks with at least one completed set or item, or a rating."})
    sets = fields.Integer(metadata={"description": "Completed sets that are not warm-up."})
    reps = fields.Integer()
    volumeLoad = fields.Float(metadata={"description": "Sum of reps x load, in `loadUnit`."})
    sessionLoad = fields.Float(
        allow_none=True,
        metadata={"description": "Sum of sessionRpe x durationMinutes; null when no session was rated."},
    )
    acuteChronicRatio = fields.Float(
        allow_none=True,
        metadata={
            "description": "On the period's last day: mean daily load of 7 days over the mean of 28; null in the first "
            "28 days and when the mean of 28 is 0."
        },
    )
    ratioOf = Choice(
        "sessionLoad",
        "volumeLoad",
        metadata={"description": "sessionLoad if every session of the 28 days was rated, else volumeLoad."},
    )


class Workload(Output):
    """How much a client trained, period by period."""

    loadUnit = Choice("kg", "lb")
    groupBy = Choice("day", "week", "month")
    periods = fields.List(fields.Nested(WorkloadPeriod))
