"""Workout templates over REST."""

from __future__ import annotations

from coaching_service.core.auth import CUSTOMERS, PROGRAMS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict, NotFound
from coaching_service.core.field_schemas import input_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import patch_of
from coaching_service.training.templates import service
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.blocks.schemas import WorkoutBlock

routes = Routes(
    "/coach/workout-templates",
    tag="Workout templates",
    path_descriptions={"templateId": "The identifier of the workout template."},
)


@routes.get("", access=coach(PROGRAMS.VIEW))
async def list_workout_templates(ctx: Context, query: service.TemplateQuery) -> list[service.WorkoutTemplate]:
    """List workout templates by name."""
    return await service.search(
        ctx,
        kind=query.get("type"),
        tag=query.get("tag"),
        keywords=query.get("q", ""),
        updated_since=query.get("updatedSince"),
    )


@routes.post(
    "",
    access=coach(PROGRAMS.CREATE),
    errors=(NotFound,),
    example={
        "name": "Morning mobility",
        "type": "mobility",
        "tags": ["short"],
        "items": [{"type": "TASK", "taskFields": {"title": "Walk for ten minutes"}}],
    },
)
async def create_workout_template(ctx: Context, body: service.NewWorkoutTemplate) -> service.WorkoutTemplate:
    """Create a workout template."""
    return await service.create(ctx, body)


@routes.get("/{templateId}", access=coach(PROGRAMS.VIEW))
async def get_workout_template(ctx: Context, template_id: ObjectId) -> service.WorkoutTemplate:
    """Read a workout template."""
    return await service.get(ctx, template_id)


@routes.patch(
    "/{templateId}",
    access=coach(PROGRAMS.EDIT),
    locks="template",
    body=patch_of(input_of(service.NewWorkoutTemplate), name="WorkoutTemplateChange"),
    example={"tags": ["short", "home"], "version": 0},
)
async def update_workout_template(
    ctx: Context, template_id: ObjectId, body: service.TemplateChange
) -> service.WorkoutTemplate:
    """Change a workout template.

    `items` are replaced as a whole.
    """
    return await service.update(ctx, template_id, body)


@routes.delete("/{templateId}", access=coach(PROGRAMS.DELETE), locks="template")
async def delete_workout_template(ctx: Context, template_id: ObjectId) -> None:
    """Delete a workout template.

    Blocks that were created from it remain.
    """
    await service.delete(ctx, template_id)


@routes.post(
    "/{templateId}/apply",
    access=coach(CUSTOMERS.EDIT),
    locks="customer",
    returns=WorkoutBlock,
    errors=(Conflict,),
    example={"customerId": "66f0c0ffee0000000000abcd", "date": "2026-03-02"},
)
async def apply_workout_template(ctx: Context, template_id: ObjectId, body: service.TemplateApplication) -> Block:
    """Add a workout template to a client's calendar.

    The response is the new block. With `onConflict` skip, a day that has blocks is 409 and stays as it is.
    """
    return await service.apply(ctx, template_id, body["customerId"], body["date"], body["onConflict"])
