"""Exercises: the list, and creating, changing and deleting the company's own exercises."""

from __future__ import annotations

from typing import Any, cast

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import EXERCISES
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.errors import invalid_field
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import (
    TEXT_LENGTH,
    Choice,
    Identifier,
    Input,
    Integer,
    Link,
    ListOf,
    StringList,
    Text,
    Version,
)
from coaching_service.library.exercises import listing
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import ASSISTANCE, LOAD, ExerciseChange, ExerciseInput
from coaching_service.library.exercises.schemas import LEVELS, LOAD_TYPES, MINE, PUBLIC, TYPES
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.search_fields import Keywords
from coaching_service.web.urls import list_url

pages = Pages("/app/exercises")
_PAGE_SIZE = 24
_LOAD_TYPES = ((LOAD, "Weight: more is better"), (ASSISTANCE, "Assistance: less help is better"))
_TYPE_FILTERS = [
    ("", "All"),
    (MINE, "My exercises"),
    (PUBLIC, "Shared"),
    *((name, name.capitalize()) for name in TYPES),
]


class _Search(Input):
    keywords = Keywords()
    type = Choice(MINE, PUBLIC, *TYPES, load_default=None, allow_none=True)
    page = Integer(minimum=1, load_default=1)


class _Exercise(Input):
    name = Text(required=True)
    aliases = StringList(max_length=200, load_default=list)
    type = Choice(*TYPES, load_default="strength")
    level = Choice(*LEVELS, allow_none=True, load_default=None)
    equipment = Text(allow_none=True, load_default=None)
    loadType = Choice(*LOAD_TYPES, load_default=LOAD)
    defaultInstructions = Text(max_length=TEXT_LENGTH, allow_blank=True, allow_none=True, load_default=None)
    videoLink = Link(allow_none=True, load_default=None)
    tags = StringList(load_default=list)
    primaryMuscles = ListOf(Identifier(), maximum=23, load_default=list)
    secondaryMuscles = ListOf(Identifier(), maximum=23, load_default=list)


class _ExerciseChange(_Exercise):
    version = Version(required=True)


def _form_options() -> Document:
    return {"types": TYPES, "levels": LEVELS, "load_types": _LOAD_TYPES, "muscles": exercises.list_muscle_groups()}


def _to_input(form: dict[str, Any]) -> Document:
    """Return the form values as the service accepts them. Raises InvalidFields for a muscle in both lists."""
    primary, secondary = form.pop("primaryMuscles"), form.pop("secondaryMuscles")
    if set(primary) & set(secondary):
        raise invalid_field("secondaryMuscles", "must not contain a primary muscle", code="DUPLICATE")
    roles = {"primary": primary, "secondary": secondary}
    return form | {
        "muscleGroups": [{"_id": muscle_id, "role": role} for role, ids in roles.items() for muscle_id in ids]
    }


@pages.get("", access=coach(EXERCISES.VIEW), query=_Search(), template="library/exercises.html")
async def exercises_page(ctx: Context, query: dict[str, Any]) -> dict[str, Any]:
    """The exercises available to the company."""
    page = await listing.list_exercises(
        ctx, page=query["page"], size=_PAGE_SIZE, keywords=query["keywords"], kind=query["type"] or None
    )
    return {"page": page, "query": query, "type_filters": _TYPE_FILTERS, "page_url": list_url(pages.prefix, query)}


@pages.get("/new", access=coach(EXERCISES.CREATE), template="library/new_exercise.html")
async def new_exercise_page(_: Context) -> dict[str, Any]:
    """The form for a new exercise."""
    return _form_options()


@pages.post("/new", access=coach(EXERCISES.CREATE), form=_Exercise(), on=new_exercise_page)
async def create_exercise(ctx: Context, form: dict[str, Any]) -> Redirect:
    """Create an exercise of the company."""
    exercise = await exercises.create(ctx, cast("ExerciseInput", _to_input(form) | {"media": []}))
    return Redirect(f"/app/exercises/{exercise['_id']}", f"{exercise['name']} added to your library.")


@pages.get("/{exerciseId}", access=coach(EXERCISES.VIEW), template="library/exercise.html")
async def exercise_page(ctx: Context, exercise_id: ObjectId) -> dict[str, Any]:
    """One exercise."""
    exercise = await exercises.read(ctx, exercise_id)
    return {"exercise": exercise, "is_own": exercise["companyId"] is not None}


@pages.get("/{exerciseId}/edit", access=coach(EXERCISES.EDIT), template="library/edit_exercise.html")
async def edit_exercise_page(ctx: Context, exercise_id: ObjectId) -> dict[str, Any]:
    """The form to change an exercise."""
    exercise = await exercises.read(ctx, exercise_id)
    return {"exercise": exercise, "version": exercise["version"], **_form_options()}


@pages.post("/{exerciseId}/edit", access=coach(EXERCISES.EDIT), form=_ExerciseChange(), on=edit_exercise_page)
async def update_exercise(ctx: Context, exercise_id: ObjectId, form: dict[str, Any]) -> Redirect:
    """Change an exercise of the company; workouts that contain it show the change."""
    await exercises.change(ctx, exercise_id, cast("ExerciseChange", _to_input(form)))
    return Redirect(f"/app/exercises/{exercise_id}", "Changes saved.")


@pages.post("/{exerciseId}/delete", access=coach(EXERCISES.DELETE), on=exercise_page)
async def delete_exercise(ctx: Context, exercise_id: ObjectId) -> Redirect:
    """Delete an exercise of the company; workouts that contain it keep it."""
    await exercises.remove(ctx, exercise_id)
    return Redirect("/app/exercises", "Exercise deleted.")
