"""Exercises: the list, the company's own exercises, and what it adds to shared ones."""

from __future__ import annotations

from typing import Annotated, Any, cast

from coaching_service.core.auth.access import CUSTOMERS, EXERCISES, coach
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.files import StoredFile
from coaching_service.core.errors import invalid_field
from coaching_service.core.fields import Default
from coaching_service.core.http.routes import MultipartBody
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import MEDIA_TYPES
from coaching_service.core.validation import Choice, Identifier, ListOf, Version
from coaching_service.library.exercises import customization, listing
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import (
    ADDED,
    ASSISTANCE,
    LEVELS,
    LOAD,
    MINE,
    PUBLIC,
    TYPES,
    ExerciseChange,
    ExerciseDetails,
    ExerciseOverride,
    NewExercise,
)
from coaching_service.lifecycle.customer_bulk import service
from coaching_service.web.page_queries import Search, list_url
from coaching_service.web.pages import Pages, Redirect

pages = Pages("/app/exercises")
_exercise = pages.below("/{exerciseId}")
_PAGE_SIZE = 24
_LOAD_TYPES = (
    (LOAD, "Weight: more is better"),
    (ASSISTANCE, "Assistance: less help is better"),
    (ADDED, "Added to the body's weight, as in pull-ups and dips"),
)
_TYPE_FILTERS = [
    ("", "All"),
    (MINE, "My exercises"),
    (PUBLIC, "Shared"),
    *((name, name.capitalize()) for name in TYPES),
]


class _Search(Search):
    type: Annotated[str | None, Choice(MINE, PUBLIC, *TYPES)]


class _Exercise(ExerciseDetails):
    """An exercise; the muscles that it trains are in two lists."""

    primaryMuscles: Annotated[list[ObjectId], ListOf(Identifier(), maximum=23), Default(list)]
    secondaryMuscles: Annotated[list[ObjectId], ListOf(Identifier(), maximum=23), Default(list)]


class _ExerciseChange(_Exercise):
    version: Annotated[int, Version()]


def _form_options() -> Document:
    return {"types": TYPES, "levels": LEVELS, "load_types": _LOAD_TYPES, "muscles": exercises.list_muscle_groups()}


def _to_input(form: _Exercise) -> Document:
    """Return the form values as the service accepts them. Raises InvalidFields for a muscle in both lists."""
    primary, secondary = form["primaryMuscles"], form["secondaryMuscles"]
    if set(primary) & set(secondary):
        raise invalid_field("secondaryMuscles", "must not contain a primary muscle", code="DUPLICATE")
    roles = {"primary": primary, "secondary": secondary}
    details = {name: value for name, value in form.items() if name not in ("primaryMuscles", "secondaryMuscles")}
    muscles = [{"_id": muscle_id, "role": role} for role, ids in roles.items() for muscle_id in ids]
    return {**details, "muscleGroups": muscles}


@pages.get("", access=coach(EXERCISES.VIEW), template="library/exercises.html")
async def exercises_page(ctx: Context, query: _Search) -> dict[str, Any]:
    """The exercises available to the company."""
    page = await listing.list_exercises(
        ctx, page=query["page"], size=_PAGE_SIZE, keywords=query["keywords"], kind=query["type"] or None
    )
    return {"page": page, "query": query, "type_filters": _TYPE_FILTERS, "page_url": list_url(pages.prefix, query)}


@pages.get("/new", access=coach(EXERCISES.CREATE), template="library/new_exercise.html")
async def new_exercise_page(_: Context) -> dict[str, Any]:
    """The form for a new exercise."""
    return _form_options()


@pages.post("/new", access=coach(EXERCISES.CREATE), on=new_exercise_page)
async def create_exercise(ctx: Context, form: _Exercise) -> Redirect:
    """Create an exercise of the company."""
    exercise = await exercises.create(ctx, cast("NewExercise", _to_input(form) | {"media": []}))
    return Redirect(f"/app/exercises/{exercise['_id']}", f"{exercise['name']} added to your library.")


