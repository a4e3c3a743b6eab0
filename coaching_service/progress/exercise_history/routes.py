"""Exercise history over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import CUSTOMERS, coach, customer
from coaching_service.core.database.context import Context
from coaching_service.core.field_schemas import query_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import part_of
from coaching_service.core.pagination import Page, PageFields, PageQuery
from coaching_service.core.query import SearchedRange
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import OwnExercise
from coaching_service.library.exercises.schemas import OWN_EXERCISE
from coaching_service.progress.exercise_history import models, service

routes = Routes("/coach/customers/{customerId}", tag="Exercise history")
own_routes = Routes("/customer/exercise/{exerciseId}", tag="The client's own")


@routes.get("/exercises", access=coach(CUSTOMERS.VIEW), query=PageQuery())
async def list_done_exercises(ctx: Context, customer_id: ObjectId, query: PageFields) -> Page[models.DoneExercise]:
    """List the exercises that a client has done, the one done latest first.

    In a session of an exercise at least one set of it was completed that is not warm-up. `ids` are exercises. The order
    changes with each session, so only the first page has a `nextCursor`: the others follow it by identifier, each once.
    """
    return await service.list_done_exercises(ctx, customer_id, **part_of(query))


@routes.get(
    "/exercise/{exerciseId}/progress",
    access=coach(CUSTOMERS.VIEW),
    query=query_of(models.ProgressQuery, SearchedRange)(),
)
async def get_exercise_progress(
    ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, query: models.ProgressQuery
) -> list[models.ProgressPoint]:
    """Read how a client's results in an exercise develop, by date.

    One entry for each session, or for each week with a session; warm-up sets do not count. The estimated 1RM is of
    the best set: Epley up to 12 reps, to which repetitions in reserve (RIR, or 10 - RPE) are added first, the load
    itself for 1.
    """
    return await service.read_progress(
        ctx, customer_id, exercise_id, query["startDate"], query["endDate"], query["groupBy"]
    )


@routes.get(
    "/exercise/{exerciseId}/history", access=coach(CUSTOMERS.VIEW), query=query_of(models.HistoryQuery, PageQuery)()
)
async def list_exercise_history(
    ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, query: models.HistoryQuery
) -> Page[models.ExerciseSession]:
    """Read a client's history of an exercise, newest first.

    One entry for each session, on the date of its workout block; `ids` are workout blocks. A session has at least one
    completed set of the exercise that is not warm-up. Estimated 1RM: Epley up to 12 reps, to which repetitions in
    reserve (RIR, or 10 - RPE) are added first, the load itself for 1. Where the load is added to the body's
    (`loadType` `added`), it is of the whole weight, by the latest body weight of the 30 days up to the session.
    """
    return await service.list_sessions(
        ctx,
        customer_id,
        exercise_id,
        include_incomplete=query["includeIncomplete"],
        **part_of(query),
    )


@own_routes.get("", access=customer(), returns=OWN_EXERCISE)
async def get_own_exercise(ctx: Context, exercise_id: ObjectId) -> OwnExercise:
    """Read how to do an exercise: its instructions, video and pictures."""
    return await exercises.get_for_client(ctx, exercise_id)


@own_routes.get("/progress", access=customer(), query=query_of(models.ProgressQuery, SearchedRange)())
async def get_own_exercise_progress(
    ctx: Context, exercise_id: ObjectId, query: models.ProgressQuery
) -> list[models.ProgressPoint]:
    """Read how my results in an exercise develop, by date.

    One entry for each session, or for each week with a session; warm-up sets do not count. The estimated 1RM is of
    the best set: Epley up to 12 reps, to which repetitions in reserve (RIR, or 10 - RPE) are added first, the load
    itself for 1. Days that are hidden from the client are left out.
    """
    return await service.read_progress(
        ctx, ctx.caller.id, exercise_id, query["startDate"], query["endDate"], query["groupBy"]
    )


@own_routes.get("/history", access=customer(), query=query_of(models.HistoryQuery, PageQuery)())
async def list_own_exercise_history(
    ctx: Context, exercise_id: ObjectId, query: models.HistoryQuery
) -> Page[models.ExerciseSession]:
    """Read my history of an exercise, newest first.

    One entry for each session, on the date of its workout block; days that are hidden from the client are left out.
    """
    return await service.list_sessions(
        ctx,
        ctx.caller.id,
        exercise_id,
        include_incomplete=query["includeIncomplete"],
        **part_of(query),
    )
