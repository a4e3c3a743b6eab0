"""Making a program of a sheet: a file or a pasted table, its preview with the names of exercises, and the program."""

from __future__ import annotations

import io
from typing import Annotated, Any, TypedDict

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import PROGRAMS
from coaching_service.core.database.context import Context
from coaching_service.core.errors import invalid_field
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default
from coaching_service.core.http.routes import MultipartBody, ReceivedFile
from coaching_service.core.media import CSV, XLSX
from coaching_service.core.validation import Text
from coaching_service.integrations.history_files.programs import PlannedDay, write_table
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


class _Sheet(TypedDict):
    name: Annotated[str, Text(allow_blank=True), Default("")]
    table: Annotated[str, Text(max_length=_MAX_TABLE, allow_blank=True), Default("")]
    loadUnit: LoadUnit | None


class _ProgramForm(TypedDict):
    name: str
    table: Annotated[str, Text(max_length=_MAX_TABLE)]
    loadUnit: LoadUnit
    names: NameRows


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
    content, name = _content_of(form["table"]) if file is None else (file.content, file.name)
    read = await service.read_sheet(ctx, content, name, options)
    if len(table := write_table(read.sheet, read.unit)) > _MAX_TABLE:
        raise invalid_field("file", "is too long for this page: divide it into several programs", code="TOO_LONG")
    return Render({"preview": _present(read, table)}, "The preview is no longer here. Choose the file again.")


@pages.post("", access=coach(PROGRAMS.CREATE), on=sheet_page, has_table=True)
async def import_sheet(ctx: Context, form: _ProgramForm) -> Redirect:
    """Create the program of a preview."""
    options: ProgramImportOptions = {"name": form["name"], "names": {}, "loadUnit": form["loadUnit"]}
    proposed = (await service.read_sheet(ctx, *_content_of(form["table"]), options)).names.names
    options["names"] = changed_answers(proposed, form["names"])
    program = await service.import_program(ctx, *_content_of(form["table"]), options)
    days = quantity(program["numberOfDaysWithWorkouts"], "workout day")
    return Redirect(f"/app/programs/{program['_id']}", f"{program['name']} created with {days}.")


def _content_of(table: str) -> tuple[io.BytesIO, str]:
    return io.BytesIO(table.encode()), ""


def _present(read: ReadProgram, table: str) -> dict[str, Any]:
    sheet = read.sheet
    weeks: dict[int, list[dict[str, Any]]] = {}
    for day in sheet.days:
        weeks.setdefault((day.day - 1) // 7 + 1, []).append(_present_day(day, read.unit))
    return {
        "name": read.name,
        "unit": read.unit,
        "table": table,
        "weeks": weeks,
        "facts": [
            quantity(sum(bool(day.exercises) for day in sheet.days), "workout"),
            quantity(sum(len(day.exercises) for day in sheet.days), "exercise"),
        ],
        "names": [show_name(each, may_create=True) for each in read.names.names],
        "new_count": sum(each["answer"] == CREATE for each in read.names.names),
        "problems": sheet.problems,
    }


def _present_day(day: PlannedDay, unit: str) -> dict[str, Any]:
    return {
        "number": (day.day - 1) % 7 + 1,
        "name": day.name,
        "isRest": day.is_rest,
        "lines": [
            (each.name, write_planned(each.sets, unit), day.superset_of(each), ", ".join(each.notes))
            for each in day.exercises
        ],
    }
