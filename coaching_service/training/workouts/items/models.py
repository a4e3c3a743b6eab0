"""Items of workout blocks as they are sent, stored and read; see also input_models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict

from marshmallow import Schema, ValidationError, fields, validates_schema

from coaching_service.core import fields as core_fields
from coaching_service.core import validation
from coaching_service.core.fields import ChangeByStoredType, Description, Label, Variant, input_of, output_of
from coaching_service.core.ids import NameOrId, ObjectId
from coaching_service.core.validation import Text
from coaching_service.library.exercises.models import ExerciseName
from coaching_service.library.forms import AnswerValue, Question, QuestionInput, questions_field
from coaching_service.library.metric_sets import Metric
from coaching_service.training.workouts import sets as workout_sets
from coaching_service.training.workouts.sets import CustomerSet, PlannedSet, PlannedSets

# --- Fields of requests for items -------------------------------------------------------------------------------------
# What requests for items have that no type says: times of reminders, and forms of the library or made for an item.


_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d", re.ASCII)
_DATE_TIME = re.compile(r"[0-9W-]+[Tt ][0-9.,]+:[0-9:.,]+(Z|[+-][0-9:.]+)?", re.ASCII)


class ScheduledTime(Text):
    """A time of day `HH:MM` or a date-time in ISO 8601, in the client's time zone unless it names an offset."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=40, metadata={"example": "08:30"} | options.pop("metadata", {}), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> str:
        text = super()._deserialize(value, attr, data)
        if _TIME.fullmatch(text):
            return text
        with suppress(ValueError):
            datetime.fromisoformat(text)
            if _DATE_TIME.fullmatch(text):  # Python takes any character between date and time
                return text
        raise ValidationError("must be a time HH:MM, or a date-time in ISO 8601")


