"""Changing a workout on a day of a calendar or program: renaming, moving, copying, deleting, and saving it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coaching_service.core.auth.access import PROGRAMS
from coaching_service.core.database.context import Context
from coaching_service.core.field_schemas import input_of
from coaching_service.core.validation import patch_of
from coaching_service.training.schedule.models import Day
from coaching_service.training.templates import service as templates
from coaching_service.training.templates.models import TemplateDetails
from coaching_service.training.workouts.blocks import batches as block_batches
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import BlockChange, BlockName
from coaching_service.training.workouts.items import content as items
from coaching_service.web.pages import Redirect
from coaching_service.web.views.workout.owner_pages import BLOCK, OpenedWorkout, WorkoutPages

pages = WorkoutPages()


@pages.post(BLOCK, form_of=lambda of: patch_of(input_of(BlockName), of.place_form, name="WorkoutForm"))
async def change_workout(ctx: Context, workout: OpenedWorkout, form: BlockChange) -> Redirect:
    """Rename a workout or move it to another day; on the same day it keeps its position."""
    await workouts.update(ctx, workout.owner, workout.block_id, form)
    return Redirect(workout.path, "Changes saved.")


@pages.post(f"{BLOCK}/copy", form_of=lambda of: of.place_form())
async def copy_workout(ctx: Context, workout: OpenedWorkout, form: Mapping[str, Day]) -> Redirect:
    """Copy a workout to another day, without its results."""
    block = await block_batches.copy(ctx, workout.owner, workout.block_id, form[workout.owner.day_field])
    return Redirect(workout.of.overview_path(workout.owner_id, block), f"{block['name']} copied.")


@pages.get(f"{BLOCK}/delete", template="workout/delete.html")
async def delete_workout_page(ctx: Context, workout: OpenedWorkout) -> dict[str, Any]:
    """Ask for confirmation before a workout is deleted."""
    variables = await workout.load_variables(ctx)
    return {**variables, "recorded_items": sum(map(items.is_recorded, variables["block"]["items"]))}


@pages.post(f"{BLOCK}/delete", on=delete_workout_page, deletes=True)
async def delete_workout(ctx: Context, workout: OpenedWorkout) -> Redirect:
    """Delete a workout with its items and their results."""
    block = await workout.read(ctx)
    await workouts.delete(ctx, workout.owner, workout.block_id)
    return Redirect(workout.of.overview_path(workout.owner_id, block), f"{block['name']} deleted.")


@pages.post(f"{BLOCK}/template", form=TemplateDetails, permission=PROGRAMS.CREATE)
async def save_as_template(ctx: Context, workout: OpenedWorkout, form: TemplateDetails) -> Redirect:
    """Create a template of what a workout plans."""
    template = await templates.create_from_block(ctx, workout.owner, workout.block_id, form)
    return Redirect(f"/app/templates/{template['_id']}", f"Template {template['name']} created.")
