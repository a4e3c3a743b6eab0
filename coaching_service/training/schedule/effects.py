"""One operation on the calendar of a client among many: what it changes, what it leaves alone, and why.

The access of the caller to the client has been checked. `fields` are those of the operation on one client.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.training.schedule import service
from coaching_service.training.schedule.models import CopyRequest, PlacedBlock, ProgressionChanges, SkippedBlock
from coaching_service.training.workouts.blocks import service as blocks
from coaching_service.training.workouts.blocks.owners import ClientCalendar

Operation = Literal["adjust", "replace-exercise", "clear", "shift", "copy"]
Fields = Mapping[str, Any]


@dataclass(frozen=True)
class Effect:
    """The blocks that an operation changes on a calendar, those it leaves alone, and what a progression changes."""

    changed: list[PlacedBlock]
    skipped: list[SkippedBlock]
    progression: ProgressionChanges | None = None


async def apply(
    ctx: Context, operation: Operation, customer_id: ObjectId, fields: Fields, *, dry_run: bool = False
) -> Effect:
    """Do an operation, or with `dry_run` decide the same and write nothing. Raises as the operation on one client."""
    return await _OPERATIONS[operation](ctx, ClientCalendar(customer_id), fields, dry_run)


async def check(ctx: Context, operation: Operation, fields: Fields) -> None:
    """Raise NotFound for exercises in `fields` that the company does not have."""
    if operation == "replace-exercise":
        await exercises.require_known(ctx, fields["exerciseId"])
        await exercises.require(ctx, [fields["withExerciseId"]])
        service.require_another(fields["exerciseId"], fields["withExerciseId"])
    if progression := fields.get("progression"):
        await service.require_exercises(ctx, progression)


async def _adjust(ctx: Context, calendar: ClientCalendar, fields: Fields, dry_run: bool) -> Effect:
    days = fields["startDate"], fields["endDate"]
    outcome = await service.adjust_accessible(ctx, calendar, *days, fields["progression"], dry_run=dry_run)
    return Effect(outcome.affected, outcome.skipped, outcome.result)


async def _replace_exercise(ctx: Context, calendar: ClientCalendar, fields: Fields, dry_run: bool) -> Effect:
    swap, days = (fields["exerciseId"], fields["withExerciseId"]), (fields["startDate"], fields["endDate"])
    outcome = await service.replace_accessible(ctx, calendar, *swap, *days, fields.get("load", "keep"), dry_run=dry_run)
    return Effect(outcome.affected, outcome.skipped)


async def _clear(ctx: Context, calendar: ClientCalendar, fields: Fields, dry_run: bool) -> Effect:
    outcome = await service.clear_accessible(ctx, calendar, fields["startDate"], fields["endDate"], dry_run=dry_run)
    return Effect(outcome.affected, outcome.skipped)


async def _shift(ctx: Context, calendar: ClientCalendar, fields: Fields, dry_run: bool) -> Effect:
    moved, stay = await blocks.shift_accessible(ctx, calendar, fields["from"], fields["days"], dry_run=dry_run)
    changed: list[PlacedBlock] = [{"day": str(block["date"]), "name": block["name"]} for block in moved]
    skipped: list[SkippedBlock] = [
        {"day": str(block["date"]), "name": block["name"], "wblockId": block["_id"], "code": "DONE"} for block in stay
    ]
    return Effect(changed, skipped)


async def _copy(ctx: Context, calendar: ClientCalendar, fields: Fields, dry_run: bool) -> Effect:
    days = fields["startDate"], fields["endDate"], fields["targetDate"]
    request = CopyRequest(*days, fields["repeat"], fields["progression"], fields["onConflict"])
    outcome = await service.copy_accessible(ctx, calendar, request, dry_run=dry_run)
    return Effect(outcome.affected, outcome.skipped, outcome.result)


_OPERATIONS: Mapping[Operation, Callable[[Context, ClientCalendar, Fields, bool], Awaitable[Effect]]] = {
    "adjust": _adjust,
    "replace-exercise": _replace_exercise,
    "clear": _clear,
    "shift": _shift,
    "copy": _copy,
}
