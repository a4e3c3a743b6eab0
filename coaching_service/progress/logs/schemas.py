"""Requests of the log operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, NotRequired

from marshmallow import ValidationError, fields, post_load, validates_schema

from coaching_service.core.field_schemas import input_of
from coaching_service.core.query import QueryTime
from coaching_service.core.schemas_by_type import ChangeByStoredType
from coaching_service.core.validation import (
    TEXT_LENGTH,
    Boolean,
    Choice,
    Identifier,
    Input,
    Integer,
    ListOf,
    Number,
    Text,
    Version,
)
from coaching_service.library.forms.models import AnswerValue
from coaching_service.progress.logs._client_sets import MAX_CIRCUIT_SETS, MAX_EXERCISE_SETS
from coaching_service.training.workouts.blocks.session_fields import SessionFields
from coaching_service.training.workouts.sets.models import MAX_LOAD, MAX_METERS, MAX_REPS, MAX_SECONDS, SET_KINDS


def _amount(maximum: float) -> Number:
    return Number(minimum=0, maximum=maximum, allow_none=True, load_default=None)


class NewCustomerSet(Input):
    """A set that the client did."""

    index = Integer(
        minimum=1,
        maximum=1000,
        metadata={
            "description": "Number of the set from 1, in a circuit within exercise and round; default: its position."
        },
    )
    reps = Integer(minimum=0, maximum=MAX_REPS, allow_none=True, load_default=None)
    load = _amount(MAX_LOAD)  # type: ignore[assignment]  # marshmallow keeps its method of this name
    seconds = _amount(MAX_SECONDS)
    meters = _amount(MAX_METERS)
    rpe = Number(minimum=1, maximum=10, allow_none=True, load_default=None)
    rir = _amount(100)
    isWarmup = Boolean(
        metadata={"description": "A warm-up set: it counts in no figure. Default: as the set was logged, else false."}
    )
    setKind = Choice(
        *SET_KINDS,
        metadata={
            "description": "`drop`: with less load, directly after the set before; `failure`: until no further "
            "repetition was possible. Default: as the set was logged, else `normal`."
        },
    )
    isCompleted = Boolean(load_default=True)


class NewCircuitCustomerSet(NewCustomerSet):
    """A set of a circuit that the client did."""

    exerciseId = Identifier(required=True)
    round = Integer(minimum=1, maximum=1000, load_default=1)


class LoggedTime(QueryTime):
    """A time in a body: ISO 8601, UTC unless it names an offset."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> datetime:  # type: ignore[override]  # text on the wire
        if not isinstance(value, str):
            raise self.make_error("invalid")
        return super()._deserialize(value, attr, data)


class SetLog(NewCustomerSet):
    """One set that the client did."""

    index = Integer(
        minimum=1,
        maximum=1000,
        required=True,
        metadata={"description": "Number of the set from 1, in a circuit within exercise and round."},
    )
    exerciseId = Identifier(
        allow_none=True,
        load_default=None,
        metadata={
            "description": "The exercise of the set, required in a circuit. Default: the one in `swappedFor`, else the "
            "planned one."
        },
    )
    round = Integer(
        minimum=1,
        maximum=1000,
        allow_none=True,
        load_default=None,
        metadata={"description": "In a circuit: the round, from 1. Default: 1."},
    )
    loggedAt = LoggedTime(
        metadata={
            "description": "When the client did the set. The later one of the same set wins. A time "
            "in the future counts as now. Default: now."
        }
    )


class NewExerciseCustomerSet(NewCustomerSet):
    """A set of an exercise that the client did."""

    exerciseId = Identifier(
        allow_none=True,
        metadata={"description": "The exercise of the set. Default: the one in `swappedFor`, else the planned one."},
    )


