"""Results of the queries over scheduled and completed blocks."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NotRequired, TypedDict

from coaching_service.core.ids import ObjectId
from coaching_service.people.customers.models import Customer
from coaching_service.training.workouts.blocks.models import SessionFields
from coaching_service.training.workouts.items.models import ItemForm, WorkItem
from coaching_service.training.workouts.sets import BlockExerciseTotals, Totals


class PendingItem(TypedDict):
    """A scheduled form that is not answered: the fields of its item."""

    _id: ObjectId
    form: ItemForm


class UnansweredForm(TypedDict):
    """A form that a client has not answered; `_id` is its workout block."""

    _id: ObjectId
    customerId: ObjectId
    date: str
    formName: str


class PendingForm(TypedDict):
    """A scheduled form that is not answered, in the block `_id`, with the active client as `client`."""

    _id: ObjectId
    customerId: ObjectId
    date: str
    items: PendingItem
    client: Customer


class OwnPendingItem(PendingItem):
    """A scheduled form of one client that is not answered, with its block and date."""

    wblockId: ObjectId
    date: str


class PeriodTotals(TypedDict):
    """What clients did in a period (`2026-03`, or `2026-10` for a week), apart from days on which they do not train.

    `active`: the clients with a session; `planned`: workouts, on all days.
    """

    _id: str
    active: int
    planned: int
    sessions: int
    workoutDays: int
    completedDays: int


class BlockReference(TypedDict):
    """A workout block by name and date."""

    _id: ObjectId
    name: str
    date: str


class ItemReference(TypedDict):
    """An item `_id` with its workout; `exerciseId` of an exercise, and `title` of other types, without either null."""

    _id: ObjectId
    wblockId: ObjectId
    name: str
    date: str
    exerciseId: ObjectId | None
    title: str | None


class PendingForms(TypedDict):
    """The number of forms without an answer in a block of a client on a date."""

    customerId: ObjectId
    date: str
    count: int


class BlockProgress(TypedDict):
    """What became of a block: the number of its items, and of those completed.

    `isWorkout`: it is neither rest nor of a recurring check-in, has an item of WORKOUT_TYPES, and is completed if its
    client added it. `isImported`: it was done before, and never planned. `hasWork`: it has a completed set that is not
    warm-up, or a completed item of a type without sets.
    """

    date: str
    plannedDate: NotRequired[str | None]
    name: str
    createdBy: NotRequired[Literal["client"] | None]
    isRest: bool
    isWorkout: bool
    isImported: NotRequired[bool]
    totalItems: int
    completedItems: int
    hasWork: bool


class BlockOutline(BlockProgress):
    """A block of a client without its items."""

    _id: ObjectId


class ScheduledBlock(BlockOutline):
    """A scheduled block of a client with what became of it."""

    customerId: ObjectId


class SessionDate(TypedDict):
    """The date of a session."""

    date: str


class LoggedAhead(TypedDict):
    """When something was last logged for a later date; None if that is unknown."""

    loggedAt: datetime | None


class LatestSessions(TypedDict):
    """The latest session of a client up to today, and what was done of later ones: one each, or none."""

    lastSession: list[SessionDate]
    doneAhead: list[LoggedAhead]


class AgendaReminder(TypedDict):
    """A reminder of a block; `scheduledTime` as it was sent."""

    _id: ObjectId
    scheduledTime: str
    isCompleted: bool


class AgendaBlock(BlockOutline):
    """A block of a client with its reminders; `isOpenCheckIn`: it is a check-in, or has a form, that is not done."""

    customerId: ObjectId
    createdAt: datetime
    isOpenCheckIn: bool
    reminders: list[AgendaReminder]


class DoneWorkout(SessionFields):
    """A workout with anything done; `sets` are the completed ones that are not warm-up."""

    _id: ObjectId
    date: str
    name: str
    totalItems: int
    completedItems: int
    sets: int


class BlockTitle(TypedDict):
    """The title of a scheduled block, and its latest change."""

    _id: ObjectId
    date: str
    name: str
    updatedAt: datetime
    version: int


class ExerciseSession(TypedDict):
    """A block with the items that contain a certain exercise."""

    _id: ObjectId
    date: str
    items: list[WorkItem]


class LastSession(TypedDict):
    """The latest session of the exercise `_id` before a date: its block with only the items that contain it."""

    _id: ObjectId
    session: ExerciseSession


class DoneExercise(TypedDict):
    """An exercise (`_id`) that a client did: in how many sessions, and the date of the latest."""

    _id: ObjectId
    lastDate: str
    sessions: int


class LiftResult(BlockExerciseTotals):
    """What a client did for an exercise in a block on a date, with its best sets."""

    date: str


class Session(Totals):
    """A training session: a block with a working set, or with a completed item of a type without sets."""

    date: str
    sessionRpe: float | None
    durationMinutes: float | None


class ExerciseSum(Totals):
    """The totals of an exercise (`_id`) over a period."""

    _id: ObjectId


class AssignedBlocks(TypedDict):
    """The blocks of one assignment of a program (`_id`): their number, how many are completed, and their dates."""

    _id: ObjectId
    blocks: int
    completedBlocks: int
    firstDate: str
    lastDate: str
