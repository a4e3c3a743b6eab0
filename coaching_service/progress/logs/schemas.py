"""What the logs read."""

from __future__ import annotations

from collections import Counter
from typing import Any

from marshmallow import ValidationError, fields

from coaching_service.core.validation import (
    TEXT_LENGTH,
    Boolean,
    Identifier,
    Input,
    Integer,
    ListOf,
    Number,
    Text,
    Version,
)
from coaching_service.core.variants import ChangeByStoredType
from coaching_service.library.forms.schemas import AnswerValue
from coaching_service.training.workouts.set_schemas import MAX_LOAD, MAX_METERS, MAX_REPS, MAX_SECONDS


def _amount(maximum: float) -> Number:
    return Number(minimum=0, maximum=maximum, allow_none=True, load_default=None)


class NewCustomerSet(Input):
    """A set as the client did it."""

    index = Integer(
        minimum=1,
        maximum=1000,
        metadata={"description": "Which set, from 1 (in a circuit: of its exercise and round); absent: as sent."},
    )
    reps = Integer(minimum=0, maximum=MAX_REPS, allow_none=True, load_default=None)
    load = _amount(MAX_LOAD)  # type: ignore[assignment]  # a field may be called so: marshmallow keeps its own method
    seconds = _amount(MAX_SECONDS)
    meters = _amount(MAX_METERS)
    rpe = Number(minimum=1, maximum=10, allow_none=True, load_default=None)
    rir = _amount(100)
    isCompleted = Boolean(load_default=True)


class NewCircuitCustomerSet(NewCustomerSet):
    """A set of a circuit as the client did it."""

    exerciseId = Identifier(required=True)
    round = Integer(minimum=1, maximum=1000, load_default=1)


class SetsDone(ListOf):
    """Sets as they were done; each index (of an exercise and round) once."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        done = super()._deserialize(value, attr, data, **kwargs)
        so_far: Counter[Any] = Counter()
        numbered = []
        for each in done:
            key = (each.get("exerciseId"), each.get("round"))
            so_far[key] += 1
            numbered.append({"exerciseId": None, "round": None, **each, "index": each.get("index", so_far[key])})
        if len({(each["exerciseId"], each["round"], each["index"]) for each in numbered}) < len(numbered):
            raise ValidationError("must have each index only once")
        return numbered


class TaskItemLog(Input):
    """What was done: of a task or a reminder no more than that."""

    isCompleted = Boolean(load_default=True, metadata={"description": "false takes back what was logged."})
    comment = Text(max_length=TEXT_LENGTH, allow_blank=True, allow_none=True, load_default=None)
    version = Version()


class ReminderItemLog(TaskItemLog):
    """What was done about a reminder."""


class ExerciseItemLog(TaskItemLog):
    """What was done of an exercise."""

    customerSets = SetsDone(fields.Nested(NewCustomerSet), maximum=200, allow_none=True, load_default=list)


class CircuitItemLog(TaskItemLog):
    """What was done of a circuit."""

    customerSets = SetsDone(fields.Nested(NewCircuitCustomerSet), maximum=2_000, allow_none=True, load_default=list)


class NewFormAnswer(Input):
    """An answer; null is none."""

    questionId = Identifier(required=True)
    value = AnswerValue(required=True)


class FormItemLog(TaskItemLog):
    """What was answered."""

    answers = ListOf(fields.Nested(NewFormAnswer), allow_none=True, load_default=list)


class NewMetricValue(Input):
    """A metric's value."""

    metricId = Identifier(required=True)
    value = Number(minimum=-1e12, required=True)


class ValuesSent(ListOf):
    """Values of metrics; each metric once."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        sent = super()._deserialize(value, attr, data, **kwargs)
        if len({each["metricId"] for each in sent}) < len(sent):
            raise ValidationError("must name each metric only once")
        return sent


class MetricsItemLog(TaskItemLog):
    """What was measured."""

    values = ValuesSent(fields.Nested(NewMetricValue), allow_none=True, load_default=list)


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


class WorkoutBlockLog(Input):
    """What was noted of a session."""

    durationMinutes = Number(minimum=0, maximum=1_440, allow_none=True, load_default=None)
    sessionRpe = Number(minimum=0, maximum=10, allow_none=True, load_default=None)
    comment = Text(max_length=TEXT_LENGTH, allow_blank=True, allow_none=True, load_default=None)
    version = Version()
