"""MCP tools for exercises."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import EXERCISES
from coaching_service.core.database.context import Context
from coaching_service.core.mcp.arguments import ToolPage, numbered
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Choice, Text
from coaching_service.library.exercises import service
from coaching_service.library.exercises.models import Exercise, Role
from coaching_service.library.exercises.schemas import MINE, PUBLIC, TYPES

tools = Tools()
_NO_MATCH_HINT = "No exercise contains all these words. Try fewer words, or leave type out."


class ListExercises(ToolPage):
    """Filters of the exercises, and a page."""

    search = Text(
        allow_blank=True,
        load_default="",
        metadata={
            "description": "Words, or parts of them, that must all occur in name, alias, tag, muscle or equipment, in "
            "English or Spanish; common abbreviations (RDL, DB) are understood, and single typing errors tolerated."
        },
    )
    type = Choice(
        *(MINE, PUBLIC, *TYPES),
        load_default=None,
        allow_none=True,
        metadata={"description": "my: the company's own; public: the shared library; else a type of exercise."},
    )


@tools.tool("List exercises", access=coach(EXERCISES.VIEW), takes=ListExercises())
async def list_exercises(ctx: Context, page: int, page_size: int, search: str, type: str | None) -> dict[str, Any]:  # noqa: A002 - a wire name
    """Search the exercise library, the shared one and the company's own, best matches first. Returns docs (exercises
    with _id, name, muscles and equipment), totalDocs, hasNextPage and nextPage; tolerant if matches with a typing error
    are included; a hint if there is no match. Use it to find the exerciseId that other tools need."""
    exercises = await service.list_page(ctx, page=page, size=page_size, keywords=search, kind=type)
    hint = {} if exercises["totalDocs"] or not search else {"hint": _NO_MATCH_HINT}
    return {**numbered(exercises), "docs": [_summary(exercise) for exercise in exercises["docs"]], **hint}


def _summary(exercise: Exercise) -> dict[str, Any]:
    def muscles(role: Role) -> list[str]:
        return [muscle["name"] for muscle in exercise["muscleGroups"] if muscle["role"] == role]

    return {
        "_id": exercise["_id"],
        "name": exercise["name"],
        "aliases": exercise["aliases"],
        "type": exercise["type"],
        "level": exercise["level"],
        "equipment": exercise["equipment"],
        "primaryMuscles": muscles("primary"),
        "secondaryMuscles": muscles("secondary"),
        "instructions": exercise["defaultInstructions"],
        "isOwn": exercise["companyId"] is not None,
    }
