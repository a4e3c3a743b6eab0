"""Personal records as they are sent, stored and returned."""

from __future__ import annotations

from typing import Literal, NamedTuple, NotRequired, TypeAlias, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.fields import Part
from coaching_service.core.ids import ObjectId
from coaching_service.people.activity.record_types import RecordType
from coaching_service.training.workouts.sets.records import RecordKey
from coaching_service.training.workouts.sets.totals_models import Best


class _Record(Stored):
    """Loads are in the company's unit, times in seconds, distances in meters, `most_reps` is a count.

    `reps` are the reps of the set. Only the fastest time over a distance has `meters`.
    """

    customerId: ObjectId
    exerciseId: ObjectId
    type: RecordType
    value: float
    unit: str
    reps: int | None
    meters: NotRequired[float]
    date: str


class StoredRecord(_Record):
    """A stored record: entered by a coach (`manual`), or derived from the log of the item `witemId`."""

    source: Literal["manual", "log"]
    witemId: ObjectId | None


class LoggedRecord(_Record):
    """A stored record that was derived from a log."""

    source: Literal["log"]
    witemId: ObjectId


class RecordToStore(NamedTuple):
    """The best set for an exercise and a record, to be stored as the one derived from logs instead of `previous`."""

    exercise_id: ObjectId
    key: RecordKey
    best: Best
    previous: LoggedRecord | None


class PersonalRecord(StoredRecord):
    """A record with the name of its exercise."""

    exerciseName: str


class NewRecord(TypedDict):
    """A record to enter."""

    exerciseId: ObjectId
    type: RecordType
    value: float
    reps: int | None
    meters: float | None
    date: str


class RecordFields(TypedDict, total=False):
    """The fields of an entered record that can be changed."""

    value: float
    reps: int | None
    date: str


class RecordChange(RecordFields):
    """The fields to change; `version` is the one the change is based on."""

    version: NotRequired[int | None]


class DailyRecords(TypedDict):
    """How many records a client achieved on a date."""

    customerId: ObjectId
    date: str
    count: int


class RecordEvent(TypedDict):
    """What the activity feed shows of a record; `isFirst`: the exercise was done for the first time."""

    exerciseId: ObjectId
    exerciseName: str
    recordType: RecordType
    value: float
    unit: str
    reps: int | None
    meters: NotRequired[float]
    day: str
    isFirst: bool


# The client who has a record.
RecordOwner: TypeAlias = Part[StoredRecord, Literal["_id", "customerId"]]
