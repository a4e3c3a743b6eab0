"""What the program operations read and answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core.pagination import PageQuery
from coaching_service.core.query import QueryBoolean, QueryInteger
from coaching_service.core.validation import (
    TEXT_LENGTH,
    Boolean,
    Date,
    DateTime,
    Identifier,
    Input,
    Integer,
    Output,
    StringList,
    Text,
    Version,
)

LAST_DAY = 3_660


class ProgramQuery(PageQuery):
    """The filters of the program list."""

    archived = QueryBoolean(required=True)
    keywords = fields.String(metadata={"description": "Every word must occur in name, description or tag."})


class NewProgram(Input):
    """A program to create."""

    name = Text(required=True)
    description = Text(max_length=TEXT_LENGTH, allow_blank=True, allow_none=True, load_default=None)
    tags = StringList(load_default=list)


class VersionReference(Input):
    """The version that a change without any other content was based on."""

    version = Version()


class Program(Output):
    """Workout blocks by day."""

    _id = Identifier()
    name = fields.String()
    description = fields.String(allow_none=True)
    tags = fields.List(fields.String())
    isArchived = fields.Boolean()
    numberOfDaysWithWorkouts = fields.Integer(
        metadata={"description": "Days with a block that is not rest and holds an item."}
    )
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()


class DayRange(Input):
    """`startDay` and `endDay`, both included; days count from 1, a start of 0 is accepted."""

    startDay = QueryInteger(minimum=0, required=True)
    endDay = QueryInteger(minimum=0, required=True)

    @validates_schema
    def in_order(self, data: Mapping[str, int], **_: Any) -> None:
        """The end is not before the start."""
        if data["endDay"] < data["startDay"]:
            raise ValidationError("must not be before startDay", "endDay")


class ProgramBlockCopy(Input):
    """Where a copy goes."""

    day = Integer(minimum=1, maximum=LAST_DAY, required=True)


class ProgramAssignment(Input):
    """Whom a program is assigned to, and when its first day is."""

    customerId = Identifier(required=True)
    startDate = Date(required=True)


class ProgramAssignmentResult(Output):
    """How many blocks were put onto the calendar."""

    blocks = fields.Integer()


class NewProgramBlock(Input):
    """What a coach says of a workout block of a program."""

    name = Text(required=True)
    day = Integer(minimum=1, maximum=LAST_DAY, required=True)
    isRest = Boolean(load_default=False, metadata={"description": "A day of rest, with nothing to do."})
