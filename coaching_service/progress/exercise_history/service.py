"""What a client did of one exercise."""

from __future__ import annotations

from typing import Any

from coaching_service.kernel.pagination import page_document, skip_of
from coaching_service.kernel.storage.context import Context, together
from coaching_service.kernel.storage.documents import Document
from coaching_service.kernel.storage.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.people.customers import service as customers
from coaching_service.training.workouts import readings, tallies
from coaching_service.training.workouts.strength import best_set, estimated_one_rep_max


async def page(
    ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, *, page: int, size: int, planned_too: bool = False
) -> Document:
    """One page of a client's sessions with an exercise, newest first; with `planned_too` those not done as well.

    Raises NotFound for the client or the exercise, Forbidden.
    """
    _, _, (found, total) = await together(
        ctx,
        customers.visible(ctx, customer_id),
        exercises.require_any(ctx, exercise_id),
        readings.exercise_sessions(
            ctx, customer_id, exercise_id, planned_too=planned_too, skip=skip_of(page, size), limit=size
        ),
    )
    unit = ctx.who.company.load_unit
    return page_document([_session(block, exercise_id, unit) for block in found], total, page, size)


def _session(block: Document, exercise_id: ObjectId, load_unit: str) -> Document:
    """A block as a session of one exercise: every set of it, and what they amount to."""
    items = block["items"]
    sets = [
        done
        for item in items
        for done in item.get("customerSets") or ()
        if (done["exerciseId"] or item.get("exerciseId")) == exercise_id
    ]
    working = [done for item in items for named, done in tallies.working_sets(item) if named == exercise_id]
    best = best_set(working)
    return {
        "date": block["date"],
        "wblockId": block["_id"],
        "isCompleted": all(item["isCompleted"] for item in items),
        "sets": sets,
        "volumeLoad": sum((done["reps"] or 0) * (done["load"] or 0) for done in working),
        "loadUnit": load_unit,
        "bestSet": best,
        "estimatedOneRepMax": _estimate(working),
    }


def _estimate(working: list[Document]) -> dict[str, Any] | None:
    """The highest estimate of a session's sets, the formula, and the index of the set it came from."""
    found = [(estimated_one_rep_max(done["reps"], done["load"]), done["index"]) for done in working]
    estimates = [(value, formula, index) for estimate, index in found if estimate for value, formula in [estimate]]
    if not estimates:
        return None
    value, formula, index = max(estimates, key=lambda estimate: estimate[0])
    return {"value": round(value, 2), "formula": formula, "setIndex": index}
