"""Exercise history over REST."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.pagination import Page, page_of
from coaching_service.progress.exercise_history import service
from coaching_service.progress.exercise_history.schemas import ExerciseSession, HistoryQuery

routes = Routes("/coach/customers/{customerId}/exercise/{exerciseId}/history", tag="Exercise history")


@routes.get("", access=coach(CUSTOMERS.VIEW), query=HistoryQuery(), returns=page_of(ExerciseSession))
async def list_exercise_history(
    ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, query: dict[str, Any]
) -> Page[dict[str, Any]]:
    """Read a client's history of an exercise, newest first.

    A session an entry, on its block's date. Estimated 1RM: Epley for 2 to 12 reps, the load itself for 1.
    """
    return await service.page(
        ctx,
        customer_id,
        exercise_id,
        page=query["pageNum"],
        size=query["pageSize"],
        planned_too=query["includeIncomplete"],
    )
