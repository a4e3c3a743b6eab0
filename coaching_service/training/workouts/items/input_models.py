"""Items as they are sent: new ones, changes, logs and moves."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from coaching_service.core.ids import NameOrId, ObjectId
from coaching_service.core.validation import Integer
from coaching_service.library.forms.models import QuestionInput
from coaching_service.training.workouts.items.models import (
    CircuitExercise,
    FormAnswer,
    ItemForm,
    ItemReport,
    ItemType,
    MetricsFields,
    MetricValue,
    ReminderFields,
    TaskFields,
)
from coaching_service.training.workouts.sets.models import CustomerSet, PlannedSet


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
    index: Annotated[int, Integer(minimum=0)]
