"""An exercise: adding one of the company's own, changing and deleting it; the list is in library.py."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import EXERCISES
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.errors import BadRequest
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import (
    TEXT_LENGTH,
    Choice,
    Identifier,
    Input,
    Link,
    ListOf,
    StringList,
    Text,
    Version,
)
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.schemas import LEVELS, TYPES
from coaching_service.web.pages import Pages, Redirect

pages = Pages("/app/exercises")


class _Exercise(Input):
    name = Text(required=True)
    aliases = StringList(max_length=200, load_default=list)
    type = Choice(*TYPES, load_default="strength")
    level = Choice(*LEVELS, allow_none=True, load_default=None)
    equipment = Text(allow_none=True, load_default=None)
    defaultInstructions = Text(max_length=TEXT_LENGTH, allow_blank=True, allow_none=True, load_default=None)
    videoLink = Link(allow_none=True, load_default=None)
    tags = StringList(load_default=list)
    muscles = ListOf(Identifier(), maximum=23, load_default=list)
    helping = ListOf(Identifier(), maximum=23, load_default=list)


class _Change(_Exercise):
    version = Version(required=True)


def _choices() -> Document:
    return {"types": TYPES, "levels": LEVELS, "muscles": exercises.muscle_groups()}


def _as_sent(form: dict[str, Any]) -> Document:
    """What a form says of an exercise, as the service takes it. Raises BadRequest for a muscle in both lists."""
    first, second = form.pop("muscles"), form.pop("helping")
    if set(first) & set(second):
        raise BadRequest(["helping must not name a muscle that does most of the work"])
    roles = {"primary": first, "secondary": second}
    return form | {"muscleGroups": [{"_id": each, "role": role} for role, named in roles.items() for each in named]}


@pages.get("/new", access=coach(EXERCISES.CREATE), template="library/new_exercise.html")
async def new_exercise_page(_: Context) -> dict[str, Any]:
    """The page on which an exercise of the company's own begins."""
    return _choices()


@pages.post("/new", access=coach(EXERCISES.CREATE), form=_Exercise(), on=new_exercise_page)
async def new_exercise(ctx: Context, form: dict[str, Any]) -> Redirect:
    """Add an exercise of the company's own."""
    exercise = await exercises.create(ctx, _as_sent(form) | {"media": []})
    return Redirect(f"/app/exercises/{exercise['_id']}", f"{exercise['name']} is in your library.")


@pages.get("/{exerciseId}", access=coach(EXERCISES.VIEW), template="library/exercise.html")
async def exercise_page(ctx: Context, exercise_id: ObjectId) -> dict[str, Any]:
    """One exercise."""
    exercise = await exercises.read(ctx, exercise_id)
    return {"exercise": exercise, "own": exercise["companyId"] is not None}


@pages.get("/{exerciseId}/change", access=coach(EXERCISES.EDIT), template="library/edit_exercise.html")
async def change_exercise_page(ctx: Context, exercise_id: ObjectId) -> dict[str, Any]:
    """What is said of an exercise."""
    exercise = await exercises.read(ctx, exercise_id)
    return {"exercise": exercise, "version": exercise["version"], **_choices()}


@pages.post("/{exerciseId}/change", access=coach(EXERCISES.EDIT), form=_Change(), on=change_exercise_page)
async def change_exercise(ctx: Context, exercise_id: ObjectId, form: dict[str, Any]) -> Redirect:
    """Change one of the company's own; workouts that name it go on naming it."""
    await exercises.change(ctx, exercise_id, _as_sent(form))
    return Redirect(f"/app/exercises/{exercise_id}", "The changes are kept.")


@pages.post("/{exerciseId}/delete", access=coach(EXERCISES.DELETE), on=exercise_page)
async def delete_exercise(ctx: Context, exercise_id: ObjectId) -> Redirect:
    """Delete one of the company's own; workouts go on naming it."""
    await exercises.remove(ctx, exercise_id)
    return Redirect("/app/exercises", "The exercise is deleted.")
