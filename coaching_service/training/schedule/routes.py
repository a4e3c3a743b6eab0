"""Operations on many days of a schedule over REST."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from marshmallow import Schema

from coaching_service.core.auth import CUSTOMERS, PROGRAMS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.errors import NotFound
from coaching_service.core.http.routes import Handler, Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.independent_entries import BatchResult
from coaching_service.core.validation import complete_upsert
from coaching_service.training.programs import PROGRAM, Program, ProgramPlan
from coaching_service.training.schedule import models, service
from coaching_service.training.schedule.models import AdjustedSchedule, ClearedSchedule, WorkoutBlockBatch
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks.models import SCHEDULED_WORKOUT_BLOCK
from coaching_service.training.workouts.blocks.service import ClientCalendar, ScheduleOwner

routes = Routes("/coach/customers/{customerId}", tag="Schedule", locks="customer")
library_routes = Routes("/coach/programs", tag="Programs")
program_routes = Routes("/coach/programs/{programId}", tag="Schedule", locks="program")

_EXERCISE = "66f0c0ffee0000000000abcd"
_ITEM = {
    "type": "EXERCISE",
    "exerciseId": _EXERCISE,
    "exerciseSets": [{"type": "reps_load", "minPlannedReps": 8, "maxPlannedReps": 10, "load": 60}],
}
_WEEK = {"startDate": "2026-03-02", "endDate": "2026-03-08"}
_PROGRESSION = {"load": {"add": 2.5}}


def _declare_change(path: str, body: Schema, returns: Any, **options: Any) -> Callable[[Handler], Handler]:
    """Declare an operation that changes a client's calendar and creates nothing."""
    return routes.post(path, access=coach(CUSTOMERS.EDIT), status=200, body=body, returns=returns, **options)


@routes.post(
    "/wblocks/batch",
    access=coach(CUSTOMERS.EDIT),
    body=models.WORKOUT_BLOCK_BATCH(),
    returns=models.SCHEDULE_CHANGE,
    rejects_unknown_fields=True,
    request_class="bulk",
    example={
        "blocks": [
            {"name": "Push", "date": "2026-03-02", "items": [_ITEM]},
            {"name": "Rest", "date": "2026-03-03", "isRest": True},
        ]
    },
)
async def create_workout_blocks(ctx: Context, customer_id: ObjectId, body: WorkoutBlockBatch) -> models.ScheduleResult:
    """Schedule many workout blocks with their items.

    All or nothing; a message about an item names it (`blocks.1.items.2.exerciseId`). Unknown fields are 400.
    """
    return await service.create_blocks(ctx, ClientCalendar(customer_id), body["blocks"], dry_run=body["dryRun"])


@routes.post(
    "/wblocks/upsert",
    access=coach(CUSTOMERS.EDIT),
    status=200,
    body=models.WORKOUT_BLOCK_UPSERTS(),
    rolls_back=True,
    rejects_unknown_fields=True,
    request_class="bulk",
    example={"blocks": [{"externalId": "watch:2026-03-02", "name": "Push", "date": "2026-03-02"}]},
)
async def upsert_workout_blocks(ctx: Context, customer_id: ObjectId, body: models.WorkoutBlockUpserts) -> BatchResult:
    """Create or change up to 100 workout blocks by their external identifiers.

    Each entry is saved whole or not at all, whatever the others are: as by PUT with its `externalId`, so that what a
    block has already is no change. `results` has the version of each block, or the errors of its entry. Unknown fields
    are 400.
    """
    complete = partial(complete_upsert, SCHEDULED_WORKOUT_BLOCK())
    return await batches.upsert_many(ctx, ClientCalendar(customer_id), body["blocks"], body["onConflict"], complete)


@routes.post(
    "/schedule/copy",
    access=coach(CUSTOMERS.EDIT),
    body=models.SCHEDULE_COPY(),
    errors=(NotFound,),
    example={**_WEEK, "targetDate": "2026-03-09", "progression": _PROGRESSION},
    on_worker_thread=True,
)
async def copy_schedule(ctx: Context, customer_id: ObjectId, body: models.ScheduleCopy) -> models.CopiedSchedule:
    """Copy days of a client's calendar.

    Items of every type, rest days and order are copied, with nothing done. With `repeat` the copies follow one another;
    the first applies the progression once, the second twice, and so on, rounded each time.
    """
    days = body["startDate"], body["endDate"], body["targetDate"]
    return await _copy(ctx, ClientCalendar(customer_id), days, body)