class NewWorkoutForm(validation.Input):
    """A form of the library, or one made for this item."""

    formId = validation.Identifier(allow_none=True)
    name = Text()
    questions = questions_field()

    @validates_schema
    def has_form_or_questions(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require name and questions unless there is a `formId`."""
        if data.get("formId") is not None:
            return
        for name in ("name", "questions"):
            if name not in data:
                raise ValidationError("is required (or a formId)", name)


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
_Note: TypeAlias = Annotated[str | None, Text(max_length=validation.TEXT_LENGTH, allow_blank=True)]
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
        fields.List(workout_sets.PLANNED_SET_RESPONSE),
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
    value: Annotated[float, validation.Number(minimum=-1e12)]


class PlannedReminder(TypedDict):
    """A reminder and its time."""

    scheduledTime: Annotated[
        str, ScheduledTime(), Description(response="As it was sent: `HH:MM` or an ISO date-time."), Label("Time")
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
        list[FormAnswer] | None, Description("The answers, by question; null without the permission `forms.view`.")
    ]


class LoggedValues(TypedDict):
    """What is logged of metric sets: None as read by a coach who may not see any."""

    values: Annotated[
        list[MetricValue] | None, Description("The recorded values; null without the permission `metrics.view`.")
    ]


class ItemBase(ItemReport):
    """The fields of every item.

    Stored items have `exerciseIds`, `doneExerciseIds`, `tally` and `isPendingForm`, derived from plan and log,
    and once they are logged `clientTexts`, the names of the texts that the client wrote, and what the loads of their
    exercises mean, with the body weight (in the company's unit) to which loads were added; items as they are read have
    `order` (from 0), `version` (the block's) and `mediaCount` instead.
    """

    _id: ObjectId
    completedAt: datetime | None
    createdAt: datetime
    updatedAt: datetime
    exerciseIds: NotRequired[Annotated[list[ObjectId], core_fields.Private]]
    doneExerciseIds: NotRequired[Annotated[list[ObjectId], core_fields.Private]]
    assistedExerciseIds: NotRequired[Annotated[list[ObjectId], core_fields.Private]]
    addedExerciseIds: NotRequired[Annotated[list[ObjectId], core_fields.Private]]
    bodyWeight: NotRequired[Annotated[float | None, core_fields.Private]]
    tally: NotRequired[Annotated[workout_sets.ItemTally, core_fields.Private]]
    isPendingForm: NotRequired[Annotated[bool, core_fields.Private]]
    clientTexts: NotRequired[Annotated[list[NameOrId], core_fields.Private]]
    order: NotRequired[Annotated[int, Description("Position in the block, from 0.")]]
    version: NotRequired[Annotated[int, Description("The block's version.")]]
    mediaCount: NotRequired[Annotated[int, Description("How many videos and pictures it has.")]]


class PlannedExercise(TypedDict):
    """An exercise with its sets."""

    exerciseId: Annotated[ObjectId, Label("Exercise")]
    exerciseSets: Annotated[
        list[PlannedSet], PlannedSets(), fields.List(workout_sets.PLANNED_SET_RESPONSE), Label("Planned sets")
    ]
    exerciseInstructions: Annotated[_Note, Label("Instructions")]
    supersetId: Annotated[
        str | None, Text(), Description(request="Items of a block that share it alternate."), Label("Superset")
    ]


class PlannedCircuit(TypedDict):
    """Exercises that are done one after another, for a number of rounds."""

    circuitName: Annotated[str, Text(), Label("Name")]
    circuitExercises: Annotated[
        list[CircuitExercise],
        validation.ListOf(fields.Nested(NewCircuitExercise), minimum=1, maximum=50),
        fields.List(fields.Nested(output_of(CircuitExercise, first=("exerciseId", "exercise")))),
        Label("Exercises"),
    ]
    rounds: Annotated[int, validation.Integer(minimum=1, maximum=1000), core_fields.Default(1)]


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

    date: Annotated[str, validation.Date()]
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
            core_fields.Optional,
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


# --- Items as they are sent: new ones, changes, logs and moves --------------------------------------------------------


class ItemFormInput(TypedDict, total=False):
    """A form of the library (`formId`), or one made for this item (`name` and `questions`)."""

    formId: ObjectId | None
    name: str
    questions: list[QuestionInput]


class ItemChange(TypedDict, total=False):
    """The fields of an item as a coach sends them, and the version of the block that the change is based on."""

    exerciseId: ObjectId
    exerciseSets: list[PlannedSet]
    exerciseInstructions: str | None
    supersetId: str | None
    circuitName: str
    circuitExercises: list[CircuitExercise]
    rounds: int
    taskFields: TaskFields
    form: ItemFormInput | ItemForm
    metricsFields: MetricsFields
    reminderFields: ReminderFields
    version: int | None


class ItemInput(ItemChange):
    """A new item as a coach sends it; its `type` decides which fields it has."""

    type: ItemType


class ItemLog(ItemReport):
    """What a client did of an item; `version` is the version of the block it is based on."""

    customerSets: NotRequired[list[CustomerSet]]
    answers: NotRequired[list[FormAnswer]]
    values: NotRequired[list[MetricValue]]
    clientTexts: NotRequired[list[NameOrId]]
    version: NotRequired[int | None]


class ItemMoveSource(TypedDict):
    """Where an item is."""

    wblockId: ObjectId
    witemId: ObjectId


class ItemMoveTarget(TypedDict):
    """Where an item is moved to: `index` from 0; past the end is the end."""

    wblockId: ObjectId
    index: Annotated[int, validation.Integer(minimum=0)]


# --- Workout items in requests, by type -------------------------------------------------------------------------------


def _new_item(item_type: str, group: Any) -> type[Schema]:
    """Return the schema of a new item: what is planned and its type."""
    name = f"New{item_type.capitalize()}Item"
    built: type[Schema] = type(name, (input_of(group),), {"type": validation.Choice(item_type, required=True)})
    return built


_NEW_ITEMS: dict[str, type[Schema]] = {item_type: _new_item(item_type, group) for item_type, group in PLANNED.items()}
NEW_ITEM = Variant(_NEW_ITEMS)
NEW_WORKOUT_ITEM = Variant({item_type: _NEW_ITEMS[item_type] for item_type in WORKOUT_TYPES})
ITEM_CHANGE = ChangeByStoredType(
    {
        item_type: validation.patch_of(input_of(group), name=f"{item_type.capitalize()}ItemChange")
        for item_type, group in PLANNED.items()
    }
)


_ITEM = output_of(ItemBase, first=("_id", "order", "isCompleted", "completedAt"))
# In responses: the first fields of items of each type are in the order of earlier API documents.
_EXERCISE = ("type", "exerciseId", "exercise", "exerciseSets", "exerciseInstructions", "customerSets")
_CIRCUIT = ("type", "circuitName", "circuitExercises", "rounds")
ITEM_RESPONSE = Variant(
    {
        "EXERCISE": output_of(ExerciseItem, _ITEM, first=_EXERCISE),
        "CIRCUIT": output_of(CircuitItem, _ITEM, first=_CIRCUIT),
        "TASK": output_of(TaskItem, _ITEM, first=("type",)),
        "FORM": output_of(FormItem, _ITEM, first=("type",)),
        "METRICS": output_of(MetricsItem, _ITEM, first=("type",)),
        "REMINDER": output_of(ReminderItem, _ITEM, first=("type",)),
    }
)
