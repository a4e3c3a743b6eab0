"""Imports of programs over REST."""

from __future__ import annotations

from coaching_service.core.auth import PROGRAMS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import MultipartBody, ReceivedFile, Routes
from coaching_service.core.media import CSV, XLSX
from coaching_service.integrations.program_sheets import service
from coaching_service.integrations.program_sheets.models import (
    IMPORTED_PROGRAM,
    ImportedProgram,
    ProgramImportFields,
)

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
    return await service.import_program(ctx, content, name, body)
