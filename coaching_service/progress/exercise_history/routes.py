"""Exercise history over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.pagination import Page, page_of
from coaching_service.progress.exercise_history import models, schemas, service

routes = Routes("/coach/customers/{customerId}/exercise/{exerciseId}/history", tag="Exercise history")


@routes.get("", access=coach(CUSTOMERS.VIEW), query=schemas.HistoryQuery(), returns=page_of(schemas.ExerciseSession))
async def list_exercise_history(
    ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, query: models.HistoryQuery
) -> Page[models.ExerciseSession]:
    """Read a client's history of an exercise, newest first.

    One entry for each session, on the date of its workout block. A session has at least one completed set of the
    exercise that is not warm-up. Estimated 1RM: Epley for 2 to 12 reps, the load itself for 1.
    """
    return await service.list_sessions(
        ctx,
        customer_id,
        exercise_id,
        page=query["pageNum"],
        size=query["pageSize"],
        include_incomplete=query["includeIncomplete"],
    )
