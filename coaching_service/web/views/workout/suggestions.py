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
from coaching_service.training.workouts.reports import exercises as exercise_queries
from coaching_service.web.page_queries import KeywordQuery
from coaching_service.web.pages import Redirect
from coaching_service.web.views.workout.circuits import NEW_CIRCUIT, ExerciseChoice, add_exercise
from coaching_service.web.views.workout.owner_pages import BLOCK, OpenedWorkout, WorkoutPages
from coaching_service.web.views.workout.planned_set_rows import SetChoice, plan_sets, with_proposed_ranges

pages = WorkoutPages()
_SUGGESTIONS = 12
_NOTHING_ENTERED: SetChoice = {"sets": None, "low": None, "high": None, "load": None, "rest": None}


@pages.get(f"{BLOCK}/exercises", query=KeywordQuery, template="workout/exercises.html")
async def suggestions_page(ctx: Context, workout: OpenedWorkout, query: KeywordQuery) -> dict[str, Any]:
    """The exercises suggested for a workout, those that the company uses most first."""
    variables = await workout.load_variables(ctx)
    suggested: Sequence[Exercise] = []
    if EXERCISES.VIEW in ctx.caller.permissions:
        suggested = await suggest_exercises(ctx, query["keywords"], _SUGGESTIONS)
    return {**variables, "query": query, "exercises": with_proposed_ranges(suggested)}


@pages.post(f"{BLOCK}/exercises", form=ExerciseChoice, on=suggestions_page)
async def add_suggested_exercise(ctx: Context, workout: OpenedWorkout, form: ExerciseChoice) -> Redirect:
    """Add an exercise at the end of a workout, planned as in the client's last workout with it, or of a circuit."""
    exercise = await exercises.get(ctx, form["exerciseId"])
    last = [] if form["circuit"] else await _read_last_plan(ctx, workout, exercise["_id"])
    sets = last or plan_sets(exercise, _NOTHING_ENTERED, in_circuit=bool(form["circuit"]))
    added = await add_exercise(ctx, workout, form, sets)
    place = f" to {added['circuitName']}" if added["type"] == "CIRCUIT" else ""
    notice = "Circuit added." if form["circuit"] == NEW_CIRCUIT else f"{exercise['name']} added{place}."
    return Redirect(f"{workout.path}#item-{added['_id']}", notice)


async def _read_last_plan(ctx: Context, workout: OpenedWorkout, exercise_id: ObjectId) -> Sequence[Mapping[str, Any]]:
    """Return the sets that the client's last workout with an exercise plans of it; none in programs."""
    block = await workout.read(ctx)
    if block["customerId"] is None or block["date"] is None:
        return []
    return await exercise_queries.find_last_plan(ctx, block["customerId"], exercise_id, block["date"])
