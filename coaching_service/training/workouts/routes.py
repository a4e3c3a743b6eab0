"""Workout blocks and items of a client over REST."""

from __future__ import annotations

from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict, NotFound
from coaching_service.core.external_identity import ExternalId, IdentityFields, Upserted
from coaching_service.core.field_schemas import input_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import complete_upsert, patch_of, upsert_of
from coaching_service.training.workouts.blocks import batches, models, service
from coaching_service.training.workouts.blocks import schemas as block_schemas
from coaching_service.training.workouts.blocks.service import ClientCalendar
from coaching_service.training.workouts.shared_routes import BlockRoutes, get_block

routes = Routes("/coach/customers/{customerId}", tag="Workouts", locks="customer")

BlockRoutes(
    routes=routes,
    owner=ClientCalendar,
    owner_parameter="customer_id",
    view=coach(CUSTOMERS.VIEW),
    edit=coach(CUSTOMERS.EDIT),
    range_query=block_schemas.CalendarQuery(),
    range_names=("startDate", "endDate"),
    new_block=block_schemas.NewWorkoutBlock(),
    block_change=patch_of(
        input_of(models.WorkoutBlockFields, IdentityFields), input_of(models.BlockPosition), name="WorkoutBlockChange"
    ),
    copy_target=block_schemas.WorkoutBlockCopy(),
    block_example={"name": "Lower body", "date": "2026-03-02"},
    block_query=models.WorkoutBlockQuery,
).declare()


@routes.post(
    "/wblocks/shift",
    access=coach(CUSTOMERS.EDIT),
    status=200,
    body=block_schemas.WorkoutBlockShift(),
    rolls_back=True,
    example={"from": "2026-03-02", "days": 7},
)
async def shift_workout_blocks(
    ctx: Context, customer_id: ObjectId, body: models.WorkoutBlockShift
) -> models.WorkoutBlockShiftResult:
    """Shift a client's workout blocks.

    Every block from that date on with nothing done moves by that number of days, back if it is negative.
    """
    return {"shifted": await service.shift(ctx, ClientCalendar(customer_id), body["from"], body["days"])}


@routes.get(
    "/wblocks/by-external-id/{externalId}",
    access=coach(CUSTOMERS.VIEW),
    path_fields={"externalId": ExternalId()},
    query=block_schemas.WorkoutBlockQuery(),
    returns=block_schemas.WorkoutBlock,
    selects_fields=True,
)
async def get_workout_block_by_external_id(
    ctx: Context, customer_id: ObjectId, external_id: str, query: models.WorkoutBlockQuery
) -> models.Block:
    """Read a client's workout block with an external identifier."""
    calendar = ClientCalendar(customer_id)
    await calendar.require_access(ctx)
    block = await service.get_named(ctx, calendar, None, external_id)
    return await get_block(ctx, calendar, block["_id"], query)


@routes.put(
    "/wblocks/by-external-id/{externalId}",
    access=coach(CUSTOMERS.EDIT),
    path_fields={"externalId": ExternalId()},
    body=upsert_of(block_schemas.NewWorkoutBlock, name="WorkoutBlockUpsert"),
    returns=block_schemas.WorkoutBlock,
    errors=(NotFound, Conflict),
    rolls_back=True,
    example={"name": "Lower body", "date": "2026-03-02"},
)
async def upsert_workout_block(
    ctx: Context, customer_id: ObjectId, external_id: str, body: models.BlockUpsert
) -> Upserted:
    """Create or change a client's workout block with an external identifier.

    201 if it is new; otherwise 200, as changed by PATCH, and unchanged if it has all of it already. `items` replace
    the items of the block, except for equal ones at the same position: 409 `WORKOUT_LOGGED` if something in it is done.
    """
    calendar = ClientCalendar(customer_id)
    return await batches.upsert_external(
        ctx, calendar, external_id, body, lambda: complete_upsert(block_schemas.ScheduledWorkoutBlock(), body)
    )