@_declare_change(
    "/schedule/adjust",
    models.SCHEDULE_ADJUSTMENT(),
    models.ADJUSTED_LOADS,
    example={**_WEEK, "progression": _PROGRESSION},
)
async def adjust_schedule(ctx: Context, customer_id: ObjectId, body: models.ScheduleAdjustment) -> AdjustedSchedule:
    """Change loads and repetitions on a client's calendar.

    Only of items with nothing done; `items` counts those that are different afterwards.
    """
    days = body["startDate"], body["endDate"]
    adjusted = await service.adjust(
        ctx, ClientCalendar(customer_id), *days, body["progression"], dry_run=body["dryRun"]
    )
    return adjusted.result


@_declare_change(
    "/schedule/replace-exercise",
    models.EXERCISE_REPLACEMENT(),
    models.REPLACED_EXERCISE,
    example={"exerciseId": _EXERCISE, "withExerciseId": "66f0c0ffee0000000000abce", "startDate": "2026-03-02"},
)
async def replace_scheduled_exercise(
    ctx: Context, customer_id: ObjectId, body: models.ExerciseReplacement
) -> models.ReplacedExercise:
    """Replace an exercise on a client's calendar.

    In items and circuits with nothing done; their sets stay, and `load` says what becomes of their loads.
    """
    swap, days = (body["exerciseId"], body["withExerciseId"]), (body["startDate"], body["endDate"])
    options: Any = {"load": body["load"], "dry_run": body["dryRun"]}
    return (await service.replace_exercise(ctx, ClientCalendar(customer_id), *swap, *days, **options)).result


@_declare_change(
    "/schedule/clear", models.SCHEDULE_CLEARING(), ClearedSchedule, example={**_WEEK, "dryRun": True}, deletes=True
)
async def clear_schedule(ctx: Context, customer_id: ObjectId, body: models.ScheduleClearing) -> ClearedSchedule:
    """Remove the blocks with nothing done from days of a client's calendar.

    `kept` counts the blocks that stay because work was done.
    """
    days = body["startDate"], body["endDate"]
    return (await service.clear(ctx, ClientCalendar(customer_id), *days, dry_run=body["dryRun"])).result


@library_routes.post(
    "/from-calendar",
    access=coach(CUSTOMERS.VIEW, PROGRAMS.CREATE),
    locks="customer",
    body=models.PROGRAM_FROM_CALENDAR(),
    returns=PROGRAM,
    errors=(NotFound,),
    example={"customerId": "66f0c0ffee0000000000abcd", **_WEEK, "name": "First week"},
)
async def create_program_from_calendar(ctx: Context, body: models.ProgramFromCalendar) -> Program:
    """Create a program from a client's calendar.

    What is planned becomes blocks of the program, rest days included; the first day is day 1. Nothing that was done is
    copied.
    """
    return await service.create_program(ctx, body["customerId"], body["startDate"], body["endDate"], body["name"])


@program_routes.post(
    "/copy-days",
    access=coach(PROGRAMS.EDIT),
    body=models.PROGRAM_DAYS_COPY(),
    errors=(NotFound,),
    example={"startDay": 1, "endDay": 7, "targetDay": 8, "repeat": 3, "progression": _PROGRESSION},
    on_worker_thread=True,
)
async def copy_program_days(ctx: Context, program_id: ObjectId, body: models.ProgramDaysCopy) -> models.CopiedSchedule:
    """Copy days of a program.

    With `repeat` the copies follow one another; the first applies the progression once, the second twice, and so on,
    rounded each time.
    """
    days = body["startDay"], body["endDay"], body["targetDay"]
    return await _copy(ctx, ProgramPlan(program_id), days, body)


async def _copy(
    ctx: Context,
    owner: ScheduleOwner,
    days: tuple[models.Day, models.Day, models.Day],
    body: models.ScheduleCopy | models.ProgramDaysCopy,
) -> models.CopiedSchedule:
    request = models.CopyRequest(*days, body["repeat"], body["progression"], body["onConflict"])
    return (await service.copy_days(ctx, owner, request, dry_run=body["dryRun"])).result
