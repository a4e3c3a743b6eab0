"""MCP tools for reading programs."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import PROGRAMS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.fields import take
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import ToolPage, numbered, paged
from coaching_service.core.mcp.results import Answer, typed
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Boolean, Identifier, Text
from coaching_service.training.programs import service
from coaching_service.training.programs.models import LAST_DAY, Program, ProgramSummary
from coaching_service.training.programs.service import ProgramPlan
from coaching_service.training.workout_text.tool_schemas import WorkoutPage
from coaching_service.training.workout_text.tools import answer_workouts
from coaching_service.training.workout_text.writing import Detail
from coaching_service.training.workouts.blocks import service as workouts

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


class ProgramPage(WorkoutPage):
    """A program, how much of each workout, and a page of its workouts."""

    programId = Identifier(required=True, metadata={"description": "From list_programs."})


@tools.tool("List programs", access=coach(PROGRAMS.VIEW), takes=ListPrograms())
async def list_programs(ctx: Context, page: int, page_size: int, search: str, *, is_archived: bool) -> dict[str, Any]:
    """List training programs (workouts by day that can be assigned to a client) by name. Returns docs,
    totalDocs, hasNextPage and nextPage."""
    programs = await service.list_page(ctx, archived=is_archived, page=page, size=page_size, keywords=search)
    return {**numbered(programs), "docs": [_summary(program) for program in programs["docs"]]}


def _summary(program: Program) -> ProgramSummary:
    return take(ProgramSummary, program)


@tools.tool("Read a program", access=coach(PROGRAMS.VIEW), takes=ProgramPage())
async def get_program(ctx: Context, program_id: ObjectId, page: int, page_size: int, detail: Detail) -> Answer:
    """Read a program's workouts as text, by day from 1, with the lines that save_program takes."""
    program, blocks = await gather_reads(
        ctx, service.get(ctx, program_id), workouts.list_blocks(ctx, ProgramPlan(program_id), 0, LAST_DAY)
    )
    load_unit = ctx.caller.company.load_unit
    title = f"Program {typed(program['name'])}, loads in {load_unit}, workouts"
    answer = answer_workouts(title, paged(blocks, page, page_size), load_unit, detail)
    return Answer(answer.text, {"program": _summary(program), **answer.data})
