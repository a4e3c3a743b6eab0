"""MCP tools for programs: reading them, and writing them from text or from a client's calendar."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core import mcp
from coaching_service.core.auth import CUSTOMERS, PROGRAMS, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.dates import name_period
from coaching_service.core.fields import argument_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import Answer, Arguments, Tools, Written, find_reasons, optional, require_range, typed
from coaching_service.core.text import split_lines
from coaching_service.core.validation import Boolean, Choice, Date, Identifier, ListOf, Text
from coaching_service.people.customers import service as customers
from coaching_service.training import programs
from coaching_service.training.programs import LAST_DAY, Program, ProgramPlan
from coaching_service.training.schedule import service
from coaching_service.training.schedule.service import join_some
from coaching_service.training.workout_text.finding import BlockArguments, WorkoutPage, read_texts, workout_text
from coaching_service.training.workout_text.lines import (
    DETAILS,
    Detail,
    Problems,
    WorkoutTexts,
    error_in_line,
    require_name,
)
from coaching_service.training.workout_text.tools import answer_workouts, check_names
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks import models as block_models
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.batches import Batch
from coaching_service.training.workouts.blocks.models import DayBlock
from coaching_service.training.workouts.items.service import resolve_items

# --- Reading programs -------------------------------------------------------------------------------------------------


tools = Tools()


class ListPrograms(mcp.ToolPage):
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


@tools.tool("List programs", access=coach(PROGRAMS.VIEW), takes=ListPrograms(), returns=mcp.Lines)
async def list_programs(ctx: Context, page: int, page_size: int, search: str, *, is_archived: bool) -> Answer:
    """List training programs (workouts by day that can be assigned to a client) by name."""
    listed = await programs.list_page(ctx, archived=is_archived, page=page, size=page_size, keywords=search)
    lines, ids = [_describe_program(each) for each in listed["docs"]], [each["_id"] for each in listed["docs"]]
    return mcp.list_answer("Archived programs" if is_archived else "Programs", listed, lines, ids=ids)


def _describe_program(program: Program) -> str:
    days = program["numberOfDaysWithWorkouts"]
    facts = mcp.join_facts(
        f"{days} day with workouts" if days == 1 else f"{days} days with workouts",
        program["tags"] and f"tags {', '.join(map(typed, program['tags']))}",
        program["description"] and mcp.typed_line(program["description"]),
    )
    return f"{typed(program['name'])} [{program['_id']}]: {facts}"


@tools.tool("Read a program", access=coach(PROGRAMS.VIEW), takes=ProgramPage(), returns=WorkoutTexts)
async def get_program(ctx: Context, program_id: ObjectId, page: int, page_size: int, detail: Detail) -> Answer:
    """Read a program's workouts as text, by day from 1, with the lines that save_program takes."""
    program, blocks = await gather_reads(
        ctx, programs.get(ctx, program_id), workouts.list_blocks(ctx, ProgramPlan(program_id), 0, LAST_DAY)
    )
    load_unit = ctx.caller.company.load_unit
    title = f"Program {typed(program['name'])}, loads in {load_unit}, workouts"
    return answer_workouts(title, mcp.paged(blocks, page, page_size), load_unit, detail)


# --- Writing programs -------------------------------------------------------------------------------------------------


_MAX_WORKOUTS, _MAX_DAYS, _NAMED, _MAX_LISTED, _LONGEST = 100, 366, 10, 30, 120

_CALENDAR = ("customerId", "startDate", "endDate")


class ProgramDay(BlockArguments):
    """A workout of a day of a program, as text."""

    day = argument_of(programs.ProgramBlockCopy, "day")
    name = Text(required=True, metadata={"description": "Name of the workout."})
    text = workout_text("Lines as in create_workout.", load_default="", allow_blank=True)


