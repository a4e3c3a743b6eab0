"""Operations on the schedules of many clients: each client in a transaction of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.lifecycle.customer_bulk import service
from coaching_service.lifecycle.customer_bulk.models import (
    BulkFailure,
    BulkResult,
    ClientChange,
    Selection,
    SkippedWorkout,
)
from coaching_service.lifecycle.customer_bulk.service import Operation, Run
from coaching_service.people.customers import bulk
from coaching_service.training.schedule import effects
from coaching_service.training.schedule.effects import Effect
from coaching_service.training.workouts.reports import exercises as exercise_reports

_BATCH = 1
# The skipped workouts that the result of one operation lists, so that a job remains small enough to be stored.
_MAX_LISTED = 100_000


async def change(
    ctx: Context, selection: Selection, operation: effects.Operation, fields: Mapping[str, Any], run: Run
) -> BulkResult:
    """Do an operation on the schedule of each client, and return what changed of each.

    Raises NotFound for an exercise or program that the company does not have.
    """
    await effects.check(ctx, operation, fields)
    ids = await service.list_selected(ctx, selection) if "ids" not in selection else selection["ids"]
    listed = _MAX_LISTED // max(len(ids), run.total, 1)

    async def report(tx: Context, customer_id: ObjectId, dry_run: bool) -> ClientChange:
        effect = await effects.apply(tx, operation, customer_id, fields, dry_run=dry_run)
        return _summarize(customer_id, effect, listed)

    selected: Selection = {"ids": ids, "dryRun": selection["dryRun"]}
    return await service.run_operation(ctx, selected, Operation(report=report, batch_size=_BATCH), run)


@dataclass(frozen=True)
class Preview:
    """What an operation would do to each client: the effects by client, and those who could not be changed."""

    effects: dict[ObjectId, Effect]
    failed: list[BulkFailure]


async def preview(
    ctx: Context, ids: list[ObjectId], operation: effects.Operation, fields: Mapping[str, Any]
) -> Preview:
    """Return what an operation would do to clients; writes nothing. Raises as `change`."""
    await effects.check(ctx, operation, fields)
    by_client: dict[ObjectId, Effect] = {}  # by client, as a transaction may be repeated

    async def report(tx: Context, customer_id: ObjectId, dry_run: bool) -> ClientChange:
        by_client[customer_id] = await effects.apply(tx, operation, customer_id, fields, dry_run=dry_run)
        return _summarize(customer_id, by_client[customer_id], 0)

    selected: Selection = {"ids": ids, "dryRun": True}
    result = await service.run_operation(ctx, selected, Operation(report=report, batch_size=_BATCH), Run())
    return Preview(by_client, result["failed"])


async def list_planned_for(ctx: Context, exercise_id: ObjectId) -> list[ObjectId]:
    """Return the active clients in the coach's scope on whose calendars an exercise is, from today on."""
    today = str(ctx.caller.today())
    return [
        customer_id
        async for ids in bulk.iterate_matching(ctx, {"archived": False}, service.BATCH)
        for customer_id in await exercise_reports.find_planned_for(ctx, ids, exercise_id, today)
    ]


def _summarize(customer_id: ObjectId, effect: Effect, listed: int) -> ClientChange:
    skipped: list[SkippedWorkout] = [{"wblockId": block["wblockId"], "code": block["code"]} for block in effect.skipped]
    summary: ClientChange = {"customerId": customer_id, "changed": len(effect.changed), "skipped": skipped[:listed]}
    return {**summary, "moreSkipped": len(skipped) - listed} if len(skipped) > listed else summary
