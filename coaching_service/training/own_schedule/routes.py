"""Changes of clients to their calendar, over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict, NotFound
from coaching_service.core.field_schemas import input_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import patch_of
from coaching_service.training.own_schedule import service
from coaching_service.training.own_schedule.models import NewOwnWorkout, OwnWorkoutChange, WorkoutMove
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.blocks.schemas import WorkoutBlock
from coaching_service.training.workouts.shared_routes import ITEM_EXAMPLE

own_routes = Routes("/customer/wblocks", tag="The client's own")


@own_routes.put(
    "/{wblockId}/date", access=customer(), returns=WorkoutBlock, errors=(Conflict,), example={"date": "2026-03-02"}
)
async def move_own_workout_block(ctx: Context, wblock_id: ObjectId, body: WorkoutMove) -> Block:
    """Move a workout of mine to another day.

    To a visible day at most 7 days from the coach's, which `plannedDate` states afterwards; it goes after the workouts
    of that day. Something done in it is 409 `WORKOUT_LOGGED`; 403 `CLIENT_MOVES_OFF` if the account has no
    `clientsMayMove`.
    """
    return await service.move(ctx, wblock_id, body["date"], body.get("version"))


@own_routes.post(
    "",
    access=customer(),
    returns=WorkoutBlock,
    errors=(NotFound,),
    example={"name": "Run with friends", "date": "2026-03-07", "items": [ITEM_EXAMPLE]},
)
async def create_own_workout_block(ctx: Context, body: NewOwnWorkout) -> Block:
    """Add a workout of my own.

    `createdBy` is `client`; compliance counts its day only when it is completed. 403 `CLIENT_WORKOUTS_OFF` if the
    account has no `clientsMayAdd`.
    """
    return await service.create(ctx, body)


@own_routes.patch(
    "/{wblockId}",
    access=customer(),
    body=patch_of(input_of(NewOwnWorkout), name="OwnWorkoutChange"),
    returns=WorkoutBlock,
    errors=(Conflict,),
    example={"name": "Run in the park", "version": 0},
)
async def update_own_workout_block(ctx: Context, wblock_id: ObjectId, body: OwnWorkoutChange) -> Block:
    """Change a workout that I added.

    `items` replace its items: 409 `WORKOUT_LOGGED` if something in it is done. A workout of a coach is 403
    `PLANNED_BY_COACH`.
    """
    return await service.update(ctx, wblock_id, body)


@own_routes.delete("/{wblockId}", access=customer())
async def delete_own_workout_block(ctx: Context, wblock_id: ObjectId) -> None:
    """Delete a workout that I added, with what was logged in it."""
    await service.delete(ctx, wblock_id)
