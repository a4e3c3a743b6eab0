"""Programs: the list, one program, its assignment and its updates to clients, and a program made of a sheet."""

from __future__ import annotations

import asyncio
import io
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, TypedDict

from marshmallow import fields

from coaching_service.core import validation
from coaching_service.core.auth import CUSTOMERS, PROGRAMS, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.errors import Conflict, invalid_field
from coaching_service.core.fields import Default, input_of, take
from coaching_service.core.http.routes import MultipartBody, ReceivedFile
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import CSV, XLSX
from coaching_service.integrations import program_sheets
from coaching_service.integrations.history_files import programs as sheet_programs
from coaching_service.integrations.history_files.plan_cells import PlanField
from coaching_service.library.exercises import service as exercises
from coaching_service.library.imported_names import CREATE
from coaching_service.lifecycle import program_sync
from coaching_service.people.account import LoadUnit
from coaching_service.people.customers import service as customers
from coaching_service.training import programs
from coaching_service.training.assignments import service as assignments
from coaching_service.training.assignments import sync
from coaching_service.training.schedule import service as schedule
from coaching_service.training.schedule.models import ProgramDays, ProgramRange
from coaching_service.training.schedule.program_tools import read_program_text
from coaching_service.training.set_text import write_planned
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.items.descriptions import describe_items
from coaching_service.training.workouts.items.service import planned_exercise_ids
from coaching_service.web import pages as web_pages
from coaching_service.web.formatting import document_options, name_options, quantity
from coaching_service.web.views import customer_calendar
from coaching_service.web.views.customer_layout import week_path
from coaching_service.web.views.transfer import NameRows, changed_answers, show_name
from coaching_service.web.views.workout import cards
from coaching_service.web.views.workout.editing import WorkoutOwnerPages
from coaching_service.web.views.workout.workout_page import declare_workout_pages

pages = web_pages.Records(
    web_pages.Pages("/app"),
    "/programs",
    "programId",
    "program",
    PROGRAMS,
    programs.get,
    folder="library",
    locks="program",
)
_PROGRAM_FORM = validation.patch_of(programs.NEW_PROGRAM, name="ProgramForm")
_PAGE_SIZE = 24
_MAX_CLIENTS, _MAX_OPTIONS = 50, 500


class _Search(web_pages.Search):
    archived: Annotated[bool, Default(False)]


class _NewProgram(programs.ProgramInput, cards.ItemsText):
    """A program, and its workouts as text."""


class _ProgramQuery(TypedDict):
    client: Annotated[str, web_pages.Keywords()]
    day: Annotated[int | None, validation.Integer(minimum=1, maximum=programs.LAST_DAY)]


class _Assignment(TypedDict):
    customerId: ObjectId
    startDate: Annotated[str, validation.CalendarDate()]
    onConflict: customer_calendar.ConflictChoice
    repeat: Annotated[bool, Default(False)]


@pages.list
async def programs_page(ctx: Context, query: _Search) -> dict[str, Any]:
    """The programs, by name."""
    page = await programs.list_page(
        ctx, archived=query["archived"], page=query["page"], size=_PAGE_SIZE, keywords=query["keywords"]
    )
    return {"page": page, "page_url": web_pages.list_url(pages.prefix, query)}


@pages.create(form=input_of(_NewProgram, programs.NEW_PROGRAM)())
async def create_program(ctx: Context, form: _NewProgram) -> web_pages.Redirect:
    """Create a program, with the workouts of a text if there is one."""
    program = await programs.create(ctx, take(programs.ProgramInput, form))
    blocks, remarks = await read_program_text(ctx, form["text"], cards.FIELD)
    if blocks:
        await batches.create_blocks(ctx, programs.ProgramPlan(program["_id"]), blocks)
    return web_pages.Redirect(pages.path(program["_id"]), f"{program['name']} created.{remarks}")


