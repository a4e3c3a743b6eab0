"""MCP tools for reading programs."""

from __future__ import annotations

from coaching_service.core.auth import PROGRAMS, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import arguments
from coaching_service.core.mcp.results import Answer, typed
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Boolean, Choice, Identifier, Text
from coaching_service.training.programs import service
from coaching_service.training.programs.models import LAST_DAY, Program
from coaching_service.training.programs.service import ProgramPlan
from coaching_service.training.workout_text.tool_schemas import WorkoutPage
from coaching_service.training.workout_text.tools import answer_workouts
from coaching_service.training.workout_text.writing import DETAILS, Detail, WorkoutTexts
from coaching_service.training.workouts.blocks import service as workouts

tools = Tools()


class ListPrograms(arguments.ToolPage):
    """A filter of the programs, and a page."""

    search = Text(
        allow_blank=True,
        load_default="",
        metadata={"description": "Words in name, description or tag."},
    )
    isArchived = Boolean(load_default=False, metadata={"description": "Archived programs instead."})


class ProgramPage(WorkoutPage):
    """A program, how much of each workout, and a page of its workouts."""

    programId = Identifier(required=True, metadata={"description": "From list_programs."})
    detail = Choice(*DETAILS, load_default="plan", metadata={"description": "As in get_workouts."})


@tools.tool("List programs", access=coach(PROGRAMS.VIEW), takes=ListPrograms(), returns=arguments.PageOfLines)
async def list_programs(ctx: Context, page: int, page_size: int, search: str, *, is_archived: bool) -> Answer:
    """List training programs (workouts by day that can be assigned to a client) by name."""
    programs = await service.list_page(ctx, archived=is_archived, page=page, size=page_size, keywords=search)
    lines, ids = [_describe(program) for program in programs["docs"]], [each["_id"] for each in programs["docs"]]
    return arguments.list_answer("Archived programs" if is_archived else "Programs", programs, lines, ids=ids)


def _describe(program: Program) -> str:
    days = program["numberOfDaysWithWorkouts"]
    facts = arguments.join_facts(
        f"{days} day with workouts" if days == 1 else f"{days} days with workouts",
        program["tags"] and f"tags {', '.join(map(typed, program['tags']))}",
        program["description"] and arguments.typed_line(program["description"]),
    )
    return f"{typed(program['name'])} [{program['_id']}]: {facts}"


@tools.tool("Read a program", access=coach(PROGRAMS.VIEW), takes=ProgramPage(), returns=WorkoutTexts)
async def get_program(ctx: Context, program_id: ObjectId, page: int, page_size: int, detail: Detail) -> Answer:
    """Read a program's workouts as text, by day from 1, with the lines that save_program takes."""
    program, blocks = await gather_reads(
        ctx, service.get(ctx, program_id), workouts.list_blocks(ctx, ProgramPlan(program_id), 0, LAST_DAY)
    )
    load_unit = ctx.caller.company.load_unit
    title = f"Program {typed(program['name'])}, loads in {load_unit}, workouts"
    return answer_workouts(title, arguments.paged(blocks, page, page_size), load_unit, detail)