class CustomerSets(ListOf):
    """Logged sets; each index is unique within an exercise and round."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        sets = super()._deserialize(value, attr, data, **kwargs)
        counts: Counter[Any] = Counter()
        numbered = []
        for logged in sets:
            key = (logged.get("exerciseId"), logged.get("round"))
            counts[key] += 1
            numbered.append({"exerciseId": None, "round": None, **logged, "index": logged.get("index", counts[key])})
        if len({(logged["exerciseId"], logged["round"], logged["index"]) for logged in numbered}) < len(numbered):
            raise ValidationError("must have each index only once")
        return numbered


PAIN_LENGTH, REASON_LENGTH = 5_000, 500
_REASON = {"description": "The reason, in the client's words. Default: none."}


class NewSkip(Input):
    """Why the client skipped an item."""

    reason = Text(max_length=REASON_LENGTH, allow_blank=True, allow_none=True, load_default=None, metadata=_REASON)


class NewSwap(Input):
    """The exercise that the client did in place of the planned one."""

    exerciseId = Identifier(required=True)
    reason = Text(max_length=REASON_LENGTH, allow_blank=True, allow_none=True, load_default=None, metadata=_REASON)


class TaskItemLog(Input):
    """The log of a task: whether it was completed."""

    isCompleted = Boolean(
        metadata={"description": "false marks the item as not completed. Default: true, and false with `skipped`."}
    )
    skipped = fields.Nested(
        NewSkip,
        allow_none=True,
        metadata={
            "description": "The client skipped the item. Default: null in a client's log; in a coach's log the stored "
            "value, unless the item is completed."
        },
    )
    comment = Text(max_length=TEXT_LENGTH, allow_blank=True, allow_none=True, load_default=None)
    pain = Text(max_length=PAIN_LENGTH, allow_blank=True, allow_none=True, load_default=None)
    version = Version()

    @validates_schema
    def skipped_is_not_completed(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require a skipped item not to be completed."""
        if data.get("skipped") is not None and data.get("isCompleted"):
            raise ValidationError("must not be true for an item that was skipped", "isCompleted")

    @post_load
    def with_completion(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Add whether the item is completed: unless stated otherwise, if it was not skipped."""
        return {"isCompleted": data.get("skipped") is None, **data}


class ReminderItemLog(TaskItemLog):
    """The log of a reminder: whether it was completed."""


class ExerciseItemLog(TaskItemLog):
    """The log of an exercise."""

    customerSets = CustomerSets(
        fields.Nested(NewExerciseCustomerSet), maximum=MAX_EXERCISE_SETS, allow_none=True, load_default=list
    )
    swappedFor = fields.Nested(
        NewSwap,
        allow_none=True,
        metadata={
            "description": "The client did another exercise, to which the sets belong. Default: null in a client's "
            "log, the stored value in a coach's."
        },
    )


class CircuitItemLog(TaskItemLog):
    """The log of a circuit."""

    customerSets = CustomerSets(
        fields.Nested(NewCircuitCustomerSet), maximum=MAX_CIRCUIT_SETS, allow_none=True, load_default=list
    )


class NewFormAnswer(Input):
    """An answer to a question; null means no answer."""

    questionId = Identifier(required=True)
    value = AnswerValue(required=True)


class FormItemLog(TaskItemLog):
    """The log of a form: its answers."""

    answers = ListOf(fields.Nested(NewFormAnswer), allow_none=True, load_default=list)


class NewMetricValue(Input):
    """The value of a metric."""

    metricId = Identifier(required=True)
    value = Number(minimum=-1e12, required=True)


class MetricValues(ListOf):
    """Values of metrics; each metric is unique."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        values = super()._deserialize(value, attr, data, **kwargs)
        if len({entry["metricId"] for entry in values}) < len(values):
            raise ValidationError("must name each metric only once")
        return values


class MetricsItemLog(TaskItemLog):
    """The log of a metric set: its values."""

    values = MetricValues(fields.Nested(NewMetricValue), allow_none=True, load_default=list)


ITEM_LOG = ChangeByStoredType(
    {
        "EXERCISE": ExerciseItemLog(),
        "CIRCUIT": CircuitItemLog(),
        "TASK": TaskItemLog(),
        "FORM": FormItemLog(),
        "METRICS": MetricsItemLog(),
        "REMINDER": ReminderItemLog(),
    }
)


class _SessionLog(SessionFields):
    """The log of a session."""

    version: NotRequired[Annotated[int, Version()]]


WorkoutBlockLog = input_of(_SessionLog, name="WorkoutBlockLog")
