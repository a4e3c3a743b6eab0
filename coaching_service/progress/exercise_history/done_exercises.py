"""The exercises that a client has done."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.pagination import Page, page_document, skip_of
from coaching_service.library.exercises import service as exercises
from coaching_service.people.customers import service as customers
from coaching_service.progress.exercise_history.models import DoneExercise
from coaching_service.training.workouts import queries


async def list_done_exercises(ctx: Context, customer_id: ObjectId, *, page: int, size: int) -> Page[DoneExercise]:
    """Return one page of the exercises that a client did, the one done latest first.

    Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    _, done = await gather_reads(
        ctx, customers.get_visible(ctx, customer_id), queries.find_done_exercises(ctx, customer_id)
    )
    skip = skip_of(page, size)
    selected = done[skip : skip + size]
    names = await exercises.load_names(ctx, [exercise["_id"] for exercise in selected])
    docs: list[DoneExercise] = [
        {
            "exercise": {"_id": exercise["_id"], "name": names[exercise["_id"]]["name"]},
            "lastDate": exercise["lastDate"],
            "sessions": exercise["sessions"],
        }
        for exercise in selected
    ]
    return page_document(docs, len(done), page, size)