class SaveProgram(Arguments):
    """A program to create or change."""

    programId = Identifier(**optional("A program to change: its workouts on the days given are replaced."))
    name = Text(**optional("Required for a new program."))
    description = argument_of(programs.ProgramInput, "description")
    days = ListOf(fields.Nested(ProgramDay), minimum=1, maximum=_MAX_WORKOUTS, **optional("Its workouts."))
    customerId = Identifier(**optional("Instead of days: the client whose calendar becomes the program."))
    startDate = Date(**optional("First day of that calendar."))
    endDate = Date(load_default=None, allow_none=True)

    @validates_schema(skip_on_field_errors=False)
    def is_complete(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require a name for a new program, and its days or a calendar; a program that exists has no calendar."""
        calendar = [name for name in _CALENDAR if data.get(name) is not None]
        if (is_new := data.get("programId", ...) is None) and data.get("name", ...) is None:
            raise ValidationError("is required for a new program", "name")
        if (
            is_new
            and data.get("days", ...) is None
            and set(_CALENDAR) <= data.keys()
            and len(calendar) < len(_CALENDAR)
        ):
            raise ValidationError("is required, or customerId, startDate and endDate", "days")
        if calendar and (data.get("programId") is not None or data.get("days") is not None):
            raise ValidationError("must not be combined with programId or days", calendar[0])
        require_range(data.get("startDate"), data.get("endDate"), _MAX_DAYS)


class _Day(block_models.PlannedBlock):
    """The validated arguments of ProgramDay."""

    day: int
    text: str


@tools.tool(
    "Save a program",
    access=coach(CUSTOMERS.VIEW, PROGRAMS.CREATE, PROGRAMS.EDIT),
    takes=SaveProgram(),
    writes=True,
    locks="program",
    destructive=True,
    confirms=(mcp.Reason.PROGRAM_DAYS,),
    check=check_names,
)
async def save_program(
    ctx: Context,
    program_id: ObjectId | None,
    name: str | None,
    description: str | None,
    days: list[_Day] | None,
    customer_id: ObjectId | None,
    start_date: str | None,
    end_date: str | None,
) -> Written:
    """Create a program (workouts by day) from text, with the lines of create_workout,
    or from days of a client's calendar; or change one: other days of it stay."""
    if customer_id is not None and start_date is not None and end_date is not None:
        program = await service.create_program(ctx, customer_id, start_date, end_date, str(name))
        today = await customers.resolve_today(ctx, customer_id)
        if description is not None:
            await programs.update(ctx, program["_id"], {"description": description})
        blocks = await batches.read_days(ctx, ProgramPlan(program["_id"]), {"$gte": 1})
        named = join_some([f"day {block['day']} {typed(block['name'])}" for block in blocks], _MAX_LISTED)
        return Written(
            f"Created the program {typed(program['name'])} from {name_period(start_date, end_date, today)}, "
            f"{program['numberOfDaysWithWorkouts']} days with workouts{f': {named}' if named else ''}.",
            {"programId": program["_id"]},
            sources=[await batches.read_calendar(ctx, customer_id, start_date, end_date)],
        )
    before: Program | None = None
    if program_id is None:
        created = await programs.create(ctx, {"name": str(name), "description": description, "tags": []})
        program_id = created["_id"]
    else:
        change: programs.ProgramChange = {}
        if name is not None:
            change["name"] = name
        if description is not None:
            change["description"] = description
        before = await programs.get(ctx, program_id)
        await programs.update(ctx, program_id, change, only_differences=True)
    written, removed, remarks = await _replace_days(ctx, ProgramPlan(program_id), days or [])
    program = await programs.get(ctx, program_id)
    facts = []
    if before is not None and before["description"] != program["description"]:
        descriptions = before["description"], program["description"]
        old, new = (mcp.typed_line(each, _LONGEST) if each else "none" for each in descriptions)
        facts.append(f"description {old} → {new}")
    if days or before is None:
        words = "1 workout" if written == 1 else f"{written} workouts"
        named = join_some([f"{typed(block['name'])} on day {block['day']}" for block in removed], _NAMED)
        facts.append(f"{words} written in place of {named}" if named else f"{words} written")
    facts.append(f"{program['numberOfDaysWithWorkouts']} days with workouts")
    verb = "Created" if before is None else "Changed"
    was = "" if before is None or before["name"] == program["name"] else f"{typed(before['name'])} → "
    line = f"{verb} the program {was}{typed(program['name'])}: {', '.join(facts)}.{remarks}"
    if ctx.change_id is None:
        line = f"Nothing changed: the program {typed(program['name'])} is so already."
    return Written(line, {"programId": program_id}, find_reasons(program_days=bool(removed)))


async def _replace_days(ctx: Context, owner: ProgramPlan, days: Sequence[_Day]) -> tuple[int, list[DayBlock], str]:
    """Return how many workouts of some days are new, which they replace, and how names were read, in words."""
    read = await read_texts(ctx, [(f"days.{index}.text", day["text"]) for index, day in enumerate(days)])
    items = {f"days.{index}.items": each for index, each in enumerate(read.items)}
    plans: list[block_models.BlockPlan] = [
        {**block_models.plan_of(day, resolved), "day": day["day"]}
        for day, resolved in zip(days, await resolve_items(ctx, items), strict=True)
    ]
    existing = await batches.read_days(ctx, owner, {"$in": sorted({day["day"] for day in days})})
    removed = [block["_id"] for block in existing]
    if plans:
        await batches.write(ctx, owner, Batch(created=plans, removed=removed), existing)
    return len(plans), existing, read.remarks


# --- Reading the text of a program: a heading for each workout, `Day 1: Push`, with its items in the lines below ------


EXAMPLE = "Day 1: Push"
_HEADING = re.compile(r"day\s+(\d{1,5})\b\s*[:.\-–]?\s*(.*)", re.IGNORECASE)
_REST = "rest"


@dataclass
class _ProgramDay:
    day: int
    name: str
    first_line: int
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The lines below the heading, with as many empty lines before them as the whole text has."""
        return "\n" * self.first_line + "\n".join(self.lines)

    @property
    def is_rest(self) -> bool:
        return self.name.casefold() == _REST and not any(line.strip() for line in self.lines)


async def read_program_text(ctx: Context, text: str, path: str) -> tuple[list[block_models.NewBlock], str]:
    """Return the workouts of a program that a text describes, and remarks on how it was read (see ReadTexts).

    A day named Rest without lines is a day of rest. `path` is the field of the request that has the text. Raises
    TextError for all lines that cannot be read, with what was expected.
    """
    days: list[_ProgramDay] = []
    problems = Problems()  # headings that are wrong or missing
    for number, line in enumerate(split_lines(text), 1):
        if (heading := _HEADING.fullmatch(line.strip())) is not None:
            day_number = int(heading[1])
            name = heading[2].strip() or f"Day {day_number}"
            with problems.collect():
                if not 1 <= day_number <= programs.LAST_DAY:
                    raise error_in_line(path, number, f"expected a day from 1 to {programs.LAST_DAY}")
                require_name(path, number, name)
            days.append(_ProgramDay(day_number, name, number))
        elif days:
            days[-1].lines.append(line)
        elif line.strip() and not problems.entries:
            with problems.collect():
                raise error_in_line(path, number, f"expected the heading of a day, such as {EXAMPLE}")
    read = await read_texts(ctx, [(path, day.text) for day in days], problems.entries)
    blocks: list[block_models.NewBlock] = [
        {"name": day.name, "day": day.day, "isRest": day.is_rest, "items": day_items}
        for day, day_items in zip(days, read.items, strict=True)
    ]
    return blocks, read.remarks
