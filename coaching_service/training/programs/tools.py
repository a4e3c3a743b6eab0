"""MCP tools for programs."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS, PROGRAMS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import CustomerArgument, ToolPage
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Boolean, Date, Identifier, Text
from coaching_service.people.customers import service as customers
from coaching_service.training.programs import service
from coaching_service.training.programs.models import Program

tools = Tools()


class ListPrograms(ToolPage):
    """A filter of the programs, and a page."""

    search = Text(
        allow_blank=True,
        load_default="",
        metadata={"description": "Words that must all occur in name, description or tag."},
    )
    isArchived = Boolean(
        load_default=False, metadata={"description": "true lists archived programs, false usable ones."}
    )


@tools.tool("List programs", access=coach(PROGRAMS.VIEW), takes=ListPrograms())
async def list_programs(ctx: Context, page: int, page_size: int, search: str, *, is_archived: bool) -> dict[str, Any]:
    """List training programs (workouts by day that can be assigned to a client) by name. Returns docs,
    totalDocs, hasNextPage and nextPage."""
    programs = await service.list_page(ctx, archived=is_archived, page=page, size=page_size, keywords=search)
    return {**programs, "docs": [_summary(program) for program in programs["docs"]]}


def _summary(program: Program) -> dict[str, Any]:
    return {
        "_id": program["_id"],
        "name": program["name"],
        "description": program["description"],
        "tags": program["tags"],
        "isArchived": program["isArchived"],
        "numberOfDaysWithWorkouts": program["numberOfDaysWithWorkouts"],
    }


class AssignProgram(CustomerArgument):
    """A program, a client, and the date of the first day."""

    programId = Identifier(required=True, metadata={"description": "The program's _id, from list_programs."})
    startDate = Date(required=True, metadata={"description": "The date of the program's day 1, YYYY-MM-DD."})


@tools.tool("Assign a program", access=coach(CUSTOMERS.EDIT), takes=AssignProgram(), writes=True)
async def assign_program(ctx: Context, customer_id: ObjectId, program_id: ObjectId, start_date: str) -> dict[str, Any]:
    """Copy every workout of a program to a client's calendar, day 1 on startDate: all or none. Existing workouts
    remain. Each call adds the workouts once more, so do not repeat it blindly."""
    blocks = await service.assign(ctx, program_id, customer_id, start_date)
    customer, program = await gather_reads(
        ctx, customers.get_visible_reference(ctx, customer_id), service.require(ctx, program_id)
    )
    return {
        "customer": customer,
        "program": {"_id": program_id, "name": program["name"]},
        "startDate": start_date,
        "workoutsAdded": blocks,
    }
