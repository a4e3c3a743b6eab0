"""Bringing the calendars of all clients who are on a program up to date: one client after another, as one batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated

from coaching_service.core.auth import CUSTOMERS, PROGRAMS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.fields import Description, input_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.idempotency import Claim
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import DryRun
from coaching_service.lifecycle.customer_bulk import service as customer_bulk
from coaching_service.lifecycle.customer_bulk.service import BulkFailure, Operation, Run, Selection
from coaching_service.training.assignments import sync
from coaching_service.training.assignments.sync import AssignmentSync, ProgramSyncRequest, SyncChoice, SyncResult

# --- The result of bringing clients up to date with a program ---------------------------------------------------------


class ProgramSyncResult(SyncResult):
    """How many workouts were brought up to date, or with `dryRun` would be."""

    failed: Annotated[list[BulkFailure], Description("The clients whose calendars were not changed at all, and why.")]


async def run(
    ctx: Context,
    program_id: ObjectId,
    request: ProgramSyncRequest,
    *,
    dry_run: bool = False,
    claim: Claim | None = None,
) -> ProgramSyncResult:
    """Bring current and upcoming assignments of a program up to date; each client gets all of it or nothing.

    Within a transaction it is all clients or none. Nothing that is done, past or before `from` is changed. With
    `dry_run` nothing is written. Raises NotFound for the program and the assignments, and Forbidden for clients
    outside the caller's scope.
    """
    program = await sync.load_program(ctx, program_id)
    by_client = await sync.select_clients(ctx, program_id, request.get("assignmentIds"))
    choice = SyncChoice(request["include"], request.get("from"))
    counts: dict[ObjectId, Counter[str]] = {}  # by client, as a transaction may be repeated

    async def bring_up_to_date(tx: Context, ids: list[ObjectId]) -> None:
        for customer_id in ids:
            assignment_ids = by_client[customer_id]
            counts[customer_id] = await sync.sync_client(
                tx, program, customer_id, assignment_ids, choice, dry_run=dry_run
            )

    if ctx.session is not None:  # of a form or a tool: all clients or none
        await bring_up_to_date(ctx, list(by_client))
        return _present(counts, [], None if dry_run else ctx.change_id, dry_run=dry_run)
    operation = Operation(bring_up_to_date, batch_size=1, preview=bring_up_to_date)
    selected: Selection = {"ids": list(by_client), "dryRun": dry_run}
    result = await customer_bulk.run_operation(ctx, selected, operation, Run(claim))
    return _present(counts, result["failed"], next(iter(ctx.change_ids), None), dry_run=dry_run)


def _present(
    counts: Mapping[ObjectId, Counter[str]], failed: list[BulkFailure], change_id: ObjectId | None, *, dry_run: bool
) -> ProgramSyncResult:
    total = sum(counts.values(), Counter[str]())
    return {
        "changed": total["changed"],
        "created": total["created"],
        "removed": total["removed"],
        "kept": total["unchanged"],
        "failed": failed,
        "dryRun": dry_run,
        "changeId": change_id,
    }


# --- Comparing the calendars of clients with their program, and bringing them up to date, over REST -------------------


routes = Routes("/coach/programs/{programId}/sync", tag="Programs", locks="program")


class _DryProgramSync(ProgramSyncRequest):
    dryRun: bool


@routes.get("", access=coach(CUSTOMERS.VIEW, PROGRAMS.VIEW))
async def get_program_sync(ctx: Context, program_id: ObjectId) -> list[AssignmentSync]:
    """Compare the calendars of the clients who are on a program with it.

    Every workout of each current or upcoming assignment, by date. Clients outside the coach's scope, and archived ones,
    are left out.
    """
    return await sync.list_states(ctx, program_id)


@routes.post(
    "",
    access=coach(CUSTOMERS.EDIT, PROGRAMS.VIEW),
    status=200,
    body=input_of(ProgramSyncRequest, DryRun)(),
    body_optional=True,
    resumable=True,
    example={"include": ["changed", "new"], "dryRun": True},
)
async def sync_program(
    ctx: Context, program_id: ObjectId, body: _DryProgramSync, claim: Claim | None
) -> ProgramSyncResult:
    """Bring the calendars of the clients who are on a program up to date.

    Workouts with anything done, before the client's local date, or before `from` are never changed; customised ones
    only if they are included. It is one batch, which one undo takes back.
    """
    return await run(ctx, program_id, body, dry_run=body["dryRun"], claim=claim)
