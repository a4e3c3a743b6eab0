"""MCP tools for exercises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coaching_service.core import mcp
from coaching_service.core.auth import EXERCISES, coach
from coaching_service.core.database.context import Context
from coaching_service.core.errors import FieldError, InvalidFields
from coaching_service.core.fields import argument_of
from coaching_service.core.mcp import Answer, Tools, Written, typed
from coaching_service.core.text import normalize
from coaching_service.core.validation import ListOf, Text
from coaching_service.library.exercises import models as exercise_models
from coaching_service.library.exercises import name_resolution, service
from coaching_service.library.exercises.models import MUSCLE_IDS, MUSCLES
from coaching_service.library.exercises.name_resolution import MAX_NAME_LENGTH, ExerciseMatch, ResolvedExerciseName

tools = Tools()
_MAX_NAMES = 50
_MUSCLES_BY_NAME = {normalize(name): identifier for name, identifier in MUSCLE_IDS.items()}
_NO_MATCH_HINT = "No exercise contains all these words. Try fewer words, or leave type out."


class ListExercises(mcp.ToolPage):
    """Filters of the exercises, and a page; or names to resolve."""

    search = Text(
        allow_blank=True,
        load_default="",
        metadata={
            "description": "Words in name, alias, tag, muscle or equipment, in English or Spanish; abbreviations (RDL)."
        },
    )
    names = ListOf(
        Text(max_length=MAX_NAME_LENGTH),
        minimum=1,
        maximum=_MAX_NAMES,
        **mcp.optional("Instead of search: names to resolve."),
    )
    type = argument_of(exercise_models.ExerciseQuery, "type")


class CreateExercise(mcp.Arguments):
    """An exercise to create."""

    name = argument_of(exercise_models.NewExercise, "name")
    type = argument_of(exercise_models.NewExercise, "type")
    videoUrl = argument_of(exercise_models.NewExercise, "videoLink")
    instructions = argument_of(exercise_models.NewExercise, "defaultInstructions")
    muscles = ListOf(
        Text(max_length=40),
        maximum=len(MUSCLES),
        **mcp.optional("Muscle groups it trains, such as Glutes or Lower Back; an error lists all."),
    )
    equipment = argument_of(exercise_models.NewExercise, "equipment")


@tools.tool("List exercises", access=coach(EXERCISES.VIEW), takes=ListExercises(), returns=mcp.Lines)
async def list_exercises(
    ctx: Context,
    page: int,
    page_size: int,
    search: str,
    names: list[str] | None,
    type: str | None,  # noqa: A002 - a wire name
) -> Answer:
    """Search the exercise library, shared and own, best matches first, or resolve up to 50 names at once. Workouts take
    names too: use it to choose, or when a name was refused."""
    if names is not None:
        resolved = await name_resolution.resolve_names(ctx, names)
        matches = [each["match"]["_id"] if each["match"] else None for each in resolved]
        named, about = mcp.paged(resolved, 1, len(resolved)), [_describe_name(each) for each in resolved]
        return mcp.list_answer("Names of exercises", named, about, ids=matches)
    exercises = await service.list_exercises(ctx, page=page, size=page_size, keywords=search, kind=type)
    lines, ids = [_describe(each) for each in exercises["docs"]], [each["_id"] for each in exercises["docs"]]
    hint = await _suggest(ctx, search) if search and not exercises["totalDocs"] else ""
    return mcp.list_answer("Exercises", exercises, lines, ids=ids, hint=hint)


def _describe_name(about: ResolvedExerciseName) -> str:
    if about["match"] is not None:
        return f"{typed(about['name'])}: {_identify(about['match'])}"
    nearest = ", ".join(map(_identify, about["alternatives"]))
    return f"{typed(about['name'])}: no exercise for sure{f'; the nearest: {nearest}' if nearest else ''}"


async def _suggest(ctx: Context, search: str) -> str:
    """Return the nearest exercises to a search without a match, and whether one was deleted."""
    [about] = await name_resolution.resolve_names(ctx, [search])
    nearest = [each for each in (about["match"], *about["alternatives"]) if each is not None]
    deleted = (await name_resolution.find_deleted_names(ctx, [search]))[search]
    return " ".join(
        [
            _NO_MATCH_HINT,
            *([f"The nearest: {', '.join(map(_identify, nearest))}."] if nearest else []),
            *([f"Archived: {', '.join(map(typed, deleted))}."] if deleted else []),
        ]
    )


def _identify(match: ExerciseMatch) -> str:
    return f"{typed(match['name'])} [{match['_id']}]"


def _describe(exercise: exercise_models.Exercise) -> str:
    def muscles(role: exercise_models.Role) -> str:
        return ", ".join(muscle["name"] for muscle in exercise["muscleGroups"] if muscle["role"] == role)

    primary, secondary, is_own = muscles("primary"), muscles("secondary"), exercise["companyId"] is not None
    equipment = exercise["equipment"] and (typed(exercise["equipment"]) if is_own else exercise["equipment"])
    facts = mcp.join_facts(
        ", ".join(filter(None, (exercise["type"], exercise["level"], equipment))),
        primary and f"works {primary}",
        secondary and f"also {secondary}",
        exercise["aliases"] and f"aliases {', '.join(map(typed, exercise['aliases']))}",
        is_own and "own",
    )
    return f"{typed(exercise['name'])} [{exercise['_id']}]: {facts}"


async def _check_new(ctx: Context, valid: Mapping[str, Any]) -> None:
    """Raise InvalidFields for a name that means an exercise already, and for unknown muscle groups."""
    errors: list[FieldError] = []
    same: list[ExerciseMatch] = []
    if (name := valid.get("name")) is not None:
        # The exercise that has this name or alias, or the several that have this name.
        [about] = await name_resolution.resolve_names(ctx, [name])
        if about["match"] is not None and name_resolution.is_exact(about):
            same = [about["match"]]
        else:
            same = [each for each in about["alternatives"] if normalize(each["name"]) == normalize(name)]
    if same:
        known = " and ".join(map(_identify, same))
        message = f"means {known} already: use it; the name of a separate exercise needs a word that tells them apart"
        errors.append({"field": "name", "code": "NAME_IN_USE", "message": message})
    if unknown := [each for each in valid.get("muscles") or () if normalize(each) not in _MUSCLES_BY_NAME]:
        message = f"has unknown names: {', '.join(map(typed, unknown))}. Known are {', '.join(MUSCLES)}"
        errors.append({"field": "muscles", "code": "UNKNOWN_NAME", "message": message})
    if errors:
        raise InvalidFields(errors)


@tools.tool(
    "Create an exercise",
    access=coach(EXERCISES.VIEW, EXERCISES.CREATE),
    takes=CreateExercise(),
    writes=True,
    check=_check_new,
)
async def create_exercise(
    ctx: Context,
    name: str,
    type: exercise_models.ExerciseType,  # noqa: A002 - a wire name
    video_url: str | None,
    instructions: str | None,
    muscles: list[str] | None,
    equipment: str | None,
) -> Written:
    """Add an exercise to the library, with a link to a video if there is one. Search with list_exercises first: most
    are there."""
    await _check_new(ctx, {"name": name, "muscles": muscles})
    exercise = await service.create(
        ctx,
        {
            "name": name,
            "aliases": [],
            "type": type,
            "level": None,
            "defaultInstructions": instructions,
            "videoLink": video_url,
            "tags": [],
            "muscleGroups": [
                {"_id": _MUSCLES_BY_NAME[normalize(name)], "role": "primary"} for name in dict.fromkeys(muscles or [])
            ],
            "equipment": equipment,
            "loadType": exercise_models.LOAD,
            "media": [],
        },
    )
    with_video = f" with the video {typed(video_url)}" if video_url else ""
    return Written(f"Created the exercise {typed(exercise['name'])}{with_video}.", {"exerciseId": exercise["_id"]})
