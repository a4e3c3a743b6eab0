"""Items of workouts as text, one in each line: forms, and creating what they describe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, validates_schema

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Input, Text
from coaching_service.training.schedule.program_text import read_program_text
from coaching_service.training.workout_text.reading import read_texts
from coaching_service.training.workouts import block_batches, item_service
from coaching_service.training.workouts.models import Block, BlockInput, NewBlock
from coaching_service.training.workouts.schedule_owners import ScheduleOwner

_FIELD = "text"
MAX_TEXT_LENGTH = 20_000


class ItemsTextForm(Input):
    """The items of a new workout as text; a rest day has none."""

    text = Text(max_length=MAX_TEXT_LENGTH, allow_blank=True, load_default="")

    @validates_schema
    def rests_without_items(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError for a rest day with items."""
        if data.get("isRest") and data["text"].strip():
            raise ValidationError("must be empty for a rest day", _FIELD)


async def create_with_text(ctx: Context, owner: ScheduleOwner, new_block: BlockInput, text: str) -> tuple[Block, str]:
    """Create a block with the items of a text; returns it, and remarks on how the text was read.

    Raises InvalidFields for `text`, with the line; NotFound and Forbidden for the owner.
    """
    read = await read_texts(ctx, [(_FIELD, text)])
    block: NewBlock = {**new_block, "items": read.items[0]}
    return await block_batches.create_block(ctx, owner, block), read.remarks


async def add_text(ctx: Context, owner: ScheduleOwner, block_id: ObjectId, text: str) -> tuple[int, str]:
    """Add the items of a text at the end of a block; returns how many, and remarks on how the text was read.

    Raises as create_with_text, and NotFound for the block.
    """
    read = await read_texts(ctx, [(_FIELD, text)])
    for item in read.items[0]:
        await item_service.add_item(ctx, owner, block_id, item)
    return len(read.items[0]), read.remarks


async def create_from_program_text(ctx: Context, owner: ScheduleOwner, text: str) -> tuple[int, str]:
    """Create the workouts of a program that a text describes; returns how many, and remarks on how it was read.

    Raises as create_with_text.
    """
    blocks, remarks = await read_program_text(ctx, text, _FIELD)
    if blocks:
        await block_batches.create_blocks(ctx, owner, blocks)
    return len(blocks), remarks
