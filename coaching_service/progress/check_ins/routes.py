"""Recurring check-ins over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.progress.check_ins import models, service

routes = Routes(
    "/coach/customers/{customerId}/check-ins",
    tag="Check-ins",
    locks="customer",
    path_descriptions={"checkInId": "The identifier of the recurring check-in."},
)


@routes.get("", access=coach(CUSTOMERS.VIEW))
async def list_check_ins(ctx: Context, customer_id: ObjectId) -> list[models.CheckIn]:
    """List the recurring check-ins of a client, oldest first."""
    return await service.list_check_ins(ctx, customer_id)


@routes.post(
    "",
    access=coach(CUSTOMERS.EDIT),
    body=models.NEW_CHECK_IN(),
    example={"formId": "66f0c0ffee0000000000abcd", "weekday": 7, "startDate": "2026-03-02"},
)
async def create_check_in(ctx: Context, customer_id: ObjectId, body: models.NewCheckIn) -> models.CheckIn:
    """Add a recurring check-in.

    It is scheduled on the calendar for 28 days, from the client's today on, and then day by day, in workout blocks of
    its own with `checkInId`. Compliance, session counts and operations on the schedule ignore these.
    """
    return await service.create(ctx, customer_id, body)


@routes.get("/{checkInId}", access=coach(CUSTOMERS.VIEW))
async def get_check_in(ctx: Context, customer_id: ObjectId, check_in_id: ObjectId) -> models.CheckIn:
    """Read a recurring check-in of a client.

    One that has been ended is not found.
    """
    return await service.get(ctx, customer_id, check_in_id)


@routes.delete("/{checkInId}", access=coach(CUSTOMERS.EDIT))
async def delete_check_in(ctx: Context, customer_id: ObjectId, check_in_id: ObjectId) -> None:
    """End a recurring check-in.

    Its blocks from the client's today on with nothing done are removed; past and answered ones stay.
    """
    await service.delete(ctx, customer_id, check_in_id)
