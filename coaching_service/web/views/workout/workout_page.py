"""The page of a workout: its items with their results, and renaming, moving, copying and deleting the workout."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from marshmallow import Schema

from coaching_service.core.auth.permissions import PROGRAMS
from coaching_service.core.database.context import Context
from coaching_service.core.field_schemas import input_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import patch_of
from coaching_service.training.programs.models import LAST_DAY
from coaching_service.training.schedule.models import Day
from coaching_service.training.templates import service as templates
from coaching_service.training.templates.models import TemplateDetails
from coaching_service.training.workouts.blocks import batches as block_batches
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import Block, BlockChange, BlockName
from coaching_service.training.workouts.items import content as items
from coaching_service.training.workouts.items.descriptions import describe_item
from coaching_service.web.pages import Redirect
from coaching_service.web.search_fields import Search
from coaching_service.web.views.item_results import describe_results
from coaching_service.web.views.workout.add_items import load_choices, search_path
from coaching_service.web.views.workout.card_rows import used_columns
from coaching_service.web.views.workout.cards import card_variables, superset_labels
from coaching_service.web.views.workout.circuits import circuits_of
from coaching_service.web.views.workout.lift_facts import load_lift_facts
from coaching_service.web.views.workout.owner_pages import BLOCK, Handler, WorkoutOwnerPages


def declare(owner_pages: WorkoutOwnerPages) -> Handler:
    """Declare the page of a workout and the forms that change the whole workout; returns the page's handler."""

    @owner_pages.get(BLOCK, permission=owner_pages.view, query=Search, template="workout/workout.html")
    async def workout_page(ctx: Context, owner_id: ObjectId, block_id: ObjectId, query: Search) -> dict[str, Any]:
        """A workout with its items and results, and what can be added to it."""
        variables = await owner_pages.load_variables(ctx, owner_id, block_id)
        block, unit = variables["block"], ctx.caller.company.load_unit
        can_edit = owner_pages.edit in ctx.caller.permissions
        move_range = owner_pages.move_range(block) if owner_pages.move_range else None
        move_targets = [block]
        if can_edit and block["items"] and move_range:
            blocks = await workouts.list_blocks(ctx, owner_pages.owner_type(owner_id), *move_range)
            regular = [other for other in blocks if other.get("checkInId") is None]
            move_targets = [other for other in regular if not other["isRest"] or other["_id"] == block_id]
        comments = await owner_pages.load_comments(ctx, owner_id, block_id) if owner_pages.load_comments else {}
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
            "address": lambda page: search_path(variables["block_path"], query | {"page": page}),
            "unit": unit,
        }

    if owner_pages.place_form is not None:
        _declare_changes(owner_pages, workout_page, owner_pages.place_form)
        _declare_saving(owner_pages, workout_page)
    return workout_page


def _same_day_next_week(block: Block) -> str | int:
    """Return the date or program day one week after a workout; its own at the end of the calendar."""
    if block["date"] is None:
        return min((block["day"] or 0) + 7, LAST_DAY)
    day = date.fromisoformat(block["date"])
    week = timedelta(days=7)
    return str(day + week if day <= date.max - week else day)


def _declare_changes(owner_pages: WorkoutOwnerPages, workout_page: Handler, place_form: type[Schema]) -> None:
    change_form = patch_of(input_of(BlockName), place_form, name="WorkoutForm")

    @owner_pages.post(BLOCK, form=change_form, on=workout_page)
    async def change_workout(ctx: Context, owner_id: ObjectId, block_id: ObjectId, form: BlockChange) -> Redirect:
        """Rename a workout or move it to another day; on the same day it keeps its position."""
        await workouts.update(ctx, owner_pages.owner_type(owner_id), block_id, form)
        return Redirect(owner_pages.block_path(owner_id, block_id), "Changes saved.")

    @owner_pages.post(f"{BLOCK}/copy", form=place_form(), on=workout_page)
    async def copy_workout(ctx: Context, owner_id: ObjectId, block_id: ObjectId, form: Mapping[str, Day]) -> Redirect:
        """Copy a workout to another day, without its results."""
        owner = owner_pages.owner_type(owner_id)
        block = await block_batches.copy(ctx, owner, block_id, form[owner.day_field])
        return Redirect(owner_pages.overview_path(owner_id, block), f"{block['name']} copied.")

    @owner_pages.get(f"{BLOCK}/delete", permission=owner_pages.edit, template="workout/delete.html")
    async def delete_workout_page(ctx: Context, owner_id: ObjectId, block_id: ObjectId) -> dict[str, Any]:
        """Ask for confirmation before a workout is deleted."""
        variables = await owner_pages.load_variables(ctx, owner_id, block_id)
        return {**variables, "recorded_items": sum(map(items.is_recorded, variables["block"]["items"]))}

    @owner_pages.post(f"{BLOCK}/delete", on=delete_workout_page)
    async def delete_workout(ctx: Context, owner_id: ObjectId, block_id: ObjectId) -> Redirect:
        """Delete a workout with its items and their results."""
        owner = owner_pages.owner_type(owner_id)
        block = await workouts.get(ctx, owner, block_id)
        await workouts.delete(ctx, owner, block_id)
        return Redirect(owner_pages.overview_path(owner_id, block), f"{block['name']} deleted.")


def _declare_saving(owner_pages: WorkoutOwnerPages, workout_page: Handler) -> None:
    @owner_pages.post(f"{BLOCK}/template", form=TemplateDetails, on=workout_page, permission=PROGRAMS.CREATE)
    async def save_as_template(ctx: Context, owner_id: ObjectId, block_id: ObjectId, form: TemplateDetails) -> Redirect:
        """Create a template of what a workout plans."""
        owner = owner_pages.owner_type(owner_id)
        template = await templates.create_from_block(ctx, owner, block_id, form)
        return Redirect(f"/app/templates/{template['_id']}", f"Template {template['name']} created.")
