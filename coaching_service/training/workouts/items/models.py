"""Items of workout blocks as they are sent, stored and read; see also set_models and totals_models."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NotRequired, TypeAlias, TypedDict

from coaching_service.core.ids import NameOrId, ObjectId
from coaching_service.library.exercises.models import ExerciseName
from coaching_service.library.forms.models import Question, QuestionInput
from coaching_service.library.metric_sets.models import Metric
from coaching_service.training.workouts.sets.models import CustomerSet, PlannedSet
from coaching_service.training.workouts.sets.totals_models import ItemTally

ItemType = Literal["EXERCISE", "CIRCUIT", "TASK", "FORM", "METRICS", "REMINDER"]
# The types that make a block a workout, and its day a workout day.
WORKOUT_TYPES: tuple[ItemType, ...] = ("EXERCISE", "CIRCUIT", "TASK")


class CircuitExercise(TypedDict):
    """An exercise of a circuit; `sets` are done in each round. `exercise` and `plannedSetsTotal` are added on read."""

    exerciseId: ObjectId
    sets: list[PlannedSet]
    instructions: str | None
    exercise: NotRequired[ExerciseName]
    plannedSetsTotal: NotRequired[int]


class TaskFields(TypedDict):
    """A task."""

    title: str
    description: str | None


class ItemForm(TypedDict):
    """A form as it was scheduled; `formId` is null if it was made for this item."""

    formId: ObjectId | None
    name: str
    questions: list[Question]


class FormAnswer(TypedDict):
    """An answer to a question of a form: a text, a number, or a list of options; null without an answer."""

    questionId: ObjectId
    value: str | float | list[str] | None


class MetricsFields(TypedDict):
    """The metric set of an item; its name and metrics are added on read."""

    metricsSetId: ObjectId
    name: NotRequired[str]
    metrics: NotRequired[list[Metric]]


class MetricValue(TypedDict):
    """A logged value of a metric."""

    metricId: ObjectId
    value: float


class ReminderFields(TypedDict):
    """A reminder: `scheduledTime` as it was sent (`HH:MM` or an ISO date-time); `time` (`HH:MM`) is added on read."""

    scheduledTime: str
    message: str
    time: NotRequired[str]


class Skip(TypedDict):
    """Why a client skipped an item; the reason may be missing."""

    reason: str | None


class Swap(TypedDict):
    """The exercise that a client did in place of the planned one; `exercise` is added on read."""

    exerciseId: ObjectId
    reason: str | None
    exercise: NotRequired[ExerciseName]


class ItemBase(TypedDict):
    """The fields of every item.

    Stored items have `exerciseIds`, `doneExerciseIds`, `tally` and `isPendingForm`, derived from plan and log,
    and once they are logged `clientTexts`, the names of the texts that the client wrote; items as they are read have
    `order` (from 0) and `version` (the block's) instead.
    """

    _id: ObjectId
    isCompleted: bool
    completedAt: datetime | None
    comment: str | None
    pain: NotRequired[str | None]
    skipped: NotRequired[Skip | None]
    swappedFor: NotRequired[Swap | None]
    createdAt: datetime
    updatedAt: datetime
    exerciseIds: NotRequired[list[ObjectId]]
    doneExerciseIds: NotRequired[list[ObjectId]]
    assistedExerciseIds: NotRequired[list[ObjectId]]
    tally: NotRequired[ItemTally]
    isPendingForm: NotRequired[bool]
    clientTexts: NotRequired[list[NameOrId]]
    order: NotRequired[int]
    version: NotRequired[int]


class LastTime(TypedDict):
    """The latest session of an exercise before a date: the logged sets of the exercise in the block `wblockId`."""

    date: str
    wblockId: ObjectId
    sets: list[CustomerSet]


class ExerciseItem(ItemBase):
    """An exercise with its planned and logged sets; `exercise` is added on read, `lastTime` if requested."""

    type: Literal["EXERCISE"]
    exerciseId: ObjectId
    exerciseSets: list[PlannedSet]
    exerciseInstructions: str | None
    supersetId: str | None
    customerSets: list[CustomerSet]
    exercise: NotRequired[ExerciseName]
    lastTime: NotRequired[LastTime | None]


class CircuitItem(ItemBase):
    """Exercises that are done one after another, for a number of rounds."""

    type: Literal["CIRCUIT"]
    circuitName: str
    circuitExercises: list[CircuitExercise]
    rounds: int
    customerSets: list[CustomerSet]


class TaskItem(ItemBase):
    """A task that is not an exercise."""

    type: Literal["TASK"]
    taskFields: TaskFields


class FormItem(ItemBase):
    """A form to fill in, with its answers: None as read by a coach who may not see any."""

    type: Literal["FORM"]
    form: ItemForm
    answers: list[FormAnswer] | None


class MetricsItem(ItemBase):
    """A metric set to record, with the recorded values: None as read by a coach who may not see any."""

    type: Literal["METRICS"]
    metricsFields: MetricsFields
    values: list[MetricValue] | None


class ReminderItem(ItemBase):
    """A reminder."""

    type: Literal["REMINDER"]
    reminderFields: ReminderFields


WorkItem: TypeAlias = ExerciseItem | CircuitItem | TaskItem | FormItem | MetricsItem | ReminderItem


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


class ItemLog(TypedDict):
    """What a client did of an item; `version` is the version of the block it is based on."""

    isCompleted: bool
    comment: str | None
    pain: NotRequired[str | None]
    skipped: NotRequired[Skip | None]
    swappedFor: NotRequired[Swap | None]
    customerSets: NotRequired[list[CustomerSet]]
    answers: NotRequired[list[FormAnswer]]
    values: NotRequired[list[MetricValue]]
    clientTexts: NotRequired[list[NameOrId]]
    version: NotRequired[int | None]


class DatedItem(TypedDict):
    """An item with the date of its block (`YYYY-MM-DD`)."""

    date: str
    item: WorkItem


class MoveSource(TypedDict):
    """Where an item is."""

    wblockId: ObjectId
    witemId: ObjectId


class MoveTarget(TypedDict):
    """Where an item is moved to; `index` counts from 0."""

    wblockId: ObjectId
    index: int
