"""MCP tools for exercises."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import EXERCISES
from coaching_service.core.database.context import Context
from coaching_service.core.mcp.arguments import ToolPage, numbered, optional
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Choice, ListOf, Text
from coaching_service.library.exercises import listing, name_resolution
from coaching_service.library.exercises._resolution import MAX_NAME_LENGTH
from coaching_service.library.exercises.models import TYPES, Exercise, ExerciseReference, ExerciseSummary, Role
from coaching_service.library.exercises.name_models import ExerciseMatch, MatchedName, Suggestions
from coaching_service.library.exercises.schemas import MINE, PUBLIC

tools = Tools()
_MAX_NAMES = 50
_NO_MATCH_HINT = "No exercise contains all these words. Try fewer words, or leave type out."


class ListExercises(ToolPage):
    """Filters of the exercises, and a page; or names to resolve."""

    search = Text(
        allow_blank=True,
        load_default="",
        metadata={
            "description": "Words in name, alias, tag, muscle or equipment, in English or Spanish, in any order; "
            "abbreviations (RDL, DB) are understood."
        },
    )
    names = ListOf(
        Text(max_length=MAX_NAME_LENGTH),
        minimum=1,
        maximum=_MAX_NAMES,
        **optional("Instead of search: names, each resolved to the exercise that it means."),
    )
    type = Choice(
        *(MINE, PUBLIC, *TYPES),
        **optional("my: the company's own; public: the shared library; else a type of exercise."),
    )


@tools.tool("List exercises", access=coach(EXERCISES.VIEW), takes=ListExercises())
async def list_exercises(
    ctx: Context,
    page: int,
    page_size: int,
    search: str,
    names: list[str] | None,
    type: str | None,  # noqa: A002 - a wire name
) -> dict[str, Any]:
    """Search the exercise library, shared and own, best matches first, or resolve up to 50 names at once. Workouts take
    names too, so use it to choose exercises, or when a name was refused. A search without a match returns the nearest
    exercises."""
    if names is not None:
        return await _resolve(ctx, names)
    exercises = await listing.list_exercises(ctx, page=page, size=page_size, keywords=search, kind=type)
    result = {**numbered(exercises), "docs": [_summary(exercise) for exercise in exercises["docs"]]}
    return result if exercises["totalDocs"] or not search else {**result, **await _suggest(ctx, search)}


async def _resolve(ctx: Context, names: list[str]) -> dict[str, list[MatchedName]]:
    resolved = await name_resolution.resolve_names(ctx, names)
    docs: list[MatchedName] = []
    for about in resolved:
        if about["match"] is not None:
            docs.append({"name": about["name"], "match": _identify(about["match"])})
        else:
            nearest = [_identify(each) for each in about["alternatives"]]
            docs.append({"name": about["name"], "match": None, "nearest": nearest})
    return {"docs": docs}


async def _suggest(ctx: Context, search: str) -> Suggestions:
    """Return the nearest exercises to a search without a match, and whether one was deleted."""
    [about] = await name_resolution.resolve_names(ctx, [search])
    nearest = [each for each in (about["match"], *about["alternatives"]) if each is not None]
    deleted = (await name_resolution.find_deleted_names(ctx, [search]))[search]
    suggestions: Suggestions = {"hint": _NO_MATCH_HINT, "nearest": [_identify(each) for each in nearest]}
    if deleted:
        suggestions["archived"] = deleted
    return suggestions


def _identify(match: ExerciseMatch) -> ExerciseReference:
    return {"_id": match["_id"], "name": match["name"]}


def _summary(exercise: Exercise) -> ExerciseSummary:
    def muscles(role: Role) -> list[str]:
        return [muscle["name"] for muscle in exercise["muscleGroups"] if muscle["role"] == role]

    summary: ExerciseSummary = {"_id": exercise["_id"], "name": exercise["name"], "type": exercise["type"]}
    if exercise["aliases"]:
        summary["aliases"] = exercise["aliases"]
    if exercise["level"] is not None:
        summary["level"] = exercise["level"]
    if exercise["equipment"] is not None:
        summary["equipment"] = exercise["equipment"]
    if primary := muscles("primary"):
        summary["primaryMuscles"] = primary
    if secondary := muscles("secondary"):
        summary["secondaryMuscles"] = secondary
    if exercise["companyId"] is not None:
        summary["isOwn"] = True
    return summary
