"""What the program operations read and answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.kernel.pagination import PageQuery
from coaching_service.kernel.query import QueryBoolean, QueryInteger
from coaching_service.kernel.validation import (
    TEXT_LENGTH,
    Answer,
    Day,
    Flag,
    Identifier,
    Input,
    Integer,
    Moment,
    Text,
    Version,
    Words,
)

LAST_DAY = 3_660


class ProgramQuery(PageQuery):
    """The filters of the program list."""

    archived = QueryBoolean(required=True)
    keywords = fields.String(metadata={"description": "Every word must occur in name, description or tag."})


class NewProgram(Input):
    """A program to create."""

    name = Text(required=True)
    description = Text(longest=TEXT_LENGTH, blank=True, allow_none=True, load_default=None)
    tags = Words(load_default=list)


class BasedOn(Input):
    """The version that a change without any other content was based on."""

    version = Version()


class Program(Answer):
    """Workout blocks by day."""

    _id = Identifier()
    name = fields.String()
    description = fields.String(allow_none=True)
    tags = fields.List(fields.String())
    isArchived = fields.Boolean()
    numberOfDaysWithWorkouts = fields.Integer(
        metadata={"description": "Days with a block that is not rest and holds an item."}
    )
    createdAt = Moment()
    updatedAt = Moment()
    version = fields.Integer()


class DayRange(Input):
    """`startDay` and `endDay`, both included; days count from 1, a start of 0 is accepted."""

    startDay = QueryInteger(least=0, required=True)
    endDay = QueryInteger(least=0, required=True)

    @validates_schema
    def in_order(self, data: Mapping[str, int], **_: Any) -> None:
        """The end is not before the start."""
        if data["endDay"] < data["startDay"]:
            raise ValidationError("must not be before startDay", "endDay")


class ProgramBlockPlace(Input):
    """Where a copy goes."""

    day = Integer(least=1, most=LAST_DAY, required=True)


class Assignment(Input):
    """Whom a program is assigned to, and when its first day is."""

    customerId = Identifier(required=True)
    startDate = Day(required=True)


class Assigned(Answer):
    """How many blocks were put onto the calendar."""

    blocks = fields.Integer()


class ProgramBlockDetails(Input):
    """What a coach says of a workout block of a program."""

    name = Text(required=True)
    day = Integer(least=1, most=LAST_DAY, required=True)
    isRest = Flag(load_default=False, metadata={"description": "A day of rest, with nothing to do."})
