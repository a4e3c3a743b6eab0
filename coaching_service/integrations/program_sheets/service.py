"""Programs from sheets: the rows of a file become a program with its workouts, all or nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import InvalidFields, invalid_field
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import NAME_LENGTH
from coaching_service.integrations.history_files import programs as history_file_programs
from coaching_service.integrations.history_files.tables import UnreadableTable
from coaching_service.integrations.program_sheets.models import ImportedProgram, ProgramImportOptions
from coaching_service.library.imported_names import service as imported_names
from coaching_service.library.imported_names.models import ResolvedNames, key_of, read_answers
from coaching_service.people.account.service import convert_entered_load
from coaching_service.training.programs import service as programs
from coaching_service.training.programs.service import ProgramPlan
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks.models import BlockPlan, plan_of
from coaching_service.training.workouts.items.models import ItemInput
from coaching_service.training.workouts.sets import PlannedSet

_INSTRUCTIONS_LENGTH = 5_000


@dataclass(frozen=True)
class ReadProgram:
    """A program as a file describes it, with loads in `unit`, and what the names of its exercises mean."""

    name: str
    sheet: history_file_programs.ProgramSheet
    names: ResolvedNames
    unit: str


async def read_sheet(
    ctx: Context,
    file: IO[bytes] | None,
    file_name: str,
    options: ProgramImportOptions,
    corrections: history_file_programs.Corrections | None = None,
) -> ReadProgram:
    """Return the program of a CSV or XLSX file, in which `corrections` are cells with another text, by line.

    Raises InvalidFields without a file and for one that is no program, NotFound for an answer with an unknown exercise.
    """
    if file is None:
        raise invalid_field("file", "is required", code="REQUIRED")
    unit = options["loadUnit"] or ctx.caller.company.load_unit
    try:
        sheet = await asyncio.to_thread(history_file_programs.read_program, file, unit, corrections)
    except UnreadableTable as error:
        raise _unreadable(error) from None
    counts = Counter(each.name for day in sheet.days for each in day.exercises)
    names = await imported_names.resolve_names(ctx, counts, read_answers(options["names"]))
    name = options["name"] or PurePosixPath(file_name).stem.strip()[:NAME_LENGTH] or "Program"
    return ReadProgram(name, sheet, names, unit)


async def import_program(
    ctx: Context,
    file: IO[bytes] | None,
    file_name: str,
    options: ProgramImportOptions,
    corrections: history_file_programs.Corrections | None = None,
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
    await batches.write(ctx, ProgramPlan(program["_id"]), batches.Batch(created=plans), [])
    return {
        **await programs.get(ctx, program["_id"]),
        "questions": [],
        "names": read.names.names,
        "errors": read.sheet.problems,
    }


def _plan(
    day: history_file_programs.PlannedDay, exercises: Mapping[str, ObjectId | None], unit: str, stored_unit: str
) -> BlockPlan:
    items = [
        _item(each, exercise_id, day.superset_of(each), unit, stored_unit)
        for each in day.exercises
        if (exercise_id := exercises[key_of(each.name)]) is not None
    ]
    return {**plan_of({"name": day.name, "isRest": day.is_rest and not items}, items), "day": day.day}


def _item(
    exercise: history_file_programs.PlannedExercise,
    exercise_id: ObjectId,
    superset: str | None,
    unit: str,
    stored_unit: str,
) -> ItemInput:
    return {
        "type": "EXERCISE",
        "exerciseId": exercise_id,
        "exerciseSets": [_stored_set(each, unit, stored_unit) for each in exercise.sets],
        "exerciseInstructions": "\n".join(dict.fromkeys(exercise.notes))[:_INSTRUCTIONS_LENGTH] or None,
        "supersetId": superset,
    }


def _stored_set(planned: PlannedSet, unit: str, stored_unit: str) -> PlannedSet:
    load = planned.get("load")
    return planned if load is None else {**planned, "load": convert_entered_load(load, unit, stored_unit)}


def _unreadable(error: UnreadableTable) -> InvalidFields:
    message = error.message if error.line is None else f"{error.message} (line {error.line})"
    return invalid_field("file", message, code="INVALID_FILE")
