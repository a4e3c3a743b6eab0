"""Items of workout blocks as they are sent, stored and read; see also input_models."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from marshmallow import fields

from coaching_service.core.field_schemas import input_of, output_of
from coaching_service.core.fields import Default, Description, Label, Optional, Private
from coaching_service.core.ids import NameOrId, ObjectId
from coaching_service.core.validation import TEXT_LENGTH, Date, Integer, ListOf, Number, Text
from coaching_service.library.exercises.models import ExerciseName
from coaching_service.library.forms.models import AnswerValue, Question
from coaching_service.library.metric_sets.models import Metric
from coaching_service.training.workouts.items.inputs import NewWorkoutForm, ScheduledTime
from coaching_service.training.workouts.sets.models import CustomerSet, PlannedSet
from coaching_service.training.workouts.sets.schemas import PLANNED_SET_RESPONSE, PlannedSets
from coaching_service.training.workouts.sets.totals_models import ItemTally

REASON_LENGTH = 500
ItemType = Literal["EXERCISE", "CIRCUIT", "TASK", "FORM", "METRICS", "REMINDER"]
# The types that make a block a workout, and its day a workout day.
WORKOUT_TYPES: tuple[ItemType, ...] = ("EXERCISE", "CIRCUIT", "TASK")


CUSTOMER_SET = output_of(CustomerSet, description="A set as the client did it.", first=("index", "exerciseId", "round"))
_Exercise: TypeAlias = Annotated[
    ExerciseName,
    fields.Nested(
        output_of(ExerciseName, name="ExerciseSummary", description="The name and instructions of an exercise.")
    ),
]
_Note: TypeAlias = Annotated[str | None, Text(max_length=TEXT_LENGTH, allow_blank=True)]
_Reason: TypeAlias = Annotated[
    str | None,
    Text(max_length=REASON_LENGTH, allow_blank=True),
    Description(
        request="The reason, in the client's words. Default: none.", response="The reason; null if none was given."
    ),
]


class PlannedCircuitExercise(TypedDict):
    """What a coach plans of an exercise of a circuit; `sets` are done in each round."""

    exerciseId: ObjectId
    sets: Annotated[
        list[PlannedSet],
        PlannedSets(),
        fields.List(PLANNED_SET_RESPONSE),
        Description(response="The sets of one round."),
    ]
    instructions: _Note


NewCircuitExercise = input_of(
    PlannedCircuitExercise, name="NewCircuitExercise", description="An exercise of a circuit."
)


class CircuitExercise(PlannedCircuitExercise):
    """An exercise of a circuit."""

    exercise: NotRequired[_Exercise]  # added on read, and so is the next one
    plannedSetsTotal: NotRequired[Annotated[int, Description("The number of sets in all rounds.")]]


class TaskFields(TypedDict):
    """A task."""

    title: Annotated[str, Text()]
    description: _Note


NewTaskFields = input_of(TaskFields, name="NewTaskFields")


class ItemForm(TypedDict):
    """The form as it was scheduled; `formId` is null if it was made for this item."""

    formId: ObjectId | None
    name: str
    questions: list[Question]


class FormAnswer(TypedDict):
    """An answer to a question."""

    questionId: ObjectId
    value: Annotated[str | float | list[str] | None, AnswerValue(required=True)]


class PlannedMetrics(TypedDict):
    """The metric set to record."""

    metricsSetId: ObjectId


NewMetricsFields = input_of(PlannedMetrics, name="NewMetricsFields")


class MetricsFields(PlannedMetrics):
    """The metric set to record."""

    name: NotRequired[str]
    metrics: NotRequired[list[Metric]]


class MetricValue(TypedDict):
    """A logged value of a metric."""

    metricId: ObjectId
    value: Annotated[float, Number(minimum=-1e12)]


class PlannedReminder(TypedDict):
    """A reminder and its time."""

    scheduledTime: Annotated[
        str,
        ScheduledTime(),
        Description(response="As it was sent: `HH:MM` or an ISO date-time."),
        Label("Time"),
    ]
    message: Annotated[str, Text(max_length=2_000)]


NewReminderFields = input_of(PlannedReminder, name="NewReminderFields")


class ReminderFields(PlannedReminder):
    """A reminder and its time."""

    time: NotRequired[  # added on read
        Annotated[
            str,
            Description(
                "When the client is reminded: the time of day of `scheduledTime`, `HH:MM`. With an offset from UTC it "
                "is converted to the client's time zone; in a program or template it is as it was written."
            ),
        ]
    ]


class Skip(TypedDict):
    """Why a client skipped an item."""

    reason: _Reason


class SentSwap(TypedDict):
    """The exercise that the client did in place of the planned one."""

    exerciseId: ObjectId
    reason: _Reason


class Swap(SentSwap):
    """The exercise that a client did in place of the planned one."""

    exercise: NotRequired[_Exercise]  # added on read


class ItemReport(TypedDict):
    """What is logged of an item, of whatever type; the texts and choices are absent in older items."""

    isCompleted: bool
    comment: str | None
    pain: NotRequired[str | None]
    skipped: NotRequired[
        Annotated[
            Skip | None,
            fields.Nested(output_of(Skip, name="SkippedItem")),
            Description("Set if the client skipped the item; it is not completed then."),
        ]
    ]
    swappedFor: NotRequired[
        Annotated[
            Swap | None,
            fields.Nested(output_of(Swap, name="SwappedExercise", first=("exerciseId", "exercise"))),
            Description("Set if the client did another exercise; the logged sets have its `exerciseId`."),
        ]
    ]


class LoggedSets(TypedDict):
    """What is logged of exercises and circuits."""

    customerSets: Annotated[list[CustomerSet], fields.List(fields.Nested(CUSTOMER_SET))]


class LoggedAnswers(TypedDict):
    """What is logged of forms: None as read by a coach who may not see any."""

    answers: Annotated[
        list[FormAnswer] | None,
        Description("The answers, by question; null without the permission `forms.view`."),
    ]


class LoggedValues(TypedDict):
    """What is logged of metric sets: None as read by a coach who may not see any."""

    values: Annotated[
        list[MetricValue] | None,
        Description("The recorded values; null without the permission `metrics.view`."),
    ]


class ItemBase(ItemReport):
    """The fields of every item.

    Stored items have `exerciseIds`, `doneExerciseIds`, `tally` and `isPendingForm`, derived from plan and log,
    and once they are logged `clientTexts`, the names of the texts that the client wrote, and what the loads of their
    exercises mean, with the body weight (in the company's unit) to which loads were added; items as they are read have
    `order` (from 0) and `version` (the block's) instead.
    """

    _id: ObjectId
    completedAt: datetime | None
    createdAt: datetime
    updatedAt: datetime
    exerciseIds: NotRequired[Annotated[list[ObjectId], Private]]
    doneExerciseIds: NotRequired[Annotated[list[ObjectId], Private]]
    assistedExerciseIds: NotRequired[Annotated[list[ObjectId], Private]]
    addedExerciseIds: NotRequired[Annotated[list[ObjectId], Private]]
    bodyWeight: NotRequired[Annotated[float | None, Private]]
    tally: NotRequired[Annotated[ItemTally, Private]]
    isPendingForm: NotRequired[Annotated[bool, Private]]
    clientTexts: NotRequired[Annotated[list[NameOrId], Private]]
    order: NotRequired[Annotated[int, Description("Position in the block, from 0.")]]
    version: NotRequired[Annotated[int, Description("The block's version.")]]


class PlannedExercise(TypedDict):
    """An exercise with its sets."""

    exerciseId: Annotated[ObjectId, Label("Exercise")]
    exerciseSets: Annotated[list[PlannedSet], PlannedSets(), fields.List(PLANNED_SET_RESPONSE), Label("Planned sets")]
    exerciseInstructions: Annotated[_Note, Label("Instructions")]
    supersetId: Annotated[
        str | None, Text(), Description(request="Items of a block that share it alternate."), Label("Superset")
    ]


class PlannedCircuit(TypedDict):
    """Exercises that are done one after another, for a number of rounds."""

    circuitName: Annotated[str, Text(), Label("Name")]
    circuitExercises: Annotated[
        list[CircuitExercise],
        ListOf(fields.Nested(NewCircuitExercise), minimum=1, maximum=50),
        fields.List(fields.Nested(output_of(CircuitExercise, first=("exerciseId", "exercise")))),
        Label("Exercises"),
    ]
    rounds: Annotated[int, Integer(minimum=1, maximum=1000), Default(1)]


class PlannedTask(TypedDict):
    """A task that is not an exercise."""

    taskFields: Annotated[TaskFields, fields.Nested(NewTaskFields)]


class PlannedForm(TypedDict):
    """A form to fill in."""

    form: Annotated[ItemForm, fields.Nested(NewWorkoutForm), fields.Nested(output_of(ItemForm, name="WorkoutForm"))]


class ScheduledMetrics(TypedDict):
    """A metric set to record."""

    metricsFields: Annotated[MetricsFields, fields.Nested(NewMetricsFields)]


class ScheduledReminder(TypedDict):
    """A reminder."""

    reminderFields: Annotated[
        ReminderFields,
        fields.Nested(NewReminderFields),
        fields.Nested(output_of(ReminderFields, first=("scheduledTime", "time"))),
    ]


class LastTime(TypedDict):
    """The latest session of an exercise before the date of the block."""

    date: Annotated[str, Date()]
    wblockId: ObjectId
    sets: Annotated[
        list[CustomerSet],
        fields.List(fields.Nested(CUSTOMER_SET)),
        Description("The logged sets of the exercise, as in its history."),
    ]


class ExerciseItem(ItemBase, PlannedExercise, LoggedSets):
    """An exercise with its sets."""

    type: Literal["EXERCISE"]
    exercise: NotRequired[_Exercise]  # added on read
    lastTime: NotRequired[
        Annotated[
            LastTime | None,
            Description(
                "The latest session of the exercise before the date of the block; null without one. Only with "
                "`include=lastTime`."
            ),
            Optional,
        ]
    ]


class CircuitItem(ItemBase, PlannedCircuit, LoggedSets):
    """Exercises that are done one after another, for a number of rounds."""

    type: Literal["CIRCUIT"]


class TaskItem(ItemBase, PlannedTask):
    """A task that is not an exercise."""

    type: Literal["TASK"]


class FormItem(ItemBase, PlannedForm, LoggedAnswers):
    """A form to fill in."""

    type: Literal["FORM"]


class MetricsItem(ItemBase, ScheduledMetrics, LoggedValues):
    """A metric set to record."""

    type: Literal["METRICS"]


class ReminderItem(ItemBase, ScheduledReminder):
    """A reminder."""

    type: Literal["REMINDER"]


WorkItem: TypeAlias = ExerciseItem | CircuitItem | TaskItem | FormItem | MetricsItem | ReminderItem


# What a coach plans of items of each type, and what is logged: every copy of an item has the former.
PLANNED: Mapping[ItemType, type] = {
    "EXERCISE": PlannedExercise,
    "CIRCUIT": PlannedCircuit,
    "TASK": PlannedTask,
    "FORM": PlannedForm,
    "METRICS": ScheduledMetrics,
    "REMINDER": ScheduledReminder,
}
LOGGED: Mapping[ItemType, type] = {
    "EXERCISE": LoggedSets,
    "CIRCUIT": LoggedSets,
    "FORM": LoggedAnswers,
    "METRICS": LoggedValues,
}


class DatedItem(TypedDict):
    """An item with the date of its block (`YYYY-MM-DD`)."""

    date: str
    item: WorkItem
