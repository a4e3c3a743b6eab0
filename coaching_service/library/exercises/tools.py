"""Exercises for assistants."""

from __future__ import annotations

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import EXERCISES
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.mcp.arguments import ToolPage
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Choice, Text
from coaching_service.library.exercises import service
from coaching_service.library.exercises.schemas import MINE, PUBLIC, TYPES

tools = Tools()
_NOTHING_FOUND = (
    "Nothing holds all these words as they are written. Try fewer, or parts of them: squat for squats, pull-up or pull "
    "for pullup; or leave type out."
)


class ListExercises(ToolPage):
    """Which exercises, and which page of them."""

    search = Text(
        allow_blank=True,
        load_default="",
        metadata={
            "description": "Words, or parts of them, that must all occur in name, alias, tag, muscle or equipment: in "
            "the singular, with hyphens as written (squat, pull-up)."
        },
    )
    type = Choice(
        *(MINE, PUBLIC, *TYPES),
        load_default=None,
        allow_none=True,
        metadata={"description": "my: the company's own; public: the shared library; else a type of exercise."},
    )


@tools.tool("List exercises", access=coach(EXERCISES.VIEW), takes=ListExercises())
async def list_exercises(ctx: Context, page: int, page_size: int, search: str, type: str | None) -> Document:  # noqa: A002 - a wire name
    """Search the exercise library, the shared one and the company's own, best matches first. Gives docs (exercises
    with _id, name, muscles and equipment), totalDocs, hasNextPage and nextPage; a hint where nothing is found. Use it
    to find the exerciseId that other tools need."""
    found = await service.page(ctx, page=page, size=page_size, keywords=search, kind=type)
    hint = {} if found["totalDocs"] or not search else {"hint": _NOTHING_FOUND}
    return found | {"docs": [_listed(exercise) for exercise in found["docs"]]} | hint


def _listed(exercise: Document) -> Document:
    def muscles(role: str) -> list[str]:
        return [muscle["name"] for muscle in exercise["muscleGroups"] if muscle["role"] == role]

    return {
        **{name: exercise[name] for name in ("_id", "name", "aliases", "type", "level", "equipment")},
        "primaryMuscles": muscles("primary"),
        "secondaryMuscles": muscles("secondary"),
        "instructions": exercise["defaultInstructions"],
        "isOwn": exercise["companyId"] is not None,
    }
