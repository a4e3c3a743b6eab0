"""Workout blocks and items over REST: the same operations for the calendar of a client and for a program."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, Literal

from marshmallow import Schema

from coaching_service.core.auth import CUSTOMERS, Access, coach
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict, LegacyFailure, NotFound
from coaching_service.core.external_identity import ExternalId, IdentityFields, Upserted
from coaching_service.core.field_schemas import DeferredChange, input_of
from coaching_service.core.fields import take
from coaching_service.core.http.routes import Routes, list_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import DryRunField, complete_upsert, patch_of, upsert_of
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks import items as block_items
from coaching_service.training.workouts.blocks import models as block_models
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import WORKOUT_BLOCK
from coaching_service.training.workouts.blocks.service import ClientCalendar, ScheduleOwner
from coaching_service.training.workouts.items import models as item_models
from coaching_service.training.workouts.reports.exercises import add_last_times

ITEM_EXAMPLE = {
    "type": "EXERCISE",
    "exerciseId": "66f0c0ffee0000000000abcd",
    "exerciseSets": [{"type": "reps_load", "index": 1, "minPlannedReps": 8, "maxPlannedReps": 10, "load": 60}],
}
CHANGE_EXAMPLE = {"exerciseInstructions": "Pause at the bottom", "version": 1}
MOVE_EXAMPLE = {
    "source": {"wblockId": "66f0c0ffee0000000000abcd", "witemId": "66f0c0ffee0000000000abce"},
    "target": {"wblockId": "66f0c0ffee0000000000abcf", "index": 0},
}


class _BlocksQuery(block_models.BlockFilters, total=False):
    startDate: str
    endDate: str
    startDay: int
    endDay: int


class _SentBlock(block_models.NewBlock, DryRunField):
    pass


@dataclass(frozen=True)
class BlockRoutes:
    """The operations on the blocks and items of one kind of schedule owner.

    `routes` has a prefix that ends with the owner's identifier, the path parameter `owner_parameter`, from which
    `owner` makes the owner. `range_query` is the schema of a range of days, whose two parameters are `range_names`.
    `new_block`, `block_change` and `copy_target` are the schemas of request bodies; `block_example` is a block's body.
    `block_query` is what one block can be read with.
    """

    routes: Routes
    owner: Callable[[ObjectId], ScheduleOwner]
    owner_parameter: str
    view: Access
    edit: Access
    range_query: Schema
    range_names: tuple[Literal["startDate", "startDay"], Literal["endDate", "endDay"]]
    new_block: Schema
    block_change: Schema
    copy_target: Schema
    block_example: dict[str, Any]
    block_query: type[block_models.WorkoutBlockQuery] | None = None

    def declare(self) -> None:
        """Declare every operation."""
        get, post, patch, put, delete = (
            partial(self._declare, method)
            for method in (self.routes.get, self.routes.post, self.routes.patch, self.routes.put, self.routes.delete)
        )
        view: dict[str, Any] = {"access": self.view, "returns": WORKOUT_BLOCK}
        edit: dict[str, Any] = {"access": self.edit, "returns": WORKOUT_BLOCK}
        options = view | {"query": self.range_query, "returns": list_of(WORKOUT_BLOCK), "on_worker_thread": True}
        options["selects_fields"] = True
        get("/wblock", self.list_blocks, client="listWorkoutBlocks", program="listProgramBlocks", **options)
        options = edit | {"body": self.new_block, "example": {**self.block_example, "items": [ITEM_EXAMPLE]}}
        post("/wblocks", create_block, client="createWorkoutBlock", program="createProgramBlock", **options)
        block = "/wblocks/{wblockId}"
        options = view | {"query": self.block_query, "selects_fields": True}
        get(block, get_block, client="getWorkoutBlock", program="getProgramBlock", **options)
        options = edit | {"body": self.block_change, "example": {"name": "Upper body", "version": 0}}
        patch(block, update_block, client="updateWorkoutBlock", program="updateProgramBlock", **options)
        delete(block, delete_block, client="deleteWorkoutBlock", program="deleteProgramBlock", access=self.edit)
        example = {name: value for name, value in self.block_example.items() if name != "name"}
        options = edit | {"body": self.copy_target, "example": example}
        post(f"{block}/copy", copy_block, client="copyWorkoutBlock", program="copyProgramBlock", **options)

        items, item = f"{block}/witems", f"{block}/witems/{{witemId}}"
        options = edit | {"returns": item_models.ITEM_RESPONSE, "body": item_models.NEW_ITEM, "example": ITEM_EXAMPLE}
        post(items, create_item, client="createWorkoutItem", program="createProgramItem", **options)
        options |= {"body": item_models.ITEM_CHANGE, "example": CHANGE_EXAMPLE}
        patch(item, update_item, client="updateWorkoutItem", program="updateProgramItem", **options)
        delete(item, delete_item, client="deleteWorkoutItem", program="deleteProgramItem", access=self.edit)
        errors, codes = (Conflict, LegacyFailure), ("WITEM_MOVE_INCOMPLETE",)
        options = edit | {
            "body": block_models.ItemMove,
            "errors": errors,
            "legacy_codes": codes,
            "example": MOVE_EXAMPLE,
        }
        put("/witems/move", move_item, client="moveWorkoutItem", program="moveProgramItem", **options)

    def _declare(
        self,
        method: Callable[..., Any],
        path: str,
        operation: Callable[..., Awaitable[Any]],
        *,
        client: str,
        program: str,
        **options: Any,
    ) -> None:
        """Declare the route of an operation, which gets the owner in place of the owner's identifier.

        `client` and `program` are its operation identifiers on the calendar of a client and in a program.
        """

        @wraps(operation)
        async def handler(ctx: Context, **arguments: Any) -> Any:
            owner = self.owner(arguments.pop(self.owner_parameter))
            return await operation(ctx, owner, **arguments)

        operation_id = client if self.owner is ClientCalendar else program
        method(path, operation_id=operation_id, **options)(handler)

    async def list_blocks(self, ctx: Context, owner: ScheduleOwner, query: _BlocksQuery) -> list[block_models.Block]:
        """Read the calendar.

        Every block from the first to the last day, both included, with its items, in order.
        """
        first, last = self.range_names
        return await workouts.list_blocks(
            ctx,
            owner,
            query[first],
            query[last],
            external_id=query.get("externalId"),
            updated_since=query.get("updatedSince"),
            metadata=query.get("metadata", {}),
        )


async def create_block(ctx: Context, owner: ScheduleOwner, body: _SentBlock) -> block_models.Block:
    """Schedule a workout block with its items.

    All or nothing; a message about an item names it (`items.2.exerciseId`). Forms are copied as they are now. With
    `dryRun` the response is 200 and the block as it would be created, without identifiers.
    """
    return await batches.create_block(ctx, owner, take(block_models.NewBlock, body), dry_run=body["dryRun"])


async def get_block(
    ctx: Context, owner: ScheduleOwner, wblock_id: ObjectId, query: block_models.WorkoutBlockQuery | None = None
) -> block_models.Block:
    """Read a workout block with its items."""
    block = await workouts.get(ctx, owner, wblock_id)
    if query and query.get("include") == "lastTime" and block["customerId"] is not None:
        [block] = await add_last_times(ctx, block["customerId"], [block])
    return block


async def update_block(
    ctx: Context, owner: ScheduleOwner, wblock_id: ObjectId, body: block_models.BlockChange
) -> block_models.Block:
    """Change a workout block.

    On another day it goes after the blocks that are already there, or to the position `order`.
    """
    return await workouts.update(ctx, owner, wblock_id, body)


async def delete_block(ctx: Context, owner: ScheduleOwner, wblock_id: ObjectId) -> None:
    """Delete a workout block with its items."""
    await workouts.delete(ctx, owner, wblock_id)


async def copy_block(
    ctx: Context, owner: ScheduleOwner, wblock_id: ObjectId, body: block_models.SentDay
) -> block_models.Block:
    """Copy a workout block to another day.

    The plan is the same, with nothing done.
    """
    return await batches.copy(ctx, owner, wblock_id, body[owner.day_field])


async def create_item(
    ctx: Context, owner: ScheduleOwner, wblock_id: ObjectId, body: item_models.ItemInput
) -> item_models.WorkItem:
    """Add an item to a workout block.

    It goes to the end; the response is the item. A form is copied as it is now.
    """
    return await block_items.create_item(ctx, owner, wblock_id, body)


async def update_item(
    ctx: Context, owner: ScheduleOwner, wblock_id: ObjectId, witem_id: ObjectId, body: DeferredChange
) -> item_models.WorkItem:
    """Change a workout item.

    Its type cannot be changed; fields of other types are ignored. `version` is the block's.
    """
    return await block_items.update_item(ctx, owner, wblock_id, witem_id, body)


async def delete_item(ctx: Context, owner: ScheduleOwner, wblock_id: ObjectId, witem_id: ObjectId) -> None:
    """Remove an item from a workout block."""
    await block_items.delete_item(ctx, owner, wblock_id, witem_id)


async def move_item(ctx: Context, owner: ScheduleOwner, body: block_models.ItemMove) -> block_models.Block:
    """Move an item within a block or to another.

    The response is the target block, whose `version` may be sent. An item that is no longer in `source` is 409; without
    `source` or `target` the response is 500 with `code` WITEM_MOVE_INCOMPLETE.
    """
    return await block_items.move_item(ctx, owner, body["source"], body["target"], body.get("version"))


# --- The calendar of a client -----------------------------------------------------------------------------------------


routes = Routes("/coach/customers/{customerId}", tag="Workouts", locks="customer")

BlockRoutes(
    routes=routes,
    owner=ClientCalendar,
    owner_parameter="customer_id",
    view=coach(CUSTOMERS.VIEW),
    edit=coach(CUSTOMERS.EDIT),
    range_query=block_models.CALENDAR_QUERY(),
    range_names=("startDate", "endDate"),
    new_block=block_models.NEW_WORKOUT_BLOCK(),
    block_change=patch_of(
        input_of(block_models.WorkoutBlockFields, IdentityFields),
        input_of(block_models.BlockPosition),
        name="WorkoutBlockChange",
    ),
    copy_target=block_models.WORKOUT_BLOCK_COPY(),
    block_example={"name": "Lower body", "date": "2026-03-02"},
    block_query=block_models.WorkoutBlockQuery,
).declare()


@routes.post(
    "/wblocks/shift",
    access=coach(CUSTOMERS.EDIT),
    status=200,
    body=block_models.WORKOUT_BLOCK_SHIFT(),
    rolls_back=True,
    example={"from": "2026-03-02", "days": 7},
)
async def shift_workout_blocks(
    ctx: Context, customer_id: ObjectId, body: block_models.WorkoutBlockShift
) -> block_models.WorkoutBlockShiftResult:
    """Shift a client's workout blocks.

    Every block from that date on with nothing done moves by that number of days, back if it is negative.
    """
    return {"shifted": await workouts.shift(ctx, ClientCalendar(customer_id), body["from"], body["days"])}


@routes.get(
    "/wblocks/by-external-id/{externalId}",
    access=coach(CUSTOMERS.VIEW),
    path_fields={"externalId": ExternalId()},
    query=block_models.WORKOUT_BLOCK_QUERY(),
    returns=block_models.WORKOUT_BLOCK,
    selects_fields=True,
)
async def get_workout_block_by_external_id(
    ctx: Context, customer_id: ObjectId, external_id: str, query: block_models.WorkoutBlockQuery
) -> block_models.Block:
    """Read a client's workout block with an external identifier."""
    calendar = ClientCalendar(customer_id)
    await calendar.require_access(ctx)
    block = await workouts.get_named(ctx, calendar, None, external_id)
    return await get_block(ctx, calendar, block["_id"], query)


@routes.put(
    "/wblocks/by-external-id/{externalId}",
    access=coach(CUSTOMERS.EDIT),
    path_fields={"externalId": ExternalId()},
    body=upsert_of(block_models.NEW_WORKOUT_BLOCK, name="WorkoutBlockUpsert"),
    returns=block_models.WORKOUT_BLOCK,
    errors=(NotFound, Conflict),
    rolls_back=True,
    example={"name": "Lower body", "date": "2026-03-02"},
)
async def upsert_workout_block(
    ctx: Context, customer_id: ObjectId, external_id: str, body: block_models.BlockUpsert
) -> Upserted:
    """Create or change a client's workout block with an external identifier.

    201 if it is new; otherwise 200, as changed by PATCH, and unchanged if it has all of it already. `items` replace
    the items of the block, except for equal ones at the same position: 409 `WORKOUT_LOGGED` if something in it is done.
    """
    calendar = ClientCalendar(customer_id)
    return await batches.upsert_external(
        ctx, calendar, external_id, body, lambda: complete_upsert(block_models.SCHEDULED_WORKOUT_BLOCK(), body)
    )
