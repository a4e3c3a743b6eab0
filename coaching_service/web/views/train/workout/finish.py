"""Finishing a client's workout: how long and how hard it was, and a summary of what was done."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.people.push import keys as push_keys
from coaching_service.people.push import service as push
from coaching_service.progress.logs import own_workouts
from coaching_service.progress.logs import service as logs
from coaching_service.progress.logs.schemas import WorkoutBlockLog
from coaching_service.training.workouts.blocks.load_conversion import show_loads
from coaching_service.training.workouts.blocks.log_models import BlockLog
from coaching_service.training.workouts.blocks.presentation import presented_volume
from coaching_service.web.pages import Redirect
from coaching_service.web.views.train.sessions import workout_path
from coaching_service.web.views.train.shown_loads import show_records
from coaching_service.web.views.train.workout.feelings import FEELINGS
from coaching_service.web.views.train.workout.groups import group_items, rows_of
from coaching_service.web.views.train.workout.page import WORKOUT, pages, workout_page
from coaching_service.web.views.train.workout.record_texts import describe_records
from coaching_service.web.views.train.workout.rows import count_sets
from coaching_service.web.views.train.workout.times import measure_minutes


@pages.post(f"{WORKOUT}/finish", access=customer(), form=WorkoutBlockLog(), on=workout_page)
async def finish_workout(ctx: Context, wblock_id: ObjectId, form: BlockLog) -> Redirect:
    """Save how long and how hard the workout was; without a duration, the time from the first to the last set."""
    log: BlockLog = {"feeling": None, **form}
    if log["durationMinutes"] is None:
        log["durationMinutes"] = measure_minutes(await logs.get_own_block(ctx, wblock_id))
    await logs.log_block(ctx, ctx.caller.id, wblock_id, log)
    return Redirect(f"{workout_path(wblock_id)}/summary")


@pages.get(f"{WORKOUT}/summary", access=customer(), template="train/workout/summary.html")
async def summary_page(ctx: Context, wblock_id: ObjectId) -> dict[str, Any]:
    """What was done in a workout, and the records set in it."""
    unit = ctx.caller.load_unit
    stored = await own_workouts.read_own_workout(ctx, wblock_id)
    block = show_loads(stored, ctx, unit)
    groups = group_items(block, unit)
    done, planned = count_sets(rows_of(groups))
    return {
        "block": block,
        "unit": unit,
        "records": describe_records(show_records(ctx, await own_workouts.list_records_of(ctx, ctx.caller.id, stored))),
        "done_sets": done,
        "planned_sets": planned,
        "volume": presented_volume(block["items"]),
        "feeling": dict(FEELINGS).get(block.get("feeling") or 0),
        "push_key": await _find_push_key(ctx) if block["isCompleted"] else None,
        "cards": [card for group in groups for card in group.cards],
        "workout_path": workout_path(wblock_id),
    }


async def _find_push_key(ctx: Context) -> str | None:
    """Return the key with which this device can subscribe to notifications, unless it has."""
    return None if await push.has_own_device(ctx) else (await push_keys.get_public_key(ctx.services))["key"]
