"""Items of workouts as text, one in each line: forms, and creating what they describe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from marshmallow import ValidationError, validates_schema

from coaching_service.core.auth.permissions import PROGRAMS
from coaching_service.core.database.context import Context
from coaching_service.core.fields import Default, take
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Input, Text
from coaching_service.training.schedule.program_text import read_program_text
from coaching_service.training.templates import service as templates
from coaching_service.training.workout_text.mentions import read_texts
from coaching_service.training.workouts.blocks import batches as block_batches
from coaching_service.training.workouts.blocks.models import Block, BlockInput, NewBlock, PlannedBlock
from coaching_service.training.workouts.blocks.owners import ScheduleOwner
from coaching_service.training.workouts.items import service as item_service
from coaching_service.web.views.unusual_values import Confirmation

_FIELD = "text"
MAX_TEXT_LENGTH = 20_000
_SUGGESTED_TEMPLATES = 200


class ItemsText(Confirmation):
    """Items as text, and whether the user has confirmed loads in it that are unusual."""

    text: Annotated[str, Text(max_length=MAX_TEXT_LENGTH, allow_blank=True), Default("")]


class NewWorkoutText(ItemsText):
    """The items of a new workout, and the name of a template that it is made from; a rest day has neither."""

    template: Annotated[str, Text(allow_blank=True), Default("")]


class NewWorkout(PlannedBlock, NewWorkoutText):
    """A new workout of a client or program."""


class NewWorkoutForm(Input):
    """The name of a new workout, which may be empty, and the checks of its form."""

    name = Text(allow_blank=True, load_default="")

    @validates_schema
    def require_name(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError for a workout without a name that is not a rest day and not from a template."""
        if not data["name"] and not data["isRest"] and not data["template"]:
            raise ValidationError("should not be empty", "name")

    @validates_schema
    def rests_without_items(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError for a rest day with items."""
        for name in (_FIELD, "template"):
            if data["isRest"] and data[name].strip():
                raise ValidationError("must be empty for a rest day", name)


async def create_with_text(ctx: Context, owner: ScheduleOwner, form: NewWorkout) -> tuple[Block, str]:
    """Create a block with the items of the template of that name, if any, and of a text.

    Returns it, and remarks on how the text was read. Raises InvalidFields for `text`, with the line, and for
    `template`; NotFound and Forbidden for the owner.
    """
    text = form["text"]
    new_block: BlockInput = {**take(BlockInput, form), "name": form["name"] or ("Rest" if form["isRest"] else "")}
    if template := form["template"]:
        day = new_block["date"] if owner.day_field == "date" else new_block["day"]
        applied = await templates.apply_named(ctx, template, owner, day, name=new_block["name"])
        _, remarks = await add_text(ctx, owner, applied["_id"], text)
        return applied, remarks
    read = await read_texts(ctx, [(_FIELD, text)], customer_id=owner.block_filter.get("customerId"))
    block: NewBlock = {**new_block, "items": read.items[0]}
    return await block_batches.create_block(ctx, owner, block), read.remarks


async def add_text(ctx: Context, owner: ScheduleOwner, block_id: ObjectId, text: str) -> tuple[int, str]:
    """Add the items of a text at the end of a block; returns how many, and remarks on how the text was read.

    Raises as create_with_text, and NotFound for the block.
    """
    read = await read_texts(ctx, [(_FIELD, text)], customer_id=owner.block_filter.get("customerId"))
    for item in read.items[0]:
        await item_service.create_item(ctx, owner, block_id, item)
    return len(read.items[0]), read.remarks


async def create_from_program_text(ctx: Context, owner: ScheduleOwner, text: str) -> tuple[int, str]:
    """Create the workouts of a program that a text describes; returns how many, and remarks on how it was read.

    Raises as create_with_text.
    """
    blocks, remarks = await read_program_text(ctx, text, _FIELD)
    if blocks:
        await block_batches.create_blocks(ctx, owner, blocks)
    return len(blocks), remarks


async def list_template_names(ctx: Context) -> list[str]:
    """Return the names of templates to suggest: the first by name, none without permission to view programs."""
    if PROGRAMS.VIEW not in ctx.caller.permissions:
        return []
    return [template["name"] for template in await templates.list_names(ctx, _SUGGESTED_TEMPLATES)]
