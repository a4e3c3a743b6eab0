"""Requests of the log operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired, TypedDict, cast

from marshmallow import ValidationError, fields, missing, post_load, validates_schema

from coaching_service.core import validation
from coaching_service.core.external_identity import ExternalId
from coaching_service.core.fields import ChangeByStoredType, Default, DeferredChange, Description, input_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.independent_entries import IndependentEntries, InvalidEntry
from coaching_service.training.workouts.blocks.models import SessionFields
from coaching_service.training.workouts.items.models import FormAnswer, MetricValue, SentSwap, Skip
from coaching_service.training.workouts.sets import MAX_CIRCUIT_SETS, MAX_EXERCISE_SETS, CustomerSet, PerformedSet


class _SentNumber(TypedDict):
    index: NotRequired[
        Annotated[
            int,
            validation.Integer(minimum=1, maximum=1000),
            Description("Number of the set from 1, in a circuit within exercise and round; default: its position."),
        ]
    ]


class NewCircuitCustomerSet(_SentNumber, PerformedSet):
    """A set of a circuit that the client did."""

    exerciseId: ObjectId
    round: Annotated[int, validation.Integer(minimum=1, maximum=1000), Default(1)]


class NewExerciseCustomerSet(_SentNumber, PerformedSet):
    """A set of an exercise that the client did."""

    exerciseId: NotRequired[
        Annotated[
            ObjectId | None,
            Description("The exercise of the set. Default: the one in `swappedFor`, else the planned one."),
        ]
    ]


SET_LOG = input_of(CustomerSet, name="SetLog", description="One set that the client did.")


class CustomerSets(validation.ListOf):
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


PAIN_LENGTH = 5_000
NewSkip = input_of(Skip, name="NewSkip", description="Why the client skipped an item.")
NewSwap = input_of(SentSwap, name="NewSwap")


class TaskItemLog(validation.Input):
    """The log of a task: whether it was completed."""

    isCompleted = validation.Boolean(
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
    comment = validation.Text(max_length=validation.TEXT_LENGTH, allow_blank=True, allow_none=True, load_default=None)
    pain = validation.Text(max_length=PAIN_LENGTH, allow_blank=True, allow_none=True, load_default=None)
    version = validation.Version()

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
        fields.Nested(input_of(NewExerciseCustomerSet)), maximum=MAX_EXERCISE_SETS, allow_none=True, load_default=list
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
        fields.Nested(input_of(NewCircuitCustomerSet)), maximum=MAX_CIRCUIT_SETS, allow_none=True, load_default=list
    )


_ANSWER = input_of(FormAnswer, name="NewFormAnswer", description="An answer to a question; null means no answer.")
_VALUE = input_of(MetricValue, name="NewMetricValue", description="The value of a metric.")


class FormItemLog(TaskItemLog):
    """The log of a form: its answers."""

    answers = validation.ListOf(fields.Nested(_ANSWER), allow_none=True, load_default=list)


class MetricValues(validation.ListOf):
    """Values of metrics; each metric is unique."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        values = super()._deserialize(value, attr, data, **kwargs)
        if len({entry["metricId"] for entry in values}) < len(values):
            raise ValidationError("must name each metric only once")
        return values


class MetricsItemLog(TaskItemLog):
    """The log of a metric set: its values."""

    values = MetricValues(fields.Nested(_VALUE), allow_none=True, load_default=list)


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

    version: NotRequired[Annotated[int, validation.Version()]]


WorkoutBlockLog = input_of(_SessionLog, name="WorkoutBlockLog")


# --- Logs of many workouts at once ------------------------------------------------------------------------------------


class NewCustomerSet(_SentNumber, PerformedSet):
    """A set that the client did; those of a circuit name exercise and round."""

    exerciseId: NotRequired[Annotated[ObjectId | None, Description("Required in a circuit. Default: the planned one.")]]
    round: NotRequired[Annotated[int, validation.Integer(minimum=1, maximum=1000), Description("Of a circuit.")]]


class LoggedItem(ExerciseItemLog, FormItemLog, MetricsItemLog):
    """The log of an item, which is validated by the type of the item."""

    witemId = validation.Identifier(required=True)
    customerSets = CustomerSets(fields.Nested(input_of(NewCustomerSet)), maximum=MAX_CIRCUIT_SETS, allow_none=True)


class SentItemLog(TypedDict):
    """The log of an item as it is sent, not validated yet."""

    witemId: ObjectId
    log: DeferredChange


class LoggedItems(validation.ListOf):
    """Logs of items, each with the item that has to validate it."""

    def __init__(self) -> None:
        super().__init__(fields.Nested(LoggedItem), minimum=1)

    def _load_entries(self, value: list[Any], **_: Any) -> list[SentItemLog]:
        errors: dict[int, Any] = {}
        loaded: list[SentItemLog] = []
        for index, entry in enumerate(value):
            try:
                loaded.append(_load_log(entry))
            except ValidationError as error:
                errors[index] = error.messages
        if errors:
            raise ValidationError(errors)
        return loaded


def _load_log(entry: Any) -> SentItemLog:
    if not isinstance(entry, Mapping):
        raise ValidationError([validation.NOT_AN_OBJECT])
    try:
        item_id = cast("ObjectId", LoggedItem().fields["witemId"].deserialize(entry.get("witemId", missing)))
    except ValidationError as error:
        raise ValidationError({"witemId": error.messages}) from None
    log = ITEM_LOG.load({name: entry[name] for name in entry if name != "witemId"})
    log.is_strict = True
    return {"witemId": item_id, "log": log}


class LogUpsert(TypedDict):
    """The logs of items of a workout, which `wblockId` or `externalId` names."""

    wblockId: NotRequired[ObjectId]
    externalId: NotRequired[Annotated[str, ExternalId()]]
    items: Annotated[list[SentItemLog], LoggedItems(), Description("Each replaces the log of its item; others stay.")]
    version: NotRequired[Annotated[int, validation.Version()]]


class _NamesWorkout(validation.Input):
    @validates_schema
    def names_one_workout(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require exactly one of the two names of a workout."""
        if ("wblockId" in data) is ("externalId" in data):
            raise validation.invalid("must be sent, or externalId: one of both", "INVALID", "wblockId")


class LogUpserts(TypedDict):
    """Logs of workouts."""

    logs: Annotated[
        Sequence[LogUpsert | InvalidEntry],
        IndependentEntries(input_of(LogUpsert, _NamesWorkout), maximum=100),
        Description("1 to 100 workouts, each validated by itself, of at most 1,000 items together."),
    ]
