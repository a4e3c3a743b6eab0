"""What a company adds to an exercise: pictures and videos, and its own texts for a shared exercise."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import EXERCISES
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.http.routes import MultipartBody
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import MEDIA_TYPES
from coaching_service.library.exercises import customization
from coaching_service.library.exercises.override_models import ExerciseOverride
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.exercises import exercise_page

pages = Pages("/app/exercises/{exerciseId}")


def _path(exercise_id: ObjectId) -> str:
    return f"/app/exercises/{exercise_id}"


@pages.post(
    "/media",
    access=coach(EXERCISES.EDIT),
    form=MultipartBody("file", MEDIA_TYPES, size_limit="attachment"),
    on=exercise_page,
)
async def add_media(ctx: Context, exercise_id: ObjectId, file: StoredFile) -> Redirect:
    """Add a picture or video."""
    await customization.add_media(ctx, exercise_id, file)
    return Redirect(_path(exercise_id), "File added.")


@pages.post("/media/{mediaId}/delete", access=coach(EXERCISES.EDIT), on=exercise_page)
async def delete_media(ctx: Context, exercise_id: ObjectId, media_id: ObjectId) -> Redirect:
    """Delete a picture, video or link."""
    await customization.remove_media(ctx, exercise_id, media_id)
    return Redirect(_path(exercise_id), "Deleted.")


@pages.get("/override", access=coach(EXERCISES.EDIT), template="library/exercise_override.html")
async def override_page(ctx: Context, exercise_id: ObjectId) -> dict[str, Any]:
    """The form for the company's own texts of a shared exercise."""
    exercise, override = await customization.read_with_override(ctx, exercise_id)
    return {"exercise": exercise, "override": override, "version": exercise["version"]}


@pages.post("/override", access=coach(EXERCISES.EDIT), form=ExerciseOverride, on=override_page)
async def save_override(ctx: Context, exercise_id: ObjectId, form: ExerciseOverride) -> Redirect:
    """Save the company's own texts of a shared exercise."""
    await customization.set_override(ctx, exercise_id, form)
    return Redirect(_path(exercise_id), "Changes saved.")


@pages.post("/override/delete", access=coach(EXERCISES.EDIT), on=override_page)
async def delete_override(ctx: Context, exercise_id: ObjectId) -> Redirect:
    """Remove all that the company has added to a shared exercise."""
    await customization.remove_override(ctx, exercise_id)
    return Redirect(_path(exercise_id), "Your changes are removed.")
