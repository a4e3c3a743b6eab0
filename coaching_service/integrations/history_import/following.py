"""What follows from the sessions of a client that were imported or removed: records, figures, one event."""

from __future__ import annotations

from collections.abc import Sequence

from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.recording import LoggedEvent
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.errors import NotFound
from coaching_service.core.events import EventType, EventValue
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job, company_of
from coaching_service.integrations.background_jobs import service as background_jobs
from coaching_service.integrations.history_import.models import ImportedPeriod
from coaching_service.people.team import service as team
from coaching_service.progress.personal_records import service as personal_records

_IMPORT_OPERATION = "importCompany"
UNDO_OPERATION = "undoImport"


def add_to_period(
    before: ImportedPeriod | None, customer_id: ObjectId, days: Sequence[str], sets: int
) -> ImportedPeriod:
    """Return what was stored for a client or removed, with more sessions: their days, and the number of their sets."""
    known = [before["from"], before["to"]] if before else []
    return {
        "customerId": customer_id,
        "sessions": (before["sessions"] if before else 0) + len(days),
        "sets": (before["sets"] if before else 0) + sets,
        "from": min([*days, *known]),
        "to": max([*days, *known]),
    }


async def follow(
    ctx: Context, import_id: ObjectId, period: ImportedPeriod, event: EventType = "history.imported"
) -> None:
    """Derive a client's records and figures again and report one event, in the caller's transaction.

    Raises NotFound if the client has been erased.
    """
    await personal_records.rebuild_records(ctx, period["customerId"])
    data: dict[str, EventValue] = {
        "importId": import_id,
        "sessions": period["sessions"],
        "sets": period["sets"],
        "from": period["from"],
        "to": period["to"],
    }
    ctx.changes.events.append(LoggedEvent(event, period["customerId"], data, source=period.get("format")))
    ctx.changes.prevent_undo()


async def run_step(services: Services, job: Job) -> None:
    """Follow the sessions of a client that an import had stored, or an undo removed, when it ended early."""
    period: ImportedPeriod = job.arguments["period"]
    import_id: ObjectId = job.arguments["importId"]
    undo_id: ObjectId | None = job.arguments.get("undoId")
    event: EventType = "history.removed" if undo_id else "history.imported"
    operation, job_id = (UNDO_OPERATION, undo_id) if undo_id else (_IMPORT_OPERATION, import_id)
    try:
        owner = await team.get_owner(services, company_of(job))
        ctx = Context(services, operation=operation, batch_id=job_id).acting_as(owner)
        ctx = await background_jobs.as_requested(ctx, await background_jobs.find_readers(ctx, job_id)) or ctx
        await in_transaction(ctx, lambda tx: follow(tx, import_id, period, event))
    except NotFound:  # the client or the company has been erased
        return