@pages.each.get("", access=coach(PROGRAMS.VIEW), template="library/program.html")
async def program_page(ctx: Context, program_id: ObjectId, query: _ProgramQuery) -> dict[str, Any]:
    """A program by week, and the clients it can be assigned to."""
    program, blocks, clients, template_names, running = await gather_reads(
        ctx,
        programs.get(ctx, program_id),
        workouts.list_blocks(ctx, programs.ProgramPlan(program_id), 1, programs.LAST_DAY),
        customers.list_customers(ctx, archived=False, page=1, size=_MAX_CLIENTS, contains=query["client"]),
        cards.list_template_names(ctx),
        list_clients_on(ctx, program_id),
    )
    exercise_ids = {each for block in blocks for item in block["items"] for each in planned_exercise_ids(item)}
    names = await exercises.get_names(ctx, exercise_ids)
    tiles: dict[int, list[dict[str, Any]]] = {}
    for block in blocks:
        described = {**block, "descriptions": describe_items(block["items"], ctx.caller.company.load_unit)}
        tiles.setdefault(block["day"] or 1, []).append(described)
    weeks = {  # those that have a workout, by their number from 1, each with its seven days
        week + 1: [(day, tiles.get(day, [])) for day in range(week * 7 + 1, week * 7 + 8)]
        for week in sorted({(day - 1) // 7 for day in tiles})
    }
    return {
        "program": program,
        "running": running,
        "weeks": weeks,
        "template_names": template_names,
        "next_day": query["day"] or min(blocks[-1]["day"] + 1 if blocks else 1, programs.LAST_DAY),
        "clients": [
            (str(client["_id"]), f"{client['name']} {client['surname'] or ''}".rstrip()) for client in clients["docs"]
        ],
        "client_count": clients["totalDocs"],
        "running_count": len(running),
        "exercises": name_options({each: name["name"] for each, name in names.items()}),
        "last_day_of_weeks": max(weeks, default=1) * 7,
    }


async def list_options(ctx: Context) -> list[tuple[str, str]]:
    """Return the programs that can be assigned as options of a select, at most the first 500 by name."""
    page = await programs.list_page(ctx, archived=False, page=1, size=_MAX_OPTIONS)
    return document_options(page["docs"])


async def list_clients_on(ctx: Context, program_id: ObjectId) -> list[sync.RunningAssignment]:
    """Return the clients who are on a program, if the coach may see clients."""
    return await sync.list_running(ctx, program_id) if CUSTOMERS.VIEW in ctx.caller.permissions else []


@customer_calendar.declare_operation(
    pages.each, "/assign", access=coach(CUSTOMERS.EDIT), locks="customer", form=_Assignment, on=program_page
)
async def assign_program(
    ctx: Context, program_id: ObjectId, form: _Assignment, *, dry_run: bool
) -> customer_calendar.Outcome:
    """Schedule every workout of a program on a client's calendar."""
    customer_id, start_date, on_conflict = form["customerId"], form["startDate"], form["onConflict"]
    is_repeated = on_conflict == "add" and not form["repeat"] and not dry_run
    if is_repeated and await programs.is_assigned(ctx, program_id, customer_id, start_date):
        raise Conflict(
            "This client already has workouts of this program on some of these days, so nothing was scheduled. "
            "Confirm below to schedule them again.",
            code="PROGRAM_ALREADY_ASSIGNED",
        )
    assignment = await assignments.assign(
        ctx, program_id, customer_id, start_date, on_conflict=on_conflict, dry_run=dry_run
    )
    conflicts = assignment["conflicts"]
    untouched = customer_calendar.describe_untouched(conflicts, on_conflict)
    summary = f"{quantity(assignment['blocks'], 'workout')} scheduled{untouched}"
    taken = customer_calendar.describe_taken_days(conflicts, on_conflict)
    return customer_calendar.Outcome(
        None, summary, week_path(customer_id, start_date), taken=taken, customer_id=customer_id
    )


_set_archived = partial(pages.each.act, access=coach(PROGRAMS.EDIT), on=program_page, idempotent=True)
_archive, _restore = (partial(programs.set_archived, archived=archived) for archived in (True, False))
_set_archived("/archive", "archive_program", _archive, "{name} archived.")
_set_archived("/restore", "restore_program", _restore, "{name} restored.")
_duplicate = ("/duplicate", "duplicate_program", programs.duplicate, "{name} created.")
pages.each.act(*_duplicate, access=coach(PROGRAMS.CREATE), on=program_page, to=f"{pages.prefix}/{{_id}}")


class _NewWorkout(programs.ProgramBlockFields, cards.NewWorkoutText):
    """A workout or rest day of a program."""


class _CopyDays(ProgramDays, customer_calendar.CopyOptions):
    """The days of a program to copy, where, how often, and how the sets change."""


_COPY_DAYS = input_of(_CopyDays, ProgramRange)


declare_workout_pages(
    WorkoutOwnerPages(
        pages=pages.each,
        owner_type=programs.ProgramPlan,
        owner_parameter="program_id",
        view=PROGRAMS.VIEW,
        edit=PROGRAMS.EDIT,
        layout="library/program_layout.html",
        layout_variables={"program": programs.require, "running": list_clients_on},
        place_form=programs.PROGRAM_BLOCK_COPY,
        move_range=lambda _: (1, programs.LAST_DAY),
        overview_path=lambda program_id, _: pages.path(program_id),
    )
)


@pages.each.post(
    "/blocks", access=coach(PROGRAMS.EDIT), form=input_of(_NewWorkout, cards.NewWorkoutForm)(), on=program_page
)
async def add_program_workout(ctx: Context, program_id: ObjectId, form: _NewWorkout) -> web_pages.Redirect:
    """Add an empty workout or a rest day to a program."""
    program_path = pages.path(program_id)
    block, remarks = await cards.create_with_text(ctx, programs.ProgramPlan(program_id), form)
    if form["isRest"]:
        return web_pages.Redirect(program_path, f"Day {form['day']} is a rest day.")
    if block["items"]:
        return web_pages.Redirect(program_path, f"{block['name']} added.{remarks}")
    return web_pages.Redirect(
        f"{program_path}/blocks/{block['_id']}", f"{block['name']} added. Add its exercises here."
    )


@customer_calendar.declare_operation(
    pages.each, "/copy-days", access=coach(PROGRAMS.EDIT), form=_COPY_DAYS(), on=program_page
)
async def copy_program_days(
    ctx: Context, program_id: ObjectId, form: _CopyDays, *, dry_run: bool
) -> customer_calendar.Outcome:
    """Copy days of a program, once or several times, with a progression."""
    request = customer_calendar.to_copy_request(form["startDay"], form["endDay"], form["targetDay"], form)
    result = (await schedule.copy_days(ctx, programs.ProgramPlan(program_id), request, dry_run=dry_run)).result
    return customer_calendar.describe_copy(result, form["onConflict"], pages.path(program_id))


async def _count_contents(ctx: Context, program_id: ObjectId) -> dict[str, int]:
    blocks = await workouts.list_blocks(ctx, programs.ProgramPlan(program_id), 1, programs.LAST_DAY)
    return {"workout_count": len(blocks), "item_count": sum(len(block["items"]) for block in blocks)}


pages.change(_PROGRAM_FORM, programs.update, on=pages.page(path="/edit"))
pages.delete(programs.delete, variables=_count_contents)


# --- Bringing clients who are on a program up to date with it: who gets what, and the update --------------------------


_sync = pages.below("/{programId}/sync", locks="program")
_MAX_SYNCED = 500
_ORDER: Sequence[str] = (*sync.SYNCABLE, "same", "done", "past")


class _SyncForm(TypedDict):
    assignmentIds: Annotated[
        list[ObjectId], validation.ListOf(validation.Identifier(), maximum=_MAX_SYNCED), Default(list)
    ]
    include: Annotated[
        list[sync.Syncable],
        validation.ListOf(validation.Choice(*sync.SYNCABLE), maximum=len(sync.SYNCABLE)),
        Default(list),
    ]


@_sync.get("", access=coach(CUSTOMERS.VIEW, PROGRAMS.VIEW), template="library/program_sync.html")
async def program_sync_page(ctx: Context, program_id: ObjectId) -> dict[str, Any]:
    """What an update of the clients who are on a program would change, for each client and state."""
    program, compared = await gather_reads(ctx, programs.require(ctx, program_id), sync.list_states(ctx, program_id))
    return {
        "program": program,
        "compared": compared,
        "order": _ORDER,
        "behind": sum(any(each["state"] in sync.DEFAULT_INCLUDE for each in of_one["blocks"]) for of_one in compared),
        "states": Counter(block["state"] for each in compared for block in each["blocks"]),
        "syncable": sync.SYNCABLE,
        "default_include": sync.DEFAULT_INCLUDE,
    }


@_sync.post("", access=coach(CUSTOMERS.EDIT, PROGRAMS.VIEW), on=program_sync_page, idempotent=True)
async def update_clients_of_program(ctx: Context, program_id: ObjectId, form: _SyncForm) -> web_pages.Redirect:
    """Bring the chosen clients up to date with a program."""
    for name, value in (("assignmentIds", form["assignmentIds"]), ("include", form["include"])):
        if not value:
            raise invalid_field(name, "should not be empty", code="EMPTY")
    result = await program_sync.run(
        ctx, program_id, {"assignmentIds": form["assignmentIds"], "include": form["include"]}
    )
    counts = (result["changed"], "changed"), (result["created"], "added"), (result["removed"], "removed")
    done = [f"{quantity(number, 'workout')} {word}" for number, word in counts if number]
    clients = quantity(len(form["assignmentIds"]) - len(result["failed"]), "client")
    notice = f"{clients} updated: {', '.join(done)}." if done else "Nothing to update."
    if result["failed"]:
        notice += f" {quantity(len(result['failed']), 'client')} could not be updated: try again."
    return web_pages.Redirect(pages.path(program_id), notice)


# --- Making a program of a sheet: a file or a pasted table, its preview with the names of exercises, and the program


_sheets = pages.below("/import")
_MAX_TABLE = 60_000
_MAX_CELLS = 300  # that are corrected at a time; the others after them


class _Sheet(TypedDict):
    name: Annotated[str, validation.Text(allow_blank=True), Default("")]
    table: Annotated[str, validation.Text(max_length=_MAX_TABLE, allow_blank=True), Default("")]
    loadUnit: LoadUnit | None


class _Cell(TypedDict):
    """A cell of the table that could not be read, with another text."""

    line: int
    column: PlanField
    text: Annotated[str, validation.Text(max_length=500, allow_blank=True), Default("")]


class _ProgramForm(TypedDict):
    name: str
    table: Annotated[str, validation.Text(max_length=_MAX_TABLE)]
    loadUnit: LoadUnit
    names: NameRows
    cells: Annotated[list[_Cell], validation.ListOf(fields.Nested(input_of(_Cell)), maximum=_MAX_CELLS), Default(list)]
    unread: Annotated[str, validation.Text(max_length=_MAX_TABLE, allow_blank=True), Default("")]


@_sheets.get("", access=coach(PROGRAMS.CREATE), template="library/program_import.html")
async def sheet_page(_: Context) -> dict[str, Any]:
    """A form for a file or a table, and with one what it would become."""
    return {}


@_sheets.post(
    "/preview",
    access=coach(PROGRAMS.CREATE),
    form=MultipartBody("file", (CSV, XLSX), input_of(_Sheet)(), size_limit="plan", text_bytes=250_000, is_stored=False),
    on=sheet_page,
    idempotent=True,
    file_optional=True,
    request_class="bulk",
)
async def preview_sheet(ctx: Context, form: _Sheet, file: ReceivedFile | None) -> web_pages.Render:
    """Show the program that a sheet would become."""
    if file is None and not form["table"].strip():
        raise invalid_field("file", "must be chosen, or the table pasted below", code="REQUIRED")
    options: program_sheets.ProgramImportOptions = {
        "name": form["name"] or None,
        "names": {},
        "loadUnit": form["loadUnit"],
    }
    content, name = (_content_of(form["table"]), "") if file is None else (file.content, file.name)
    read = await program_sheets.read_sheet(ctx, content, name, options)
    rows = [row for day in read.sheet.days for each in day.exercises for row in each.rows]
    cells = {(row.row.place, name) for row in rows for name in row.left_out}
    others = [each for each in read.sheet.problems if (each["entry"], each["field"]) not in cells]
    unread = "\n".join(f"{each['entry']}: {each['field']} {each['message']}" for each in others)
    return await _show(read, unread[:_MAX_TABLE])


@_sheets.post("/changes", access=coach(PROGRAMS.CREATE), on=sheet_page, has_table=True, idempotent=True)
async def change_sheet(ctx: Context, form: _ProgramForm) -> web_pages.Render:
    """Show the program of a preview with other texts in cells that could not be read."""
    options, corrections = await _changes_of(ctx, form)
    return await _show(
        await program_sheets.read_sheet(ctx, _content_of(form["table"]), "", options, corrections), form["unread"]
    )


@_sheets.post("", access=coach(PROGRAMS.CREATE), on=sheet_page, has_table=True)
async def import_sheet(ctx: Context, form: _ProgramForm) -> web_pages.Redirect:
    """Create the program of a preview."""
    options, corrections = await _changes_of(ctx, form)
    program = await program_sheets.create_program(ctx, _content_of(form["table"]), "", options, corrections)
    days = quantity(program["numberOfDaysWithWorkouts"], "workout day")
    return web_pages.Redirect(pages.path(program["_id"]), f"{program['name']} created with {days}.")


def _content_of(table: str) -> io.BytesIO:
    return io.BytesIO(table.encode())


async def _changes_of(
    ctx: Context, form: _ProgramForm
) -> tuple[program_sheets.ProgramImportOptions, sheet_programs.Corrections]:
    """Return the answers about names and the other texts of cells, as a form has them."""
    corrections: dict[int, dict[PlanField, str]] = {}
    for cell in form["cells"]:
        corrections.setdefault(cell["line"], {})[cell["column"]] = cell["text"]
    options: program_sheets.ProgramImportOptions = {"name": form["name"], "names": {}, "loadUnit": form["loadUnit"]}
    proposed = await program_sheets.read_sheet(ctx, _content_of(form["table"]), "", options, corrections)
    return {**options, "names": changed_answers(proposed.names.names, form["names"])}, corrections


async def _show(read: program_sheets.ReadProgram, unread: str) -> web_pages.Render:
    """Return the preview of a program as a table that the next form sends; `unread`: what else could not be read."""
    if len(table := sheet_programs.write_table(read.sheet, read.unit)) > _MAX_TABLE:
        raise invalid_field("file", "is too long for this page: divide it into several programs", code="TOO_LONG")
    days = (await asyncio.to_thread(sheet_programs.read_program, _content_of(table), read.unit)).days
    numbers = {each["name"]: number for number, each in enumerate(read.names.names) if each["match"] is None}
    weeks: dict[int, list[dict[str, Any]]] = {}
    for day in days:
        empty = [{"number": number, "exercises": None} for number in range(1, 8)]
        week = weeks.setdefault((day.day - 1) // 7 + 1, empty)
        supersets = [day.superset_of(each) for each in day.exercises]
        week[(day.day - 1) % 7] = {
            "number": (day.day - 1) % 7 + 1,
            "name": day.name,
            "exercises": [
                {
                    "name": each.name,
                    "sets": write_planned(each.sets, read.unit),
                    "superset": f"{superset}{supersets[: at + 1].count(superset)}" if superset else "",
                    "notes": ", ".join(each.notes),
                    "unknown": numbers.get(each.name),
                    "cells": [
                        {"line": row.row.line, "column": name, "text": row.cells[name], "problem": problem}
                        for row in each.rows
                        for name, problem in row.left_out.items()
                    ],
                }
                for at, (each, superset) in enumerate(zip(day.exercises, supersets, strict=True))
            ],
        }
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
    return web_pages.Render({"preview": preview}, "The preview is no longer here. Choose the file again.")
