"""Workout blocks and items over REST: the same operations for the calendar of a client and for a program."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Any

from marshmallow import Schema

from coaching_service.core.auth import CUSTOMERS, Area, coach
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict, LegacyFailure, NotFound
from coaching_service.core.external_identity import ExternalId, IdentityFields, Upserted, upsert
from coaching_service.core.fields import input_of, take
from coaching_service.core.http.routes import Routes, list_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import DryRunField, complete_upsert, patch_of, upsert_of
from coaching_service.training.workouts import store
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks import items as block_items
from coaching_service.training.workouts.blocks import models as block_models
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import WORKOUT_BLOCK, Block, WorkoutBlockFields
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


def declare_block_routes(
    routes: Routes,
    owner: Callable[[ObjectId], ScheduleOwner],
    area: Area,
    *,
    range_query: Schema,
    new_block: Schema,
    block_change: Schema,
    copy_target: Schema,
    block_example: dict[str, Any],
    block_query: type[block_models.WorkoutBlockQuery] | None = None,
) -> None:
    """Declare the operations on the blocks and items of one kind of schedule owner.

    `routes` has a prefix that ends with the identifier from which `owner` makes the owner. `range_query` is the schema
    of a range of days, `block_query` what one block can be read with. `new_block`, `block_change` and `copy_target` are
    the schemas of request bodies; `block_example` is a block's body.
    """

    def declare(
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
        parameter, operation_id = ("customer_id", client) if owner is ClientCalendar else ("program_id", program)

        @wraps(operation)
        async def handler(ctx: Context, **arguments: Any) -> Any:
            return await operation(ctx, owner(arguments.pop(parameter)), **arguments)

        method(path, operation_id=operation_id, **options)(handler)

    get, post, patch, put, delete = (
        partial(declare, method) for method in (routes.get, routes.post, routes.patch, routes.put, routes.delete)
    )
    view: dict[str, Any] = {"access": coach(area.VIEW), "returns": WORKOUT_BLOCK, "selects_fields": True}
    edit: dict[str, Any] = {"access": coach(area.EDIT), "returns": WORKOUT_BLOCK}
    options = view | {"query": range_query, "returns": list_of(WORKOUT_BLOCK), "on_worker_thread": True}
    get("/wblock", list_blocks, client="listWorkoutBlocks", program="listProgramBlocks", **options)
    options = edit | {"body": new_block, "example": {**block_example, "items": [ITEM_EXAMPLE]}}
    post("/wblocks", create_block, client="createWorkoutBlock", program="createProgramBlock", **options)
    block = "/wblocks/{wblockId}"
    get(block, get_block, client="getWorkoutBlock", program="getProgramBlock", query=block_query, **view)
    options = edit | {"body": block_change, "example": {"name": "Upper body", "version": 0}}
    patch(block, workouts.update, client="updateWorkoutBlock", program="updateProgramBlock", **options)
    delete(block, workouts.delete, client="deleteWorkoutBlock", program="deleteProgramBlock", access=edit["access"])
    example = {name: value for name, value in block_example.items() if name != "name"}
    options = edit | {"body": copy_target, "example": example}
    post(f"{block}/copy", copy_block, client="copyWorkoutBlock", program="copyProgramBlock", **options)

    items, item = f"{block}/witems", f"{block}/witems/{{witemId}}"
    options = edit | {"returns": item_models.ITEM_RESPONSE, "body": item_models.NEW_ITEM, "example": ITEM_EXAMPLE}
    post(items, block_items.create_item, client="createWorkoutItem", program="createProgramItem", **options)
    options |= {"body": item_models.ITEM_CHANGE, "example": CHANGE_EXAMPLE}
    patch(item, block_items.update_item, client="updateWorkoutItem", program="updateProgramItem", **options)
    names = {"client": "deleteWorkoutItem", "program": "deleteProgramItem"}
    delete(item, block_items.delete_item, access=edit["access"], **names)
    options = edit | {"body": block_models.ItemMove, "errors": (Conflict, LegacyFailure), "example": MOVE_EXAMPLE}
    options["legacy_codes"] = ("WITEM_MOVE_INCOMPLETE",)
    put("/witems/move", move_item, client="moveWorkoutItem", program="moveProgramItem", **options)


async def list_blocks(ctx: Context, owner: ScheduleOwner, query: _BlocksQuery) -> list[Block]:
    """Read the calendar.

    Every block from the first to the last day, both included, with its items, in order.
    """
    is_calendar = owner.day_field == "date"
    days = (query["startDate"], query["endDate"]) if is_calendar else (query["startDay"], query["endDay"])
    return await workouts.list_blocks(
        ctx,
        owner,
        *days,
        external_id=query.get("externalId"),
        updated_since=query.get("updatedSince"),
        metadata=query.get("metadata", {}),
    )


async def create_block(ctx: Context, owner: ScheduleOwner, body: _SentBlock) -> Block:
    """Schedule a workout block with its items.

    All or nothing; a message about an item names it (`items.2.exerciseId`). Forms are copied as they are now. With
    `dryRun` the response is 200 and the block as it would be created, without identifiers.
    """
    return await batches.create_block(ctx, owner, take(block_models.NewBlock, body), dry_run=body["dryRun"])


async def get_block(
    ctx: Context, owner: ScheduleOwner, wblock_id: ObjectId, query: block_models.WorkoutBlockQuery | None = None
) -> Block:
    """Read a workout block with its items."""
    block = await workouts.get(ctx, owner, wblock_id)
    if query and query.get("include") == "lastTime" and block["customerId"] is not None:
        [block] = await add_last_times(ctx, block["customerId"], [block])
    return block


async def copy_block(ctx: Context, owner: ScheduleOwner, wblock_id: ObjectId, body: block_models.SentDay) -> Block:
    """Copy a workout block to another day.

    The plan is the same, with nothing done.
    """
    return await batches.copy(ctx, owner, wblock_id, body[owner.day_field])


async def move_item(ctx: Context, owner: ScheduleOwner, body: block_models.ItemMove) -> Block:
    """Move an item within a block or to another.

    The response is the target block, whose `version` may be sent. An item that is no longer in `source` is 409; without
    `source` or `target` the response is 500 with `code` WITEM_MOVE_INCOMPLETE.
    """
    return await block_items.move_item(ctx, owner, body["source"], body["target"], body.get("version"))


# --- The calendar of a client -----------------------------------------------------------------------------------------


routes = Routes("/coach/customers/{customerId}", tag="Workouts", locks="customer")

declare_block_routes(
    routes,
    ClientCalendar,
    CUSTOMERS,
    range_query=block_models.CALENDAR_QUERY(),
    new_block=block_models.NEW_WORKOUT_BLOCK(),
    block_change=patch_of(
        input_of(WorkoutBlockFields, IdentityFields), input_of(block_models.BlockPosition), name="WorkoutBlockChange"
    ),
    copy_target=block_models.WORKOUT_BLOCK_COPY(),
    block_example={"name": "Lower body", "date": "2026-03-02"},
    block_query=block_models.WorkoutBlockQuery,
)


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
) -> Block:
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

    async def find(tx: Context) -> ObjectId | None:
        await calendar.require_access(tx)
        block = await store.find_by_external_id(tx, calendar.block_filter, external_id)
        return None if block is None else block["_id"]

    async def create(tx: Context) -> Block:
        new = complete_upsert(block_models.SCHEDULED_WORKOUT_BLOCK(), body)
        return await batches.create_block(tx, calendar, new | {"externalId": external_id})

    async def change(tx: Context, block_id: ObjectId) -> Block:
        return await batches.change_block(tx, calendar, block_id, body)

    return await upsert(ctx, find, change, create, (CUSTOMERS.EDIT, CUSTOMERS.EDIT))
