"""Exercises over REST."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import EXERCISES
from coaching_service.core.database.context import Context
from coaching_service.core.errors import NotFound
from coaching_service.core.http.routes import Routes, list_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import patch_of
from coaching_service.library.exercises import models, service
from coaching_service.library.exercises.schemas import (
    EXERCISE_PAGE,
    Exercise,
    ExerciseLibrary,
    ExerciseNames,
    ExerciseQuery,
    MuscleGroup,
    NewExercise,
    OwnExerciseQuery,
    ResolvedExerciseNames,
)

routes = Routes("", tag="Exercises")


@routes.get("/exercises/unified", access=coach(EXERCISES.VIEW), query=ExerciseQuery(), returns=EXERCISE_PAGE)
async def list_exercises(ctx: Context, query: dict[str, Any]) -> models.ExercisePage:
    """List exercises, shared and own.

    With `keywords` the best matches first: exact name or alias, beginning of the name, whole words of the name, words
    of aliases, other matches; then how often the company uses the exercise. Otherwise by name.
    """
    return await _page(ctx, query, kind=query.get("type"))


@routes.get("/exercises", access=coach(EXERCISES.VIEW), query=OwnExerciseQuery(), returns=EXERCISE_PAGE)
async def list_own_exercises(ctx: Context, query: dict[str, Any]) -> models.ExercisePage:
    """List the company's own exercises."""
    return await _page(ctx, query, own_only=True)


async def _page(ctx: Context, query: dict[str, Any], **filters: Any) -> models.ExercisePage:
    return await service.list_page(
        ctx,
        page=query["pageNum"],
        size=query["pageSize"],
        keywords=query.get("keywords", ""),
        library_id=query.get("libraryId"),
        **filters,
    )


@routes.post(
    "/exercises",
    access=coach(EXERCISES.CREATE),
    body=NewExercise(),
    returns=Exercise,
    errors=(NotFound,),
    example={"name": "Garage Squat", "type": "strength", "tags": ["squat"], "equipment": "Barbell"},
)
async def create_exercise(ctx: Context, body: models.ExerciseInput) -> models.Exercise:
    """Create an exercise."""
    return await service.create(ctx, body)


@routes.post(
    "/exercises/resolve",
    access=coach(EXERCISES.VIEW),
    status=200,
    body=ExerciseNames(),
    returns=ResolvedExerciseNames,
    read_only=True,
    example={"names": ["Back squat", "DB bench press"]},
)
async def resolve_exercise_names(ctx: Context, body: dict[str, list[str]]) -> dict[str, list[models.ResolvedName]]:
    """Find the exercises that names mean.

    Names, aliases and abbreviations are found as in the list of exercises. It changes nothing: a read-only key may call
    it.
    """
    return {"results": await service.resolve_names(ctx, body["names"])}


@routes.get("/exercises/{exerciseId}", access=coach(EXERCISES.VIEW), returns=Exercise)
async def get_exercise(ctx: Context, exercise_id: ObjectId) -> models.Exercise:
    """Read an exercise."""
    return await service.read(ctx, exercise_id)


@routes.patch(
    "/exercises/{exerciseId}",
    access=coach(EXERCISES.EDIT),
    body=patch_of(NewExercise, name="ExerciseChange"),
    returns=Exercise,
    example={"level": "beginner", "version": 0},
)
async def update_exercise(ctx: Context, exercise_id: ObjectId, body: models.ExerciseChange) -> models.Exercise:
    """Change one of the company's own exercises.

    Shared exercises cannot be changed (403).
    """
    return await service.change(ctx, exercise_id, body)


@routes.delete("/exercises/{exerciseId}", access=coach(EXERCISES.DELETE))
async def delete_exercise(ctx: Context, exercise_id: ObjectId) -> None:
    """Delete one of the company's own exercises.

    Scheduled blocks keep its name.
    """
    await service.remove(ctx, exercise_id)


@routes.get("/exercise-libraries", access=coach(EXERCISES.VIEW), returns=list_of(ExerciseLibrary))
async def list_exercise_libraries(ctx: Context) -> list[models.ExerciseLibrary]:
    """List the exercise libraries."""
    return service.list_libraries(ctx)


@routes.get("/muscle-groups", access=coach(EXERCISES.VIEW), returns=list_of(MuscleGroup))
async def list_muscle_groups(_: Context) -> list[models.MuscleGroup]:
    """List the muscle groups."""
    return service.list_muscle_groups()
