"""Programs from the calendars of clients."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import transactional
from coaching_service.core.ids import ObjectId
from coaching_service.training.programs import service as programs
from coaching_service.training.programs.models import Program
from coaching_service.training.programs.service import ProgramPlan
from coaching_service.training.schedule.days import days_between
from coaching_service.training.schedule.service import get_regular_blocks, plan_block
from coaching_service.training.workouts.blocks import batches as block_batches
from coaching_service.training.workouts.blocks.batches import Batch
from coaching_service.training.workouts.blocks.owners import ClientCalendar


@transactional
async def create_program(ctx: Context, customer_id: ObjectId, first: str, last: str, name: str) -> Program:
    """Create a program with what is planned on a client's calendar from `first`, which is day 1, to `last`.

    Raises NotFound, Forbidden, and InvalidFields if there are more than 500 blocks.
    """
    calendar = ClientCalendar(customer_id)
    await calendar.require_access(ctx)
    source = await get_regular_blocks(ctx, calendar, first, last)
    program = await programs.create(ctx, {"name": name, "description": None, "tags": []})
    owner = ProgramPlan(program["_id"])
    plans = [plan_block(owner, block, block["items"], days_between(first, str(block["date"])) + 1) for block in source]
    await block_batches.write(ctx, owner, Batch(created=plans, is_copy=True), [])
    return await programs.get(ctx, program["_id"])
