"""Schemas of workout blocks, and of the operations on them."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.external_identity import ExternalIdFilter, IdentityFields, IdentityResult
from coaching_service.core.field_schemas import input_of, output_of
from coaching_service.core.list_selection import UpdatedSince
from coaching_service.core.query import DateRange
from coaching_service.core.validation import (
    Choice,
    Date,
    DryRun,
    Identifier,
    Input,
    Integer,
    Output,
    Version,
)
from coaching_service.training.workouts.blocks import models


class CalendarQuery(DateRange, ExternalIdFilter, UpdatedSince):
    """The blocks of a calendar to read."""


# The items come before the other fields, as in earlier API documents.
_BLOCK = (IdentityFields, input_of(models.BlockItems))
ScheduledWorkoutBlock = input_of(models.ScheduledWorkoutBlock, *_BLOCK)
NewWorkoutBlock = input_of(models.NewWorkoutBlock, *_BLOCK, DryRun)
WorkoutBlock = output_of(models.WorkoutBlock, IdentityResult)


class WorkoutBlockCopy(Input):
    """The date of a copy."""

    date = Date(required=True)


class WorkoutBlockShift(DryRun):
    """The first date of the blocks to shift, and the number of days."""

    class Meta(DryRun.Meta):
        include = {"from": Date(required=True)}

    days = Integer(minimum=-3_660, maximum=3_660, required=True)


class WorkoutBlockShiftResult(Output):
    """How many blocks were shifted."""

    shifted = fields.Integer()


class ItemMoveSource(Input):
    """Where an item is."""

    wblockId = Identifier(required=True)
    witemId = Identifier(required=True)


class ItemMoveTarget(Input):
    """Where an item is moved to: `index` from 0; past the end is the end."""

    wblockId = Identifier(required=True)
    index = Integer(minimum=0, required=True)


class ItemMove(Input):
    """The move of an item; without `source` or `target` it is the documented 500."""

    source = fields.Nested(ItemMoveSource, allow_none=True, load_default=None)
    target = fields.Nested(ItemMoveTarget, allow_none=True, load_default=None)
    version = Version()


class WorkoutBlockQuery(Input):
    """What to add to a workout block."""

    include = Choice(
        "lastTime",
        metadata={
            "description": "`lastTime`: adds to each exercise what the client did in its latest session before the "
            "date of the block."
        },
    )
