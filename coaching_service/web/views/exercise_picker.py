"""Picking an exercise: what the field of `exercise_picker` (macros.html) suggests, and a page to search without script.

Both are one page for coaches and one for clients. Without a text it has what was used last: by a client in workouts,
and by a coach in this browser.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, TypedDict
from urllib.parse import urlencode

from coaching_service.core.auth import EXERCISES, coach, customer
from coaching_service.core.database.context import Context
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Identifier, ListOf
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import Exercise
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.web.browser_sessions import local_path
from coaching_service.web.pages import KeywordQuery, Pages, ReturnTo
from coaching_service.web.views import own_rows

pages = Pages("")
_SUGGESTIONS = 12


class _PickerQuery(KeywordQuery, ReturnTo):
    """What is searched; `recent` are the exercises that this browser has picked last."""

    recent: Annotated[list[ObjectId], ListOf(Identifier(), maximum=20), Default(list)]


class PickerOption(TypedDict):
    """An exercise to pick; `plan` is what to propose of it, where a client plans a workout."""

    exercise: Exercise
    facts: str
    thumbnail: str | None
    path: str
    plan: Mapping[str, str]


@pages.get("/app/pick-exercise", access=coach(EXERCISES.VIEW), template="exercise_picker.html")
async def pick_exercise_page(ctx: Context, query: _PickerQuery) -> dict[str, Any]:
    """Exercises of the library to pick."""
    options = await list_options(ctx, query["keywords"], query["recent"], query["next"])
    return {"query": query, "options": options}


@pages.get("/train/pick-exercise", access=customer(), template="exercise_picker.html")
async def pick_own_exercise_page(ctx: Context, query: _PickerQuery) -> dict[str, Any]:
    """Exercises of the library to pick, for a client."""
    latest = await own_rows.list_latest(ctx)
    return {"query": query, "options": await list_own_options(ctx, latest, query["keywords"], query["next"])}


async def list_own_options(
    ctx: Context, latest: Sequence[Block], keywords: str = "", next_path: str | None = None
) -> list[PickerOption]:
    """Return what a client may pick, first what is in their `latest` workouts, with what they did of it."""
    plans = own_rows.last_plans(latest)
    options = await list_options(ctx, keywords, [*plans], next_path)
    return [
        {**each, "plan": own_rows.propose(each["exercise"], plans.get(each["exercise"]["_id"]))} for each in options
    ]


async def list_options(
    ctx: Context, keywords: str, recent: Collection[ObjectId], next_path: str | None = None
) -> list[PickerOption]:
    """Return exercises that match `keywords`, `recent` ones first; `next_path`: where a link to one leads."""
    found = await exercises.suggest_exercises(ctx, keywords, _SUGGESTIONS, recent)
    target = local_path(next_path, "")
    linked = f"{target}{'&' if '?' in target else '?'}" if target else ""
    return [describe_option(ctx, each, linked and f"{linked}{urlencode({'picked': each['_id']})}") for each in found]


def describe_option(ctx: Context, exercise: Exercise, path: str) -> PickerOption:
    """Return an exercise as a page shows it to pick or open; pictures of other sites are left out."""
    thumbnail = exercise["thumbnail"]
    is_own = (thumbnail or "").startswith(f"{ctx.services.base_url}/files/")
    return {
        "exercise": exercise,
        "facts": describe_facts(exercise),
        "thumbnail": thumbnail if is_own else None,
        "path": path,
        "plan": {},
    }


def describe_facts(exercise: Exercise) -> str:
    """Return the muscles that an exercise trains most and its equipment: `Quadriceps · Barbell`."""
    muscles = [each["name"] for each in exercise["muscleGroups"] if each["role"] == "primary"]
    return " · ".join(part for part in (", ".join(muscles), (exercise["equipment"] or "").capitalize()) if part)
