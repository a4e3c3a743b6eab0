"""The page of a workout: its items with their results."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from coaching_service.core.database.context import Context
from coaching_service.training.programs.models import LAST_DAY
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.items import content as items
from coaching_service.training.workouts.items.descriptions import describe_item
from coaching_service.web.page_queries import Search
from coaching_service.web.views.item_results import describe_results
from coaching_service.web.views.workout.add_items import load_choices, search_path
from coaching_service.web.views.workout.card_rows import used_columns
from coaching_service.web.views.workout.cards import card_variables, superset_labels
from coaching_service.web.views.workout.item_changes import circuits_of
from coaching_service.web.views.workout.lift_facts import load_lift_facts
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
        "lift_facts": await load_lift_facts(ctx, block),
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
    day = date.fromisoformat(block["date"])
    week = timedelta(days=7)
    return str(day + week if day <= date.max - week else day)
