"""The exercises that a client has done."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_parts import RANKED, ListPart
from coaching_service.core.list_selection import ALL_ENTRIES, ListSelection
from coaching_service.core.pagination import Page
from coaching_service.library.exercises import service as exercises
from coaching_service.people.customers import service as customers
from coaching_service.progress.exercise_history.models import DoneExercise
from coaching_service.training.visibility import service as visibility
from coaching_service.training.workouts.reports import exercises as exercise_queries


async def list_done_exercises(
    ctx: Context,
    customer_id: ObjectId,
    *,
    page: int,
    size: int,
    selection: ListSelection = ALL_ENTRIES,
    after: str | None = None,
) -> Page[DoneExercise]:
    """Return one page of the exercises that a client did, the one done latest first, or those after a cursor.

    Days that are hidden from a client are left out of what this client reads. Raises NotFound if the company has no
    such client, Forbidden if the client is outside the caller's scope.
    """
    filters = {"customerId": customer_id, **selection.for_cursor()}
    list_part = ListPart(ctx, "done-exercises", filters, RANKED, page=page, size=size, after=after)
    _, hidden = await gather_reads(
        ctx,
        customers.get_visible(ctx, customer_id),
        visibility.find_days_hidden_from_caller(ctx, customer_id),
    )
    done = await exercise_queries.find_done_exercises(ctx, customer_id, without=hidden)
    by_id = {each["_id"]: each for each in done if selection.ids is None or each["_id"] in selection.ids}
    ids, cursor = list_part.cut_ranked(list(by_id))
    names = await exercises.get_names(ctx, ids)
    docs: list[DoneExercise] = [
        {
            "exercise": {"_id": exercise["_id"], "name": names[exercise["_id"]]["name"]},
            "lastDate": exercise["lastDate"],
            "sessions": exercise["sessions"],
        }
        for exercise in map(by_id.__getitem__, ids)
    ]
    return list_part.numbered(docs, len(by_id), cursor)
