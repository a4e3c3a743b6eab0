"""What one client of the demo company has done so far: enough for every chart to show something."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.library.metric_sets import service as metric_sets
from coaching_service.progress.logs import service as logs
from coaching_service.progress.logs.schemas import ITEM_LOG
from coaching_service.progress.metrics import service as metrics
from coaching_service.progress.notes import service as notes
from coaching_service.training.workouts import service as workouts
from coaching_service.training.workouts.models import BlockLog, WorkItem
from coaching_service.training.workouts.schedule_owners import ClientCalendar

# A value every ten days, the last one today.
_MEASURED = {
    "Body weight": (82.4, 82.1, 81.6, 81.4, 80.5, 79.8),
    "Waist": (92, 91.5, 91, 90.5, 90, 89),
    "Resting heart rate": (64, 63, 61, 62, 60, 58),
    "Sleep": (6.5, 7, 6.8, 7.4, 7.1, 7.3),
}
_NOTE = "<p>Left knee: go easy on lunges.</p><p>Wants to run <b>10 km</b> in spring.</p>"


async def fill(ctx: Context, customer_id: ObjectId, first: date) -> None:
    """Log the client's training from `first` to yesterday, record metrics, write a note."""
    today = ctx.caller.today()
    blocks = await workouts.list_blocks(ctx, ClientCalendar(customer_id), str(first), str(today - timedelta(days=1)))
    for number, block in enumerate(blocks):
        # Of four sessions two are done, one is begun, one is left out: it is also what a first start may take.
        done = (len(block["items"]), 1, len(block["items"]), 0)[number % 4]
        for item in block["items"][:done]:
            await logs.log_item(ctx, customer_id, block["_id"], item["_id"], ITEM_LOG.load(_done(item, number)))
        if done:
            rated: BlockLog = {"durationMinutes": 50 + number % 3 * 5, "sessionRpe": 6 + number % 3, "comment": None}
            await logs.log_block(ctx, customer_id, block["_id"], rated)
    for metric_set in await metric_sets.list_all(ctx):
        await metrics.assign(ctx, customer_id, metric_set["_id"])
        for metric in metric_set["metrics"]:
            for ago, value in enumerate(reversed(_MEASURED[metric["name"]])):
                day = str(today - timedelta(days=10 * ago))
                await metrics.record(ctx, customer_id, metric_set["_id"], metric["_id"], day, value)
    await notes.create(ctx, customer_id, _NOTE)


def _done(item: WorkItem, number: int) -> dict[str, Any]:
    """An item's log: what was planned, a little heavier from week to week."""
    sets = [
        {
            "index": planned["index"],
            "reps": (planned.get("maxPlannedReps") or 0) - (planned["index"] + number) % 2,
            "load": load + number // 3 * 2.5 if (load := planned.get("load")) else None,
            "isCompleted": True,
        }
        for planned in (item["exerciseSets"] if item["type"] == "EXERCISE" else ())
    ]
    return {"isCompleted": True, "customerSets": sets}
