"""Requests and responses of the personal-record operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core.validation import Choice, Date, DateTime, Identifier, Input, Integer, Number, Output
from coaching_service.people.activity.record_types import FASTEST, RECORD_TYPES
from coaching_service.training.workouts.sets.records import RECORD_UNITS
from coaching_service.training.workouts.sets.schemas import MAX_METERS

_TYPES = (
    "`estimated_1rm`: Epley up to 12 reps, with the reps in reserve of RIR or RPE added first, the load itself for 1. "
    "`longest_time` and `fastest` are in seconds, `farthest_distance` in meters. `least_assistance`: the least help, "
    "of exercises whose `loadType` is `assistance`."
)


class RecordDetails(Input):
    """The fields of a record that can be changed."""

    value = Number(minimum=0, maximum=1_000_000, required=True)
    reps = Integer(minimum=0, maximum=100_000, allow_none=True, load_default=None)
    date = Date(required=True)


class NewPersonalRecord(RecordDetails):
    """A record to enter."""

    exerciseId = Identifier(required=True)
    type = Choice(*RECORD_TYPES, required=True, metadata={"description": _TYPES})
    meters = Number(
        minimum=0,
        maximum=MAX_METERS,
        allow_none=True,
        load_default=None,
        metadata={"description": "The distance; required for `fastest`, and only for it."},
    )

    @validates_schema
    def has_the_distance_of_a_fastest_time(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require a distance for the fastest time, and none otherwise."""
        if data["type"] == FASTEST and not data["meters"]:
            raise ValidationError("is required for fastest", "meters")
        if data["type"] != FASTEST and data["meters"] is not None:
            raise ValidationError("is only for fastest", "meters")


class PersonalRecord(Output):
    """A personal record of a client."""

    _id = Identifier()
    exerciseId = Identifier()
    exerciseName = fields.String()
    type = Choice(*RECORD_TYPES, metadata={"description": _TYPES})
    value = fields.Float()
    unit = Choice(*RECORD_UNITS)
    reps = fields.Integer(allow_none=True)
    meters = fields.Float(
        metadata={
            "description": "The distance, only of `fastest`. From 1,000 m on, derived records are of the distance in "
            "whole steps of 100 m that was covered.",
            "optional": True,
        },
    )
    date = Date()
    source = Choice("manual", "log")
    witemId = Identifier(allow_none=True, metadata={"description": "The item whose log it is derived from."})
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()
