"""Programs from sheets: the rows of a file become a program with its workouts, all or nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Annotated, TypedDict

from coaching_service.core.auth import PROGRAMS, coach
from coaching_service.core.database.context import Context, transactional
from coaching_service.core.errors import invalid_field
from coaching_service.core.fields import Default, Description, output_of
from coaching_service.core.http.routes import MultipartBody, ReceivedFile, Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import CSV, XLSX
from coaching_service.core.query import FormBoolean, FormObject
from coaching_service.core.validation import NAME_LENGTH, Text
from coaching_service.integrations.history_files import programs as sheet_programs
from coaching_service.integrations.history_files.tables import Problem, Question, UnreadableTable
from coaching_service.library import imported_names
from coaching_service.people.account import LoadUnit, convert_entered_load
from coaching_service.training import programs
from coaching_service.training.programs import Program
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks.models import BlockPlan, plan_of
from coaching_service.training.workouts.items.models import ItemInput
from coaching_service.training.workouts.sets import PlannedSet


class ProgramImportOptions(TypedDict):
    """How a sheet becomes a program."""

    name: Annotated[str | None, Text(), Description("The name of the program. Default: the name of the file.")]
    names: Annotated[
        Mapping[str, str],
        FormObject(),
        Default(dict),
        Description(
            "A JSON object: for a name of an exercise in the file, the identifier of an exercise, `create` (a new "
            "exercise) or `skip`. Names without an answer mean what the response to a dry run says."
        ),
    ]
    loadUnit: Annotated[
        LoadUnit | None, Description("The unit of loads for which the sheet has none. Default: the company's.")
    ]


class ProgramImportFields(ProgramImportOptions):
    """How to import a program."""

    dryRun: Annotated[
        bool,
        FormBoolean(),
        Default(False),
        Description("`true`: return the program and the names, and store nothing."),
    ]


class ImportedProgram(Program):
    """A program that was made of a sheet, or with `dryRun` would be."""

    questions: Annotated[list[Question], Description("What the file does not decide; empty if nothing is open.")]
    names: Annotated[
        list[imported_names.NameInFile],
        Description("The names of exercises in the file and what they mean, the most frequent first."),
    ]
    errors: Annotated[
        list[Problem],
        Description(
            "Cells that could not be read, by line, what they have is in the instructions of the exercise; columns "
            "(`UNKNOWN_COLUMN`) and sheets that are not read."
        ),
    ]


IMPORTED_PROGRAM = output_of(ImportedProgram, programs.PROGRAM)


_INSTRUCTIONS_LENGTH = 5_000


@dataclass(frozen=True)
class ReadProgram:
    """A program as a file describes it, with loads in `unit`, and what the names of its exercises mean."""

    name: str
    sheet: sheet_programs.ProgramSheet
    names: imported_names.ResolvedNames
    unit: str


async def read_sheet(
    ctx: Context,
    file: IO[bytes] | None,
    file_name: str,
    options: ProgramImportOptions,
    corrections: sheet_programs.Corrections | None = None,
) -> ReadProgram:
    """Return the program of a CSV or XLSX file, in which `corrections` are cells with another text, by line.

    Raises InvalidFields without a file and for one that is no program, NotFound for an answer with an unknown exercise.
    """
    if file is None:
        raise invalid_field("file", "is required", code="REQUIRED")
    unit = options["loadUnit"] or ctx.caller.company.load_unit
    try:
        sheet = await asyncio.to_thread(sheet_programs.read_program, file, unit, corrections)
    except UnreadableTable as error:
        message = error.message if error.line is None else f"{error.message} (line {error.line})"
        raise invalid_field("file", message, code="INVALID_FILE") from None
    counts = Counter(each.name for day in sheet.days for each in day.exercises)
    names = await imported_names.resolve_names(ctx, counts, imported_names.read_answers(options["names"]))
    name = options["name"] or PurePosixPath(file_name).stem.strip()[:NAME_LENGTH] or "Program"
    return ReadProgram(name, sheet, names, unit)


async def create_program(
    ctx: Context,
    file: IO[bytes] | None,
    file_name: str,
    options: ProgramImportOptions,
    corrections: sheet_programs.Corrections | None = None,
) -> ImportedProgram:
    """Create the program of a CSV or XLSX file, and the exercises whose names mean none; answers are remembered.

    Raises what `read_sheet` raises.
    """
    return await _create(ctx, await read_sheet(ctx, file, file_name, options, corrections))


@transactional
async def _create(ctx: Context, read: ReadProgram) -> ImportedProgram:
    exercises = await imported_names.create_missing(ctx, read.names)
    program = await programs.create(ctx, {"name": read.name, "description": None, "tags": []})
    plans = [_plan(day, exercises, read.unit, ctx.caller.company.load_unit) for day in read.sheet.days]
    plans = [plan for plan in plans if plan["items"] or plan["isRest"]]
    await batches.write(ctx, programs.ProgramPlan(program["_id"]), batches.Batch(created=plans), [])
    return {
        **await programs.get(ctx, program["_id"]),
        "questions": [],
        "names": read.names.names,
        "errors": read.sheet.problems,
    }


def _plan(
    day: sheet_programs.PlannedDay, exercises: Mapping[str, ObjectId | None], unit: str, stored_unit: str
) -> BlockPlan:
    def stored(planned: PlannedSet) -> PlannedSet:
        load = planned.get("load")
        return planned if load is None else {**planned, "load": convert_entered_load(load, unit, stored_unit)}

    items: list[ItemInput] = [
        {
            "type": "EXERCISE",
            "exerciseId": exercise_id,
            "exerciseSets": [stored(planned) for planned in each.sets],
            "exerciseInstructions": "\n".join(dict.fromkeys(each.notes))[:_INSTRUCTIONS_LENGTH] or None,
            "supersetId": day.superset_of(each),
        }
        for each in day.exercises
        if (exercise_id := exercises[imported_names.key_of(each.name)]) is not None
    ]
    return {**plan_of({"name": day.name, "isRest": day.is_rest and not items}, items), "day": day.day}


# --- REST -------------------------------------------------------------------------------------------------------------


routes = Routes("/coach/programs", tag="Programs")


@routes.post(
    "/import",
    access=coach(PROGRAMS.CREATE),
    multipart=MultipartBody(
        "file",
        (CSV, XLSX),
        ProgramImportFields,
        size_limit="plan",
        file_required=True,
        text_bytes=200_000,
        is_stored=False,
    ),
    returns=IMPORTED_PROGRAM,
    rolls_back=True,
    request_class="bulk",
    example={"name": "Strength block", "loadUnit": "kg"},
)
async def import_program(ctx: Context, body: ProgramImportFields, file: ReceivedFile | None) -> ImportedProgram:
    """Create a program from a sheet (CSV or XLSX).

    The columns are Week, Day, Exercise, Sets, Reps, Load, %, RPE, RIR, Rest, Tempo, Superset and Notes, in any order,
    in English or Spanish; only Exercise is required. Empty cells of Week and Day mean the same as above. Day is a
    number, `Day 1`, a weekday or a name; an exercise `REST` is a day of rest. Each sheet of a workbook may be a week.
    `Set` numbers the sets and `Sets` counts them; weeks may be side by side, and blocks have headings of their own.
    Names that mean no exercise become exercises of the company. What cells have that cannot be read is in the
    instructions, and they are in `errors`, as are the columns that are not read.
    With `dryRun` the response is 200 and nothing is stored.
    """
    content, name = (None, "") if file is None else (file.content, file.name)
    return await create_program(ctx, content, name, body)
