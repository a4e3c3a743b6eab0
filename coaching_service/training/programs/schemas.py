"""Request and response schemas of programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core.external_identity import ExternalIdFilter, IdentityFields, IdentityResult
from coaching_service.core.field_schemas import input_of
from coaching_service.core.list_selection import UpdatedSince, UpdatedSinceOrSorted
from coaching_service.core.pagination import PageQuery
from coaching_service.core.query import QueryBoolean, QueryInteger
from coaching_service.core.validation import (
    TEXT_LENGTH,
    DateTime,
    DryRun,
    Identifier,
    Input,
    Integer,
    StringList,
    Text,
    Version,
)
from coaching_service.training.programs import models
from coaching_service.training.programs.models import LAST_DAY
from coaching_service.training.workouts.blocks.models import BlockItems


class ProgramQuery(PageQuery, ExternalIdFilter, UpdatedSinceOrSorted):
    """The filters of the program list."""

    archived = QueryBoolean(required=True)
    keywords = fields.String(metadata={"description": "Every word must occur in name, description or tag."})


class NewProgram(IdentityFields):
    """A program to create."""

    name = Text(required=True)
    description = Text(max_length=TEXT_LENGTH, allow_blank=True, allow_none=True, load_default=None)
    tags = StringList(load_default=list)


class VersionReference(Input):
    """The version that a change without other content is based on."""

    version = Version()


class Program(IdentityResult):
    """Workout blocks by day."""

    _id = Identifier()
    name = fields.String()
    description = fields.String(allow_none=True)
    tags = fields.List(fields.String())
    isArchived = fields.Boolean()
    numberOfDaysWithWorkouts = fields.Integer(
        metadata={"description": "The number of days with a block that is not rest and has an item."}
    )
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()


class DayRange(ExternalIdFilter, UpdatedSince):
    """`startDay` and `endDay`, both included; days count from 1, a start of 0 is accepted."""

    startDay = QueryInteger(minimum=0, required=True)
    endDay = QueryInteger(minimum=0, required=True)

    @validates_schema
    def require_order(self, data: Mapping[str, int], **_: Any) -> None:
        """Require the end not to be before the start."""
        if data["endDay"] < data["startDay"]:
            raise ValidationError("must not be before startDay", "endDay")


class ProgramBlockCopy(Input):
    """The day of a copy."""

    day = Integer(minimum=1, maximum=LAST_DAY, required=True)


# The items come before the other fields, as in earlier API documents.
NewProgramBlock = input_of(models.NewProgramBlock, IdentityFields, input_of(BlockItems), DryRun)
