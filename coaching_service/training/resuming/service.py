"""The return of a client from an absence: its end, and what was planned meanwhile moved or removed, in one change."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import Conflict
from coaching_service.core.ids import ObjectId
from coaching_service.people.availability import service as availability
from coaching_service.people.availability.models import Availability
from coaching_service.training.resuming.models import ResumedSchedule, ResumeMode
from coaching_service.training.schedule import service as schedule
from coaching_service.training.schedule.days import add_days, days_between
from coaching_service.training.workouts.blocks import batches as block_batches
from coaching_service.training.workouts.blocks.done_work import has_nothing_done
from coaching_service.training.workouts.blocks.owners import ClientCalendar

_LAST_DATE = "9999-12-31"


@transactional
async def resume(
    ctx: Context,
    customer_id: ObjectId,
    back: str,
    mode: ResumeMode | None,
    *,
    dry_run: bool = False,
    field: str = "from",
) -> ResumedSchedule:
    """End the latest absence of a client before the date `back`, the first day of training.

    `shift` moves what was planned in the absence and later by its length, `drop` removes what was planned in it, None
    leaves it; what is done stays. Raises Conflict if there is no absence to return from (see
    availability.find_absence_before), NotFound, Forbidden, and InvalidFields if there are more than 500 blocks, or if a
    date would leave the calendar; `field` is the field of the request that has the date `back`.
    """
    calendar = ClientCalendar(customer_id)
    await (calendar.require_access(ctx) if dry_run else calendar.authorize_and_lock(ctx))
    absence = await availability.find_absence_before(ctx, customer_id, back)
    if absence is None:
        raise Conflict("The client has no absence to return from on this day", code="NO_ABSENCE")
    last = str(add_days(back, -1, field))
    if dry_run:
        ended: Availability = absence if availability.has_ended(absence, last) else {**absence, "until": last}
    else:
        ended = await availability.end(ctx, absence, last, is_resumed=mode is not None)
    if mode == "drop":
        period = absence["from"], ended["until"] or last
        cleared = await schedule.clear_accessible(ctx, calendar, *period, dry_run=dry_run, field=field)
        return {**cleared.result, "availability": ended}
    blocks = await schedule.get_regular_blocks(ctx, calendar, absence["from"], _LAST_DATE, field) if mode else []
    moved = [block for block in blocks if has_nothing_done(block)]
    days = days_between(absence["from"], back)
    changed = await block_batches.shift(ctx, calendar, moved, absence["from"], days, field, dry_run=dry_run)
    return {
        "dryRun": dry_run,
        "changeId": None if dry_run else ctx.change_id,
        "created": [],
        "changed": changed,
        "removed": [],
        "kept": len(blocks) - len(moved),
        "availability": ended,
    }
