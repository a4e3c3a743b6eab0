"""Comparing the calendars of clients with their program, and bringing them up to date, over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS, PROGRAMS
from coaching_service.core.database.context import Context
from coaching_service.core.field_schemas import input_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.idempotency import Claim
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import DryRun
from coaching_service.lifecycle.program_sync import service
from coaching_service.lifecycle.program_sync.models import ProgramSyncResult
from coaching_service.training.assignments import sync
from coaching_service.training.assignments.sync_models import AssignmentSync, ProgramSyncRequest

routes = Routes("/coach/programs/{programId}/sync", tag="Programs")


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
    return await service.run(ctx, program_id, body, dry_run=body["dryRun"], claim=claim)
