"""Programs for assistants."""

from __future__ import annotations

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS, PROGRAMS
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import CustomerArgument, ToolPage
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Boolean, Date, Identifier, Text
from coaching_service.people.customers import service as customers
from coaching_service.training.programs import service

tools = Tools()


class ListPrograms(ToolPage):
    """Which programs, and which page of them."""

    search = Text(
        allow_blank=True,
        load_default="",
        metadata={"description": "Words that must all occur in name, description or tag."},
    )
    isArchived = Boolean(
        load_default=False, metadata={"description": "true lists archived programs, false usable ones."}
    )


@tools.tool("List programs", access=coach(PROGRAMS.VIEW), takes=ListPrograms())
async def list_programs(ctx: Context, page: int, page_size: int, search: str, *, is_archived: bool) -> Document:
    """List training programs (workouts by day that can be put onto a client's calendar) by name. Gives docs,
    totalDocs, hasNextPage and nextPage."""
    found = await service.page(ctx, archived=is_archived, page=page, size=page_size, keywords=search)
    names = ("_id", "name", "description", "tags", "isArchived", "numberOfDaysWithWorkouts")
    return {**found, "docs": [{name: program[name] for name in names} for program in found["docs"]]}


class AssignProgram(CustomerArgument):
    """Which program goes onto whose calendar, and from when."""

    programId = Identifier(required=True, metadata={"description": "The program's _id, from list_programs."})
    startDate = Date(required=True, metadata={"description": "Where the program's day 1 goes, YYYY-MM-DD."})


@tools.tool("Assign a program", access=coach(CUSTOMERS.EDIT), takes=AssignProgram(), writes=True)
async def assign_program(ctx: Context, customer_id: ObjectId, program_id: ObjectId, start_date: str) -> Document:
    """Copy every workout of a program onto a client's calendar, day 1 on startDate: all or none. What is on the
    calendar stays. Each call adds the workouts once more, so do not repeat it blindly."""
    blocks = await service.assign(ctx, program_id, customer_id, start_date)
    client, program = await gather_reads(
        ctx, customers.get_visible_reference(ctx, customer_id), service.require(ctx, program_id)
    )
    return {
        "customer": client,
        "program": {"_id": program_id, "name": program["name"]},
        "startDate": start_date,
        "workoutsAdded": blocks,
    }
