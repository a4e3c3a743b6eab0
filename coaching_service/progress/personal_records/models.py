"""Personal records as they are sent, stored and returned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypeAlias, TypedDict

from marshmallow import ValidationError, validates_schema

from coaching_service.core import fields as core_fields
from coaching_service.core import validation
from coaching_service.core.database.declared import Stored
from coaching_service.core.field_schemas import input_of, output_of
from coaching_service.core.ids import ObjectId
from coaching_service.people.activity.models import FASTEST, RecordType
from coaching_service.training.workouts.sets import MAX_METERS, RECORD_UNITS, Best, RecordKey

MAX_VALUE = 1_000_000
_TYPES = core_fields.Description(
    "`estimated_1rm`: Epley up to 12 reps, with the reps in reserve of RIR or RPE added first, the load itself for 1; "
    "of the whole weight, with the body's, where `loadType` is `added`. "
    "`longest_time` and `fastest` are in seconds, `farthest_distance` in meters. `least_assistance`: the least help, "
    "of exercises whose `loadType` is `assistance`."
)


class RecordDetails(TypedDict):
    """The fields of a record that can be changed."""

    value: Annotated[float, validation.Number(minimum=0, maximum=MAX_VALUE)]
    reps: Annotated[int | None, validation.Integer(minimum=0, maximum=100_000)]
    date: Annotated[str, validation.CalendarDate()]


class NewPersonalRecord(RecordDetails):
    """A record to enter."""

    exerciseId: ObjectId
    type: Annotated[RecordType, _TYPES]
    meters: Annotated[
        float | None,
        validation.Number(minimum=0, maximum=MAX_METERS),
        core_fields.Description("The distance; required for `fastest`, and only for it."),
    ]


class _DistanceOfFastest(validation.Input):
    @validates_schema
    def has_the_distance_of_a_fastest_time(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require a distance for the fastest time, and none otherwise."""
        if data["type"] == FASTEST and not data["meters"]:
            raise ValidationError("is required for fastest", "meters")
        if data["type"] != FASTEST and data["meters"] is not None:
            raise ValidationError("is only for fastest", "meters")


NEW_PERSONAL_RECORD = input_of(NewPersonalRecord, _DistanceOfFastest)
RecordChange: TypeAlias = core_fields.Change[RecordDetails]
RecordFields: TypeAlias = core_fields.Partial[RecordDetails]


class _Record(Stored):
    """Loads are in the company's unit, times in seconds, distances in meters, `most_reps` is a count.

    `reps` are the reps of the set. Only the fastest time over a distance has `meters`.
    """

    customerId: Annotated[ObjectId, core_fields.Private]
    exerciseId: ObjectId
    type: Annotated[RecordType, _TYPES]
    value: float
    unit: Annotated[str, validation.Choice(*RECORD_UNITS)]
    reps: int | None
    meters: NotRequired[
        Annotated[
            float,
            core_fields.Optional,
            core_fields.Description(
                "The distance, only of `fastest`. From 1,000 m on, derived records are of the distance in whole steps "
                "of 100 m that was covered."
            ),
        ]
    ]
    date: Annotated[str, validation.CalendarDate()]


class StoredRecord(_Record):
    """A stored record: entered by a coach (`manual`), or derived from the log of the item `witemId`."""

    source: Literal["manual", "log"]
    witemId: Annotated[ObjectId | None, core_fields.Description("The item whose log it is derived from.")]
    isImported: NotRequired[Annotated[bool, core_fields.Private]]


class LoggedRecord(_Record):
    """A stored record that was derived from a log."""

    source: Literal["log"]
    witemId: ObjectId
    isImported: NotRequired[bool]


class RecordToStore(NamedTuple):
    """The best set for an exercise and a record, to be stored as the one derived from logs instead of `previous`."""

    exercise_id: ObjectId
    key: RecordKey
    best: Best
    previous: LoggedRecord | None


class PersonalRecord(StoredRecord):
    """A personal record of a client."""

    exerciseName: str


PERSONAL_RECORD = output_of(PersonalRecord, first=("_id", "exerciseId", "exerciseName"))


class DailyRecords(TypedDict):
    """How many records a client achieved on a date."""

    customerId: ObjectId
    date: str
    count: int
