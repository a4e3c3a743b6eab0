"""The page of a workout: its items with their results, and what the client did the last time and can lift."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, TypedDict

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import InvalidFields
from coaching_service.core.ids import ObjectId
from coaching_service.training.programs.models import LAST_DAY
from coaching_service.training.training_maxes import service as training_maxes
from coaching_service.training.training_maxes.models import ReferenceLoads
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.items import content as items
from coaching_service.training.workouts.items.content import exercise_ids
from coaching_service.training.workouts.items.descriptions import describe_item
from coaching_service.training.workouts.items.models import LastTime
from coaching_service.training.workouts.reports.exercises import add_last_times
from coaching_service.training.workouts.sets import CustomerSet
from coaching_service.web.formatting import format_number
from coaching_service.web.page_queries import Search
from coaching_service.web.views.item_results import describe_results
from coaching_service.web.views.train.lift_words import describe_set
from coaching_service.web.views.workout.add_items import load_choices, search_path
from coaching_service.web.views.workout.cards import card_variables, superset_labels, used_columns
from coaching_service.web.views.workout.item_changes import circuits_of
from coaching_service.web.views.workout.owner_pages import BLOCK, OpenedWorkout, WorkoutPages

pages = WorkoutPages()


@pages.get(BLOCK, to_view=True, query=Search, template="workout/workout.html")
async def workout_page(ctx: Context, workout: OpenedWorkout, query: Search) -> dict[str, Any]:
    """A workout with its items and results, and what can be added to it."""
    variables = await workout.load_variables(ctx)
    block, unit, of = variables["block"], ctx.caller.company.load_unit, workout.of
    can_edit = of.edit in ctx.caller.permissions
    move_range = of.move_range(block) if of.move_range else None
    move_targets = [block]
    if can_edit and block["items"] and move_range:
        blocks = await workouts.list_blocks(ctx, workout.owner, *move_range)
        regular = [other for other in blocks if other.get("checkInId") is None]
        move_targets = [other for other in regular if not other["isRest"] or other["_id"] == workout.block_id]
    comments = await of.load_comments(ctx, workout.owner_id, workout.block_id) if of.load_comments else {}
    descriptions = [
        {
            **describe_item(item, unit),
            "results": describe_results(item, unit),
            "may_log": items.may_see_log(ctx.caller, item),
        }
        for item in block["items"]
    ]
    return {
        **variables,
        **comments,
        **(await load_choices(ctx, query) if can_edit and not block["isRest"] else {}),
        **card_variables(block["items"] if can_edit else []),
        "lift_facts": await _load_lift_facts(ctx, block),
        "superset_labels": superset_labels(block["items"]),
        "used_columns": used_columns,
        "version": block["version"],
        "descriptions": descriptions,
        "comment_options": [(str(item["_id"]), item["title"]) for item in descriptions],
        "circuits": [(str(circuit["_id"]), f"In {circuit['circuitName']}") for circuit in circuits_of(block)],
        "move_targets": move_targets,
        "proposed_copy": _same_day_next_week(block),
        "first_date": move_range[0] if move_range else None,
        "query": query,
        "address": lambda page: search_path(workout.path, query | {"page": page}),
        "unit": unit,
    }


def _same_day_next_week(block: Block) -> str | int:
    """Return the date or program day one week after a workout; its own at the end of the calendar."""
    if block["date"] is None:
        return min((block["day"] or 0) + 7, LAST_DAY)
    try:
        return workouts.shift_date(block["date"], 7, "date")
    except InvalidFields:
        return block["date"]


class LastSession(TypedDict):
    """The latest session of an exercise: its date, block, and sets in words."""

    date: str
    wblockId: ObjectId
    sets: str


class LiftFacts(TypedDict):
    """What is known of an exercise; `loads` are such as `Training max 100 kg`."""

    exerciseId: ObjectId
    last: LastSession | None
    loads: list[str]


async def _load_lift_facts(ctx: Context, block: Block) -> dict[ObjectId, LiftFacts]:
    """Load what is known of each exercise of a workout by item; nothing in programs. Two queries for the page.

    For a client whose access has been checked.
    """
    customer_id = block["customerId"]
    if customer_id is None or block["date"] is None or not block["items"]:
        return {}
    [with_last_times], loads = await gather_reads(
        ctx,
        add_last_times(ctx, customer_id, [block]),
        training_maxes.load_reference_loads(ctx, customer_id, exercise_ids(block["items"])),
    )
    unit = ctx.caller.company.load_unit
    return {
        item["_id"]: {
            "exerciseId": item["exerciseId"],
            "last": _describe_session(item.get("lastTime"), unit),
            "loads": _describe_loads(loads.get(item["exerciseId"]), unit),
        }
        for item in with_last_times["items"]
        if item["type"] == "EXERCISE"
    }


def _describe_session(last: LastTime | None, unit: str) -> LastSession | None:
    done = [each for each in last["sets"] if each["isCompleted"]] if last is not None else []
    if last is None or not done:
        return None
    return {"date": last["date"], "wblockId": last["wblockId"], "sets": _describe_sets(done, unit)}


def _describe_sets(done: Sequence[CustomerSet], unit: str) -> str:
    """Describe sets, consecutive ones of the same load together, such as `60 kg x 8, 8, 7; 50 kg x 12`."""
    parts: list[str] = []
    for load, same in groupby(done, key=lambda each: each["load"] if each["reps"] is not None else None):
        sets = list(same)
        if load:
            parts.append(f"{format_number(load, unit)} × {', '.join(str(each['reps']) for each in sets)}")
        else:
            parts += [describe_set(each, unit)["amount"] for each in sets]
    return "; ".join(parts)


def _describe_loads(loads: ReferenceLoads | None, unit: str) -> list[str]:
    if loads is None:
        return []
    values = (("Training max", loads["trainingMax"]), ("Estimated 1RM", loads["estimatedOneRepMax"]))
    return [f"{name} {format_number(round(value, 1), unit)}" for name, value in values if value is not None]