@pages.get("/{exerciseId}", access=coach(EXERCISES.VIEW), template="library/exercise.html")
async def exercise_page(ctx: Context, exercise_id: ObjectId) -> dict[str, Any]:
    """One exercise."""
    exercise = await exercises.get(ctx, exercise_id)
    may_change = CUSTOMERS.EDIT in ctx.caller.permissions
    planned_for = await service.list_planned_for(ctx, exercise_id) if may_change else []
    return {"exercise": exercise, "is_own": exercise["companyId"] is not None, "planned_count": len(planned_for)}


@pages.get("/{exerciseId}/edit", access=coach(EXERCISES.EDIT), template="library/edit_exercise.html")
async def edit_exercise_page(ctx: Context, exercise_id: ObjectId) -> dict[str, Any]:
    """The form to change an exercise."""
    exercise = await exercises.get(ctx, exercise_id)
    return {"exercise": exercise, "version": exercise["version"], **_form_options()}


@pages.post("/{exerciseId}/edit", access=coach(EXERCISES.EDIT), on=edit_exercise_page)
async def update_exercise(ctx: Context, exercise_id: ObjectId, form: _ExerciseChange) -> Redirect:
    """Change an exercise of the company; workouts that contain it show the change."""
    await exercises.update(ctx, exercise_id, cast("ExerciseChange", _to_input(form)))
    return Redirect(f"/app/exercises/{exercise_id}", "Changes saved.")


@pages.post("/{exerciseId}/delete", access=coach(EXERCISES.DELETE), on=exercise_page, deletes=True)
async def delete_exercise(ctx: Context, exercise_id: ObjectId) -> Redirect:
    """Delete an exercise of the company; workouts that contain it keep it."""
    await exercises.delete(ctx, exercise_id)
    return Redirect("/app/exercises", "Exercise deleted.")


def _path(exercise_id: ObjectId) -> str:
    return f"/app/exercises/{exercise_id}"


@_exercise.post(
    "/media",
    access=coach(EXERCISES.EDIT),
    form=MultipartBody("file", MEDIA_TYPES, size_limit="attachment"),
    on=exercise_page,
)
async def add_media(ctx: Context, exercise_id: ObjectId, file: StoredFile) -> Redirect:
    """Add a picture or video."""
    await customization.add_media(ctx, exercise_id, file)
    return Redirect(_path(exercise_id), "File added.")


@_exercise.post("/media/{mediaId}/delete", access=coach(EXERCISES.EDIT), on=exercise_page, deletes=True)
async def delete_media(ctx: Context, exercise_id: ObjectId, media_id: ObjectId) -> Redirect:
    """Delete a picture, video or link."""
    await customization.remove_media(ctx, exercise_id, media_id)
    return Redirect(_path(exercise_id), "Deleted.")


@_exercise.get("/override", access=coach(EXERCISES.EDIT), template="library/exercise_override.html")
async def override_page(ctx: Context, exercise_id: ObjectId) -> dict[str, Any]:
    """The form for the company's own texts of a shared exercise."""
    exercise, override = await customization.read_with_override(ctx, exercise_id)
    return {"exercise": exercise, "override": override, "version": exercise["version"]}


@_exercise.post("/override", access=coach(EXERCISES.EDIT), on=override_page)
async def save_override(ctx: Context, exercise_id: ObjectId, form: ExerciseOverride) -> Redirect:
    """Save the company's own texts of a shared exercise."""
    await customization.set_override(ctx, exercise_id, form)
    return Redirect(_path(exercise_id), "Changes saved.")


@_exercise.post("/override/delete", access=coach(EXERCISES.EDIT), on=override_page, deletes=True)
async def delete_override(ctx: Context, exercise_id: ObjectId) -> Redirect:
    """Remove all that the company has added to a shared exercise."""
    await customization.remove_override(ctx, exercise_id)
    return Redirect(_path(exercise_id), "Your changes are removed.")
