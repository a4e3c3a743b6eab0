"""One change to many clients: in batches of one transaction each, each client is changed completely or not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from coaching_service.core import idempotency
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import ServiceError
from coaching_service.core.idempotency import Claim, IdempotencyKeyReused
from coaching_service.core.ids import ObjectId
from coaching_service.library.metric_sets import service as metric_sets
from coaching_service.lifecycle.customer_bulk.models import (
    BulkAssignmentResult,
    BulkResult,
    CustomerConflict,
    Failure,
    Selection,
)
from coaching_service.people.customers import bulk
from coaching_service.people.team import service as team
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.metrics import service as metrics
from coaching_service.training.assignments import service as assignments
from coaching_service.training.programs import service as programs
from coaching_service.training.schedule.models import OnConflict, ScheduleConflict

BATCH = 1_000
# Assigning a program writes many blocks for each client, so it takes one client at a time.
_PROGRAM_BATCH = 1
# Sending a message writes to several documents of each client, which are locked until all of the batch are written.
_MESSAGE_BATCH = 20
_MAX_CONFLICTING = 1_000

Apply = Callable[[Context, list[ObjectId]], Awaitable[None]]
# Returns the clients to whom the change cannot be applied, each with the reason.
FindInvalid = Callable[[Context, list[ObjectId]], Awaitable[dict[ObjectId, str]]]
# Called after each batch with the result so far.
OnProgress = Callable[["Result"], Awaitable[None]]


@dataclass
class Result:
    """The result so far."""

    requested: int = 0
    ok: int = 0
    failed: list[Failure] = field(default_factory=list)

    def add_failure(self, customer_id: ObjectId, code: str, message: str) -> None:
        """Add a client who was not changed."""
        self.failed.append({"customerId": customer_id, "code": code, "message": message})

    def to_response(self) -> BulkResult:
        """Return the result as interfaces return it."""
        return {"requested": self.requested, "ok": self.ok, "failed": self.failed}


# --- operations ------------------------------------------------------------------------------------------------------


async def list_selected(ctx: Context, selection: Selection) -> list[ObjectId]:
    """Return the identifiers of the clients that a selection matches now, ascending."""
    return sorted([customer_id async for ids in _iterate_selected(ctx, selection) for customer_id in ids])


async def archive(
    ctx: Context, selection: Selection, *, archived: bool, on_progress: OnProgress | None = None
) -> BulkResult:
    """Archive or restore clients."""
    return await _run(ctx, selection, lambda tx, ids: bulk.set_archived(tx, ids, archived=archived), on_progress)


async def add_groups(
    ctx: Context, selection: Selection, groups: list[str], *, on_progress: OnProgress | None = None
) -> BulkResult:
    """Add clients to groups; a client who would be in too many groups fails."""

    async def find_invalid(ctx: Context, ids: list[ObjectId]) -> dict[ObjectId, str]:
        return await bulk.find_over_group_limit(ctx, ids, groups)

    return await _run(
        ctx, selection, lambda tx, ids: bulk.add_groups(tx, ids, groups), on_progress, find_invalid=find_invalid
    )


async def remove_groups(
    ctx: Context, selection: Selection, groups: list[str], *, on_progress: OnProgress | None = None
) -> BulkResult:
    """Remove clients from groups."""
    return await _run(ctx, selection, lambda tx, ids: bulk.remove_groups(tx, ids, groups), on_progress)


async def assign_trainer(
    ctx: Context, selection: Selection, coach_id: ObjectId | None, *, on_progress: OnProgress | None = None
) -> BulkResult:
    """Assign clients to a coach; None leaves them without a trainer. Raises NotFound if there is no such coach."""

    async def require_coach(ctx: Context) -> None:
        if coach_id is not None:
            await team.require_coach(ctx, coach_id)

    async def assign(ctx: Context, ids: list[ObjectId]) -> None:
        await require_coach(ctx)  # in each transaction: the coach may be removed meanwhile
        await bulk.assign_trainer(ctx, ids, coach_id)

    await require_coach(ctx)
    return await _run(ctx, selection, assign, on_progress)


async def assign_program(
    ctx: Context,
    selection: Selection,
    program_id: ObjectId,
    start: str,
    on_conflict: OnConflict,
    *,
    claim: Claim | None = None,
    on_progress: OnProgress | None = None,
) -> BulkAssignmentResult:
    """Assign a program to clients from the date `start` on.

    A dry run returns the blocks that are on its days. Clients to whom it has been assigned under the same `claim` are
    counted as changed. Raises what programs.plan
    raises, and IdempotencyKeyReused if the claim belongs to another request.
    """
    plan = await programs.load_dated(ctx, program_id, start)
    conflicts: dict[ObjectId, list[ScheduleConflict]] = {}  # by client, as a transaction may be repeated

    async def assign(ctx: Context, ids: list[ObjectId]) -> None:
        for customer_id in ids:
            if claim is None or await idempotency.claim_step(ctx, claim, customer_id):
                await assignments.add_to_calendar(ctx, plan, customer_id, on_conflict=on_conflict)

    async def preview(ctx: Context, ids: list[ObjectId]) -> None:
        for customer_id in ids:
            result = await assignments.add_to_calendar(ctx, plan, customer_id, on_conflict=on_conflict, dry_run=True)
            if result["conflicts"] and len(conflicts) < _MAX_CONFLICTING:
                conflicts[customer_id] = result["conflicts"]

    result = await _run(ctx, selection, assign, on_progress, batch_size=_PROGRAM_BATCH, preview=preview)
    if not conflicts:
        return cast("BulkAssignmentResult", result)
    named = [
        cast("CustomerConflict", {"customerId": customer_id, **conflict})
        for customer_id, of_client in conflicts.items()
        for conflict in of_client
    ]
    return {**result, "conflicts": named}


async def assign_metrics_set(
    ctx: Context, selection: Selection, set_id: ObjectId, *, on_progress: OnProgress | None = None
) -> BulkResult:
    """Assign a metric set to clients. Raises NotFound if there is no such set."""
    await metric_sets.read(ctx, set_id)
    return await _run(ctx, selection, lambda tx, ids: metrics.assign_many(tx, ids, set_id), on_progress)


async def send_message(
    ctx: Context,
    selection: Selection,
    text: str,
    *,
    claim: Claim | None = None,
    on_progress: OnProgress | None = None,
) -> BulkResult:
    """Send a message to clients.

    Clients to whom it has been sent under the same `claim` are counted as changed. Raises IdempotencyKeyReused if the
    claim belongs to another request.
    """

    async def send(ctx: Context, ids: list[ObjectId]) -> None:
        unsent = [each for each in ids if claim is None or await idempotency.claim_step(ctx, claim, each)]
        await conversation.send_to_each(ctx, unsent, text)

    return await _run(ctx, selection, send, on_progress, batch_size=_MESSAGE_BATCH)


async def erase(ctx: Context, selection: Selection, *, on_progress: OnProgress | None = None) -> BulkResult:
    """Delete clients and queue the erasure of the rest of their data."""
    return await _run(ctx, selection, bulk.erase, on_progress)


# --- batches ---------------------------------------------------------------------------------------------------------


async def _apply_nothing(_ctx: Context, _ids: list[ObjectId]) -> None:
    """Do nothing: most changes need no preview."""


async def _all_valid(_ctx: Context, _ids: list[ObjectId]) -> dict[ObjectId, str]:
    return {}


async def _run(
    ctx: Context,
    selection: Selection,
    apply: Apply,
    on_progress: OnProgress | None,
    *,
    batch_size: int = BATCH,
    find_invalid: FindInvalid = _all_valid,
    preview: Apply = _apply_nothing,
) -> BulkResult:
    """Apply a change to the selected clients in batches, or in a dry run its `preview`, which writes nothing."""
    result = Result()
    apply = preview if selection["dryRun"] else apply
    ctx = replace(ctx, batch_id=ObjectId())
    async for ids in _iterate_selected(ctx, selection):
        result.requested += len(ids)
        for start in range(0, len(ids), batch_size):
            batch = ids[start : start + batch_size]
            await _run_batch(ctx, batch, apply, find_invalid, result)
            if on_progress is not None:
                await on_progress(result)
    return result.to_response()


async def _run_batch(
    ctx: Context, ids: list[ObjectId], apply: Apply, find_invalid: FindInvalid, result: Result
) -> None:
    """Apply the change to a batch in one transaction, and add what happened to each client to the result."""
    try:
        failures = await _apply(ctx, ids, apply, find_invalid)
    except IdempotencyKeyReused:
        raise
    except ServiceError as error:
        for customer_id in ids:
            result.add_failure(customer_id, error.reason.upper().replace(" ", "_"), str(error.message))
        return
    for customer_id in ids:
        if customer_id in failures:
            result.add_failure(customer_id, *failures[customer_id])
        else:
            result.ok += 1


@transactional
async def _apply(
    ctx: Context, ids: Sequence[ObjectId], apply: Apply, find_invalid: FindInvalid
) -> dict[ObjectId, tuple[str, str]]:
    """Apply the change to those of `ids` that it can be applied to; returns code and message for the others.

    Access is checked in the transaction of the change, so that every client who is counted has been changed.
    """
    accessible = await bulk.find_accessible(ctx, list(ids))
    allowed = [customer_id for customer_id in ids if accessible.get(customer_id)]
    invalid = await find_invalid(ctx, allowed)
    valid = [customer_id for customer_id in allowed if customer_id not in invalid]
    if valid:
        await apply(ctx, valid)
    failures = {customer_id: ("BAD_REQUEST", message) for customer_id, message in invalid.items()}
    for customer_id in ids:
        if customer_id not in accessible:
            failures[customer_id] = ("NOT_FOUND", "Customer not found")
        elif not accessible[customer_id]:
            failures[customer_id] = ("FORBIDDEN", "This client is assigned to another coach")
    return failures


async def _iterate_selected(ctx: Context, selection: Selection) -> AsyncIterator[list[ObjectId]]:
    """Yield the selected identifiers, each once, in batches; a filter selects only clients in the coach's scope."""
    if "ids" in selection:
        requested = list(dict.fromkeys(selection["ids"]))
        for start in range(0, len(requested), BATCH):
            yield requested[start : start + BATCH]
        return
    excluded = set(selection.get("excludeIds", ()))
    async for ids in bulk.iterate_matching(ctx, selection["filter"], BATCH):
        yield [customer_id for customer_id in ids if customer_id not in excluded]
