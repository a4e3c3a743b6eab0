"""MCP tools for assigning programs."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import CustomerArgument
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Date, Identifier
from coaching_service.people.customers import service as customers
from coaching_service.training.assignments import service
from coaching_service.training.programs import service as programs

tools = Tools()


class AssignProgram(CustomerArgument):
    """A program, a client, and the date of the first day."""

    programId = Identifier(required=True, metadata={"description": "The program's _id, from list_programs."})
    startDate = Date(required=True, metadata={"description": "The date of the program's day 1, YYYY-MM-DD."})


@tools.tool("Assign a program", access=coach(CUSTOMERS.EDIT), takes=AssignProgram(), writes=True)
async def assign_program(ctx: Context, customer_id: ObjectId, program_id: ObjectId, start_date: str) -> dict[str, Any]:
    """Copy every workout of a program to a client's calendar, day 1 on startDate: all or none. Existing workouts
    remain. Each call adds the workouts once more, so do not repeat it blindly."""
    assignment = await service.assign(ctx, program_id, customer_id, start_date)
    customer, program = await gather_reads(
        ctx, customers.get_visible_reference(ctx, customer_id), programs.require(ctx, program_id)
    )
    return {
        "customer": customer,
        "program": {"_id": program_id, "name": program["name"]},
        "startDate": start_date,
        "workoutsAdded": assignment["blocks"],
    }
