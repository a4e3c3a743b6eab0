"""Requests and responses of the exercise history."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.pagination import PageQuery
from coaching_service.core.query import DateRange, QueryBoolean
from coaching_service.core.validation import Choice, Date, Identifier, Output
from coaching_service.people.activity.record_types import RECORD_TYPES
from coaching_service.progress.exercise_history.models import SESSION, WEEK
from coaching_service.training.workouts.blocks.schemas import CustomerSet
from coaching_service.training.workouts.sets.records import FORMULAS, RECORD_UNITS

_BEST_SET = (
    "Highest estimated 1RM, else highest load (lowest assistance), else most reps, else farthest distance and its "
    "shortest time, else longest time."
)


class HistoryQuery(PageQuery):
    """A page of the history, and whether it includes sessions that were scheduled and not done."""

    includeIncomplete = QueryBoolean(load_default=False)


class OneRepMaxEstimate(Output):
    """An estimated one-repetition maximum, in the company's unit of load."""

    value = fields.Float()
    formula = Choice(
        *FORMULAS,
        metadata={
            "description": "`epley`: load x (1 + reps / 30); `epley_rir`, `epley_rpe`: with the repetitions in reserve "
            "(RIR, or 10 - RPE) added to the reps; `load`: one repetition."
        },
    )
    setIndex = fields.Integer(metadata={"description": "The index of the set it is computed from: `bestSet`."})


class ProgressQuery(DateRange):
    """The date range (less than 3,700 days), and how its sessions are grouped."""

    groupBy = Choice(
        SESSION,
        WEEK,
        load_default=SESSION,
        metadata={"description": "`session`: each session; `week`: the weeks with a session. Default: `session`."},
    )


class ProgressBest(Output):
    """The best value of a type of record in a session or a week."""

    type = Choice(*RECORD_TYPES)
    value = fields.Float(metadata={"description": "In `unit`."})
    unit = Choice(*RECORD_UNITS)
    reps = fields.Integer(allow_none=True)
    meters = fields.Float(allow_none=True, metadata={"description": "The distance of `fastest`; null otherwise."})


class ProgressPoint(Output):
    """What was done for an exercise in a session or a week, without warm-up sets."""

    date = Date(metadata={"description": "The date of the session, or the Monday of the week."})
    bestSet = fields.Nested(
        CustomerSet,
        allow_none=True,
        metadata={"description": _BEST_SET},
    )
    estimatedOneRepMax = fields.Nested(
        OneRepMaxEstimate, allow_none=True, metadata={"description": "The estimate of `bestSet`; null above 12 reps."}
    )
    bests = fields.List(
        fields.Nested(ProgressBest), metadata={"description": "The best value of each type of record that it has."}
    )
    volumeLoad = fields.Float(metadata={"description": "Sum of reps x load, in the company's unit."})
    sets = fields.Integer(metadata={"description": "Completed sets; a drop set counts as a set."})
    reps = fields.Integer()


class ExerciseReference(Output):
    """An exercise."""

    _id = Identifier()
    name = fields.String()


class DoneExercise(Output):
    """An exercise that a client has done."""

    exercise = fields.Nested(ExerciseReference)
    lastDate = Date(metadata={"description": "The date of the latest session."})
    sessions = fields.Integer(
        metadata={"description": "Sessions with a completed set of the exercise that is not warm-up."}
    )


class ExerciseSession(Output):
    """A session of one exercise."""

    date = Date()
    wblockId = Identifier()
    isCompleted = fields.Boolean()
    sets = fields.List(fields.Nested(CustomerSet))
    volumeLoad = fields.Float(
        metadata={"description": "Sum of reps x load over completed sets that are not warm-up, in `loadUnit`."}
    )
    loadUnit = Choice("kg", "lb")
    bestSet = fields.Nested(
        CustomerSet,
        allow_none=True,
        metadata={"description": f"{_BEST_SET} Without warm-up sets."},
    )
    estimatedOneRepMax = fields.Nested(
        OneRepMaxEstimate,
        allow_none=True,
        metadata={"description": "The highest of its sets: the estimate of `bestSet`; null above 12 reps."},
    )
