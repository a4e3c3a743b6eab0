"""What a client did of one exercise."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.pagination import Page, page_document, skip_of
from coaching_service.library.exercises import service as exercises
from coaching_service.people.customers import service as customers
from coaching_service.training.workouts import queries, training_load
from coaching_service.training.workouts.models import CustomerSet, ExerciseSession
from coaching_service.training.workouts.training_load import best_set, estimated_one_rep_max


async def page(
    ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, *, page: int, size: int, planned_too: bool = False
) -> Page[Document]:
    """One page of a client's sessions with an exercise, newest first; with `planned_too` those not done as well.

    Raises NotFound for the client or the exercise, Forbidden.
    """
    _, _, (found, total) = await gather_reads(
        ctx,
        customers.get_visible(ctx, customer_id),
        exercises.require_known(ctx, exercise_id),
        queries.find_exercise_sessions(
            ctx, customer_id, exercise_id, include_planned=planned_too, skip=skip_of(page, size), limit=size
        ),
    )
    unit = ctx.caller.company.load_unit
    return page_document([_session(block, exercise_id, unit) for block in found], total, page, size)


def _session(block: ExerciseSession, exercise_id: ObjectId, load_unit: str) -> Document:
    """A block as a session of one exercise: every set of it, and what they amount to."""
    items = block["items"]
    sets = [
        done
        for item in items
        if item["type"] == "EXERCISE" or item["type"] == "CIRCUIT"
        for done in item["customerSets"]
        if (done["exerciseId"] or item.get("exerciseId")) == exercise_id
    ]
    working = [done for item in items for named, done in training_load.working_sets(item) if named == exercise_id]
    best = best_set(working)
    return {
        "date": block["date"],
        "wblockId": block["_id"],
        "isCompleted": all(item["isCompleted"] for item in items),
        "sets": sets,
        "volumeLoad": training_load.round_total(sum((done["reps"] or 0) * (done["load"] or 0) for done in working)),
        "loadUnit": load_unit,
        "bestSet": best,
        "estimatedOneRepMax": None if best is None else _estimate(best),
    }


def _estimate(best: CustomerSet) -> Document | None:
    """The highest estimate of a session, which is its best set's, with the formula and the index of the set."""
    estimate = estimated_one_rep_max(best["reps"], best["load"])
    if estimate is None:
        return None
    return {"value": round(estimate[0], 2), "formula": estimate[1], "setIndex": best["index"]}
