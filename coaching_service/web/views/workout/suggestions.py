"""Suggesting exercises for a workout, and adding one of them with the sets that are proposed for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coaching_service.core.auth.permissions import EXERCISES
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import Exercise
from coaching_service.library.exercises.suggestions import suggest_exercises
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.owners import ScheduleOwner
from coaching_service.training.workouts.reports import exercises as exercise_queries
from coaching_service.web.pages import Redirect
from coaching_service.web.search_fields import KeywordQuery
from coaching_service.web.views.workout.circuits import NEW_CIRCUIT, ExerciseChoice, add_exercise
from coaching_service.web.views.workout.owner_pages import BLOCK, WorkoutOwnerPages
from coaching_service.web.views.workout.proposed_sets import SetChoice, plan_sets, with_proposed_ranges

_SUGGESTIONS = 12
_NOTHING_ENTERED: SetChoice = {"sets": None, "low": None, "high": None, "load": None, "rest": None}


def declare(owner_pages: WorkoutOwnerPages) -> None:
    """Declare the page of suggested exercises, and its form that adds one."""

    @owner_pages.get(
        f"{BLOCK}/exercises", permission=owner_pages.edit, query=KeywordQuery, template="workout/exercises.html"
    )
    async def suggestions_page(
        ctx: Context, owner_id: ObjectId, block_id: ObjectId, query: KeywordQuery
    ) -> dict[str, Any]:
        """The exercises suggested for a workout, those that the company uses most first."""
        variables = await owner_pages.load_variables(ctx, owner_id, block_id)
        suggested: Sequence[Exercise] = []
        if EXERCISES.VIEW in ctx.caller.permissions:
            suggested = await suggest_exercises(ctx, query["keywords"], _SUGGESTIONS)
        return {**variables, "query": query, "exercises": with_proposed_ranges(suggested)}

    @owner_pages.post(f"{BLOCK}/exercises", form=ExerciseChoice, on=suggestions_page)
    async def add_suggested_exercise(
        ctx: Context, owner_id: ObjectId, block_id: ObjectId, form: ExerciseChoice
    ) -> Redirect:
        """Add an exercise at the end of a workout, planned as in the client's last workout with it, or of a circuit."""
        owner, path = owner_pages.owner_type(owner_id), owner_pages.block_path(owner_id, block_id)
        exercise = await exercises.get(ctx, form["exerciseId"])
        last = [] if form["circuit"] else await _read_last_plan(ctx, owner, block_id, exercise["_id"])
        sets = last or plan_sets(exercise, _NOTHING_ENTERED, in_circuit=bool(form["circuit"]))
        added = await add_exercise(ctx, owner, block_id, form, sets)
        place = f" to {added['circuitName']}" if added["type"] == "CIRCUIT" else ""
        notice = "Circuit added." if form["circuit"] == NEW_CIRCUIT else f"{exercise['name']} added{place}."
        return Redirect(f"{path}#item-{added['_id']}", notice)


async def _read_last_plan(
    ctx: Context, owner: ScheduleOwner, block_id: ObjectId, exercise_id: ObjectId
) -> Sequence[Mapping[str, Any]]:
    """Return the sets that the client's last workout with an exercise plans of it; none in programs."""
    block = await workouts.get(ctx, owner, block_id)
    if block["customerId"] is None or block["date"] is None:
        return []
    return await exercise_queries.find_last_plan(ctx, block["customerId"], exercise_id, block["date"])
