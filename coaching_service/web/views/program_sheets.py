"""Making a program of a sheet: a file or a pasted table, its preview with the names of exercises, and the program."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

from marshmallow import fields

from coaching_service.core.auth.access import PROGRAMS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.errors import invalid_field
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default
from coaching_service.core.http.routes import MultipartBody, ReceivedFile
from coaching_service.core.media import CSV, XLSX
from coaching_service.core.validation import ListOf, Text
from coaching_service.integrations.history_files.plan_cells import PlanField
from coaching_service.integrations.history_files.programs import (
    Corrections,
    PlannedDay,
    read_program,
    write_table,
)
from coaching_service.integrations.program_sheets import service
from coaching_service.integrations.program_sheets.models import ProgramImportOptions
from coaching_service.integrations.program_sheets.service import ReadProgram
from coaching_service.library.imported_names.models import CREATE
from coaching_service.people.account.models import LoadUnit
from coaching_service.training.set_text.planned import write_planned
from coaching_service.web.formatting import quantity
from coaching_service.web.page_queries import KeywordQuery
from coaching_service.web.pages import Pages, Redirect, Render
from coaching_service.web.views.import_forms import NameRows, changed_answers, search_exercises, show_name

pages = Pages("/app/programs/import")
_MAX_TABLE = 60_000
_MAX_CELLS = 300  # that are corrected at a time; the others after them


class _Sheet(TypedDict):
    name: Annotated[str, Text(allow_blank=True), Default("")]
    table: Annotated[str, Text(max_length=_MAX_TABLE, allow_blank=True), Default("")]
    loadUnit: LoadUnit | None


class _Cell(TypedDict):
    """A cell of the table that could not be read, with another text."""

    line: int
    column: PlanField
    text: Annotated[str, Text(max_length=500, allow_blank=True), Default("")]


class _ProgramForm(TypedDict):
    name: str
    table: Annotated[str, Text(max_length=_MAX_TABLE)]
    loadUnit: LoadUnit
    names: NameRows
    cells: Annotated[list[_Cell], ListOf(fields.Nested(input_of(_Cell)), maximum=_MAX_CELLS), Default(list)]
    unread: Annotated[str, Text(max_length=_MAX_TABLE, allow_blank=True), Default("")]


@pages.get("", access=coach(PROGRAMS.CREATE), template="library/program_import.html")
async def sheet_page(ctx: Context) -> dict[str, Any]:
    """A form for a file or a table, and with one what it would become."""
    return {"preview": None, "unit": ctx.caller.company.load_unit}


@pages.get("/exercises", access=coach(PROGRAMS.CREATE), template="imports/exercises.html")
async def sheet_exercises_page(ctx: Context, query: KeywordQuery) -> dict[str, Any]:
    """The exercises that a name in the sheet may mean."""
    return {"layout": "layout.html", "query": query, "exercises": await search_exercises(ctx, query)}


@pages.post(
    "/preview",
    access=coach(PROGRAMS.CREATE),
    form=MultipartBody("file", (CSV, XLSX), input_of(_Sheet)(), size_limit="plan", text_bytes=250_000, is_stored=False),
    on=sheet_page,
    idempotent=True,
    file_optional=True,
    request_class="bulk",
)
async def preview_sheet(ctx: Context, form: _Sheet, file: ReceivedFile | None) -> Render:
    """Show the program that a sheet would become."""
    if file is None and not form["table"].strip():
        raise invalid_field("file", "must be chosen, or the table pasted below", code="REQUIRED")
    options: ProgramImportOptions = {"name": form["name"] or None, "names": {}, "loadUnit": form["loadUnit"]}
    content, name = (_content_of(form["table"]), "") if file is None else (file.content, file.name)
    read = await service.read_sheet(ctx, content, name, options)
    rows = [row for day in read.sheet.days for each in day.exercises for row in each.rows]
    cells = {(row.row.place, name) for row in rows for name in row.left_out}
    others = [each for each in read.sheet.problems if (each["entry"], each["field"]) not in cells]
    unread = "\n".join(f"{each['entry']}: {each['field']} {each['message']}" for each in others)
    return await _show(read, unread[:_MAX_TABLE])


@pages.post("/changes", access=coach(PROGRAMS.CREATE), on=sheet_page, has_table=True, idempotent=True)
async def change_sheet(ctx: Context, form: _ProgramForm) -> Render:
    """Show the program of a preview with other texts in cells that could not be read."""
    options, corrections = await _changes_of(ctx, form)
    return await _show(
        await service.read_sheet(ctx, _content_of(form["table"]), "", options, corrections), form["unread"]
    )


@pages.post("", access=coach(PROGRAMS.CREATE), on=sheet_page, has_table=True)
async def import_sheet(ctx: Context, form: _ProgramForm) -> Redirect:
    """Create the program of a preview."""
    options, corrections = await _changes_of(ctx, form)
    program = await service.import_program(ctx, _content_of(form["table"]), "", options, corrections)
    days = quantity(program["numberOfDaysWithWorkouts"], "workout day")
    return Redirect(f"/app/programs/{program['_id']}", f"{program['name']} created with {days}.")


def _content_of(table: str) -> io.BytesIO:
    return io.BytesIO(table.encode())


async def _changes_of(ctx: Context, form: _ProgramForm) -> tuple[ProgramImportOptions, Corrections]:
    """Return the answers about names and the other texts of cells, as a form has them."""
    corrections: dict[int, dict[PlanField, str]] = {}
    for cell in form["cells"]:
        corrections.setdefault(cell["line"], {})[cell["column"]] = cell["text"]
    options: ProgramImportOptions = {"name": form["name"], "names": {}, "loadUnit": form["loadUnit"]}
    proposed = await service.read_sheet(ctx, _content_of(form["table"]), "", options, corrections)
    return {**options, "names": changed_answers(proposed.names.names, form["names"])}, corrections


async def _show(read: ReadProgram, unread: str) -> Render:
    """Return the preview of a program as a table that the next form sends; `unread`: what else could not be read."""
    if len(table := write_table(read.sheet, read.unit)) > _MAX_TABLE:
        raise invalid_field("file", "is too long for this page: divide it into several programs", code="TOO_LONG")
    days = (await asyncio.to_thread(read_program, _content_of(table), read.unit)).days
    numbers = {each["name"]: number for number, each in enumerate(read.names.names) if each["match"] is None}
    weeks: dict[int, list[dict[str, Any]]] = {}
    for day in days:
        empty = [{"number": number, "exercises": None} for number in range(1, 8)]
        week = weeks.setdefault((day.day - 1) // 7 + 1, empty)
        week[(day.day - 1) % 7] = _present_day(day, read.unit, numbers)
    preview = {
        "name": read.name,
        "unit": read.unit,
        "table": table,
        "weeks": weeks,
        "facts": [
            quantity(sum(bool(day.exercises) for day in days), "workout"),
            quantity(sum(len(day.exercises) for day in days), "exercise"),
        ],
        "names": [show_name(each, may_create=True) for each in read.names.names],
        "new_count": sum(each["answer"] == CREATE for each in read.names.names),
        "cell_count": sum(len(row.left_out) for day in days for each in day.exercises for row in each.rows),
        "most_cells": _MAX_CELLS,
        "unread": unread,
    }
    return Render({"preview": preview}, "The preview is no longer here. Choose the file again.")


def _present_day(day: PlannedDay, unit: str, numbers: Mapping[str, int]) -> dict[str, Any]:
    return {
        "number": (day.day - 1) % 7 + 1,
        "name": day.name,
        "exercises": [
            {
                "name": each.name,
                "sets": write_planned(each.sets, unit),
                "superset": day.superset_of(each),
                "notes": ", ".join(each.notes),
                "unknown": numbers.get(each.name),
                "cells": [
                    {"line": row.row.line, "column": name, "text": row.cells[name], "problem": problem}
                    for row in each.rows
                    for name, problem in row.left_out.items()
                ],
            }
            for each in day.exercises
        ],
    }
