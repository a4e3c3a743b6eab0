"""What a client did the last time in each exercise that a block plans."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.items.models import ExerciseItem, LastTime, WorkItem
from coaching_service.training.workouts.items.totals import logged_sets
from coaching_service.training.workouts.reports import exercises as exercise_queries
from coaching_service.training.workouts.reports.models import ExerciseSession


async def add_last_times(
    ctx: Context, customer_id: ObjectId, blocks: Sequence[Block], *, without: Collection[str] = ()
) -> list[Block]:
    """Return blocks of a client, whose access has been checked, with `lastTime` of each exercise item.

    It is the latest session of the exercise before the date of the block, or None: the latest earlier block with a
    completed set of it that is not warm-up. Dates in `without` are left out. One query for each date of the blocks.
    """
    dates = sorted({block["date"] for block in blocks if block["date"] is not None})
    ids_by_date = {date: [block["_id"] for block in blocks if block["date"] == date] for date in dates}
    reads = (
        exercise_queries.find_last_sessions(ctx, customer_id, ids, date, without=without)
        for date, ids in ids_by_date.items()
    )
    sessions = await gather_reads(ctx, *reads)
    sessions_by_date: dict[str | None, dict[ObjectId, ExerciseSession]] = dict(zip(dates, sessions, strict=True))
    return [_with_last_times(block, sessions_by_date.get(block["date"], {})) for block in blocks]


def _with_last_times(block: Block, sessions: Mapping[ObjectId, ExerciseSession]) -> Block:
    items: list[WorkItem] = [
        _with_last_time(item, sessions) if item["type"] == "EXERCISE" else item for item in block["items"]
    ]
    return {**block, "items": items}


def _with_last_time(item: ExerciseItem, sessions: Mapping[ObjectId, ExerciseSession]) -> ExerciseItem:
    exercise_id = item["exerciseId"]
    session = sessions.get(exercise_id)
    last_time: LastTime | None = None
    if session is not None:
        sets = logged_sets(session["items"], exercise_id)
        last_time = {"date": session["date"], "wblockId": session["_id"], "sets": sets}
    return {**item, "lastTime": last_time}
