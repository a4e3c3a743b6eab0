"""Requests and responses of the exercise history."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.pagination import PageQuery
from coaching_service.core.query import QueryBoolean
from coaching_service.core.validation import Choice, Date, Identifier, Output
from coaching_service.training.workouts.schemas import CustomerSet
from coaching_service.training.workouts.training_load import EPLEY, LOAD


class HistoryQuery(PageQuery):
    """A page of the history, and whether it includes sessions that were scheduled and not done."""

    includeIncomplete = QueryBoolean(load_default=False)


class OneRepMaxEstimate(Output):
    """An estimated one-repetition maximum, in the session's `loadUnit`."""

    value = fields.Float()
    formula = Choice(EPLEY, LOAD, metadata={"description": "`epley`: load x (1 + reps / 30); `load`: one repetition."})
    setIndex = fields.Integer(metadata={"description": "The index of the set it is computed from: that of `bestSet`."})


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
        metadata={"description": "Highest estimated 1RM, else highest load, else most reps; no warm-up."},
    )
    estimatedOneRepMax = fields.Nested(
        OneRepMaxEstimate,
        allow_none=True,
        metadata={"description": "The highest of its sets: that of `bestSet`; null above 12 reps."},
    )
