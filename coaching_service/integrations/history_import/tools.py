"""Training history for assistants: rows that they have read from a file or a picture; and the undo over REST."""

from __future__ import annotations

from collections.abc import Sequence

from marshmallow import fields

from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict
from coaching_service.core.fields import input_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import Arguments, CustomerArgument, Reason, Tools, Written, optional, typed
from coaching_service.core.validation import Boolean, Choice, ListOf
from coaching_service.integrations import background_jobs
from coaching_service.integrations.history_import import importing, undoing
from coaching_service.integrations.history_import.models import NO_ANSWERS, ImportAnswers
from coaching_service.library.imported_names import CREATE
from coaching_service.people import jobs
from coaching_service.people.account import LoadUnit
from coaching_service.people.customers import service as customers

tools = Tools()
MAX_ROWS = 200
_SHOWN = 20


class ImportRows(CustomerArgument):
    """The client, and the sets that were done."""

    rows = ListOf(
        fields.Nested(input_of(importing.RowToImport, Arguments)),
        minimum=1,
        maximum=MAX_ROWS,
        required=True,
        metadata={"description": "The rows.", "minItems": 1, "maxItems": MAX_ROWS},
    )
    loadUnit = Choice("kg", "lb", **optional("Required with loads."))
    dryRun = Boolean(load_default=False, metadata={"description": "true only says what would be imported."})


@tools.tool(
    "Import training history",
    access=coach(CUSTOMERS.EDIT),
    takes=ImportRows(),
    writes=True,
    locks="customer",
    confirms=(Reason.HISTORY,),
)
async def import_rows(
    ctx: Context,
    customer_id: ObjectId,
    rows: Sequence[importing.RowToImport],
    load_unit: LoadUnit | None,
    *,
    dry_run: bool,
) -> Written:
    """Import sets that a client did in the past: up to 200 rows. Send them with dryRun first: it says what the names of
    exercises mean, which become new exercises, and what is left out. Sessions that exist stay as they are."""
    customer = await customers.get_visible_reference(ctx, customer_id)
    answers: ImportAnswers = {**NO_ANSWERS, "customerId": customer_id, "loadUnit": load_unit}
    imported = await importing.import_rows(ctx, rows, answers, dry_run=dry_run)
    result = imported.result
    created, names = result["created"], result["names"]
    sets, sessions = (f"{created[name]} {name[:-1] if created[name] == 1 else name}" for name in ("sets", "sessions"))
    period = f" from {result['from']} to {result['to']}" if result["from"] else ""
    known = [f"{typed(each['name'])} is {typed(each['match']['name'])}" for each in names if each["match"]]
    new = [typed(each["name"]) for each in names if each["answer"] == CREATE]
    # Row 1 is in line 2 of the file that is made of them.
    of_rows = [(line - 1, each) for each in imported.problems if (line := each.get("line")) is not None]
    described = [
        f"row {number}: {each['field'] + ' ' if each['field'] else ''}{each['message']}"
        for number, each in of_rows[:_SHOWN]
    ]
    more = f" and {len(of_rows) - _SHOWN} more" if len(of_rows) > _SHOWN else ""
    text = " ".join(
        [
            f"{'Would import' if dry_run else 'Imported'} {sets} in {sessions}{period} for {typed(customer['name'])}.",
            *([f"{'; '.join(known[:_SHOWN])}."] if known else []),
            *([f"New exercises: {', '.join(new[:_SHOWN])}."] if new else []),
            *(f"Open: {each['message']}" for each in result["questions"]),
            *([f"Left out: {'; '.join(described)}{more}."] if described else []),
            *(f"The file {each['message']}." for each in imported.problems if each.get("line") is None),
        ]
    )
    return Written(
        text,
        {"jobId": imported.job_id},
        () if dry_run or not created["sessions"] else (Reason.HISTORY,),
        details={"rows": result["rows"], "imported": result["imported"], "reported": result["reported"], **created},
        unlogged=imported.sessions,
    )


# --- The undo of an import over REST ----------------------------------------------------------------------------------


routes = Routes("/coach/jobs", tag="Export", path_descriptions={"jobId": "The job of the import."})


@routes.post("/{jobId}/undo", access=coach(), returns=background_jobs.BACKGROUND_JOB, status=202, errors=(Conflict,))
async def undo_import(ctx: Context, job_id: ObjectId) -> jobs.StoredJob:
    """Undo the import of a table of training history or clients.

    It begins after the response, as a job: what the import created is removed, unless it has been changed or used
    since; `failed` of the result has what stays. Records and figures of the clients follow. An import of an export of
    a company, one that has not ended, and one that has stored nothing cannot be undone. Needs what requesting the
    import needs: `customers.edit` for the history of one client, else the owner.
    """
    return await undoing.begin(ctx, job_id)
