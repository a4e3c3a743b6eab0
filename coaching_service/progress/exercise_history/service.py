"""A client's training sessions with one exercise."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import ALL_ENTRIES, ListSelection
from coaching_service.core.pagination import Page
from coaching_service.core.walking import Walk
from coaching_service.library.exercises import service as exercises
from coaching_service.people.customers import service as customers
from coaching_service.progress.exercise_history.models import ExerciseSession, OneRepMaxEstimate
from coaching_service.training.visibility import service as visibility
from coaching_service.training.workouts import exercise_queries, query_models
from coaching_service.training.workouts.set_models import CustomerSet
from coaching_service.training.workouts.training_load import (
    best_set,
    estimated_one_rep_max,
    logged_sets,
    round_total,
    volume_load,
    working_sets,
)


async def list_sessions(
    ctx: Context,
    customer_id: ObjectId,
    exercise_id: ObjectId,
    *,
    page: int,
    size: int,
    include_incomplete: bool = False,
    selection: ListSelection = ALL_ENTRIES,
    after: str | None = None,
) -> Page[ExerciseSession]:
    """Return one page of a client's sessions with an exercise, newest first, or those after a cursor.

    With `include_incomplete` also sessions in which it was scheduled and not done. Days that are hidden from a client
    are left out of what this client reads. Raises NotFound if the company has
    no such client or exercise, Forbidden if the client is outside the caller's scope.
    """
    filters = {
        "customerId": customer_id,
        "exerciseId": exercise_id,
        "includeIncomplete": include_incomplete,
        **selection.for_cursor(),
    }
    walk = Walk(ctx, "exercise-history", filters, exercise_queries.SESSION_ORDER, page=page, size=size, after=after)
    hidden = await visibility.find_days_hidden_from_caller(ctx, customer_id)
    _, _, (stored, total) = await gather_reads(
        ctx,
        customers.get_visible(ctx, customer_id),
        exercises.require_known(ctx, exercise_id),
        exercise_queries.find_exercise_sessions(
            ctx, customer_id, exercise_id, walk, selection, include_planned=include_incomplete, without=hidden
        ),
    )
    load_unit = ctx.caller.company.load_unit
    return walk.present(stored, total, lambda block: _describe(block, exercise_id, load_unit))


def _describe(block: query_models.ExerciseSession, exercise_id: ObjectId, load_unit: str) -> ExerciseSession:
    items = block["items"]
    working = [
        working_set for item in items for trained_id, working_set in working_sets(item) if trained_id == exercise_id
    ]
    best = best_set(working)
    return {
        "date": block["date"],
        "wblockId": block["_id"],
        "isCompleted": all(item["isCompleted"] for item in items),
        "sets": logged_sets(items, exercise_id),
        "volumeLoad": round_total(sum(volume_load(working_set) for working_set in working)),
        "loadUnit": load_unit,
        "bestSet": best,
        "estimatedOneRepMax": estimate_of(best) if best else None,
    }


def estimate_of(best: CustomerSet) -> OneRepMaxEstimate | None:
    """Return the highest estimate of several sets: that of the best of them."""
    estimate = estimated_one_rep_max(best["reps"], best["load"])
    if estimate is None:
        return None
    value, formula = estimate
    return {"value": round(value, 2), "formula": formula, "setIndex": best["index"]}
