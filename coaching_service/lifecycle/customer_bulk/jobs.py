"""Bulk operations by their names: run in the request, or by a job."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from coaching_service.core.auth import CUSTOMERS, FORMS, METRICS, require_permission
from coaching_service.core.database.context import Context
from coaching_service.core.events import Accepted
from coaching_service.core.fields import names_of, take
from coaching_service.core.idempotency import Claim
from coaching_service.core.ids import ObjectId
from coaching_service.lifecycle.customer_bulk import service
from coaching_service.people import jobs
from coaching_service.people.jobs import Outcome, StoredJob
from coaching_service.progress.check_ins import NewCheckIn
from coaching_service.training.schedule import service as effects

_AT_ONCE = 200
_SCHEDULES_AT_ONCE = 20
_LOOKS, _PAUSE_SECONDS = 20, 0.1

# The operations on schedules, by the operationId.
_SCHEDULES: dict[str, effects.Operation] = {
    "bulkAdjustSchedule": "adjust",
    "bulkReplaceScheduledExercise": "replace-exercise",
    "bulkClearSchedule": "clear",
    "bulkShiftSchedule": "shift",
    "bulkCopySchedule": "copy",
}
# The others. The arguments are the fields of the request without the selection.
_OPERATIONS: dict[str, Callable[[Context, Mapping[str, Any]], Awaitable[service.Operation]]] = {
    "bulkArchiveCustomers": lambda ctx, _: service.archive(ctx, archived=True),
    "bulkUnarchiveCustomers": lambda ctx, _: service.archive(ctx, archived=False),
    "bulkAddGroups": lambda ctx, given: service.add_groups(ctx, given["groups"]),
    "bulkRemoveGroups": lambda ctx, given: service.remove_groups(ctx, given["groups"]),
    "bulkAssignTrainer": lambda ctx, given: service.assign_trainer(ctx, given["coachId"]),
    "bulkAssignProgram": lambda ctx, given: service.assign_program(
        ctx, given["programId"], given["startDate"], given["onConflict"], given.get("weekdays")
    ),
    "bulkAssignMetricsSet": lambda ctx, given: service.assign_metrics_set(ctx, given["metricsSetId"]),
    "bulkSendMessage": service.send_message,
    "bulkCreateCheckIns": lambda ctx, given: service.create_check_in(ctx, take(NewCheckIn, given)),
    "bulkRemindOfForms": lambda ctx, given: service.remind_of_forms(ctx, given.get("formId")),
    "bulkDeleteCustomers": lambda ctx, _: service.erase(ctx),
}

# What the caller needs of the time when a step runs; other operations need CUSTOMERS.EDIT.
_PERMISSIONS: Mapping[str, tuple[str, ...]] = {
    "bulkDeleteCustomers": (CUSTOMERS.DELETE,),
    "bulkAssignMetricsSet": (METRICS.EDIT,),
    "bulkRemindOfForms": (CUSTOMERS.EDIT, FORMS.VIEW),
}


async def execute(ctx: Context, body: service.CustomerSelection, claim: Claim | None) -> service.BulkResult | Accepted:
    """Run the operation `ctx.operation` on the selection in `body`, or queue a job that does.

    A job does it for more than 500 clients, or if the caller prefers one; a dry run never is a job. Raises what the
    operation raises before it changes a client.
    """
    selection = take(service.Selection, body)
    arguments = {name: value for name, value in body.items() if name not in names_of(service.Selection)}
    if not selection["dryRun"]:
        ids = await service.list_selected(ctx, selection)
        if jobs.is_job(ctx, len(ids)):
            return await begin(ctx, ids, arguments, claim)
    return await run_operation(ctx, ctx.operation, selection, arguments, service.Run(claim))


async def run_operation(
    ctx: Context, operation: str, selection: service.Selection, arguments: Mapping[str, Any], run: service.Run
) -> service.BulkResult:
    """Run the operation with this operationId."""
    if (change := _SCHEDULES.get(operation)) is not None:
        return await service.change(ctx, selection, change, arguments, run)
    return await service.run_operation(ctx, selection, await _OPERATIONS[operation](ctx, arguments), run)


async def begin(ctx: Context, ids: list[ObjectId], arguments: Mapping[str, Any], claim: Claim | None) -> Accepted:
    """Queue a job that runs the operation `ctx.operation` on clients. Raises what it raises for no client."""
    await run_operation(ctx, ctx.operation, {"ids": [], "dryRun": True}, arguments, service.Run())
    needed = permissions_of(ctx.operation)
    return await jobs.begin_batch(ctx, "bulk", list(dict.fromkeys(ids)), arguments, claim, permissions=needed)


async def begin_and_wait(
    ctx: Context, ids: list[ObjectId], arguments: Mapping[str, Any], claim: Claim | None
) -> Accepted:
    """Queue a job as `begin`, and return it once it has ended, but within two seconds."""
    accepted = await begin(ctx, ids, arguments, claim)
    for _ in range(_LOOKS):
        if not jobs.is_unfinished(await jobs.get(ctx, accepted.job_id)):
            break
        await asyncio.sleep(_PAUSE_SECONDS)
    return accepted


def permissions_of(operation: str) -> tuple[str, ...]:
    """Return the permissions that an operation needs."""
    return _PERMISSIONS.get(operation, (CUSTOMERS.EDIT,))


async def _process(ctx: Context, job: StoredJob, ids: list[ObjectId], claim: Claim) -> Outcome:
    for permission in permissions_of(ctx.operation):
        require_permission(ctx.caller, permission)
    selection: service.Selection = {"ids": ids, "dryRun": False}
    run = service.Run(claim, is_job=True, total=job["total"])
    result = await run_operation(ctx, ctx.operation, selection, job["work"]["arguments"], run)
    return Outcome(result["ok"], result["failed"], result.get("results"), result.get("skipped"))


STEP = jobs.kind_of_step("bulk")
run_step = jobs.step_of(_process, _AT_ONCE, slow=dict.fromkeys(_SCHEDULES, _SCHEDULES_AT_ONCE))
