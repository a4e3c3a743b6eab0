"""Availability over REST."""

from __future__ import annotations

from coaching_service.core.auth import CUSTOMERS, coach, customer
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict, Forbidden
from coaching_service.core.field_schemas import input_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import patch_of
from coaching_service.people.availability import service
from coaching_service.people.availability.models import Availability, AvailabilityChange, NewAvailability

_PATH = {"availabilityId": "The identifier of the period."}
routes = Routes(
    "/coach/customers/{customerId}/availability", tag="Availability", path_descriptions=_PATH, locks="customer"
)
own_routes = Routes("/customer/availability", tag="The client's own", path_descriptions=_PATH)

_CHANGE = patch_of(input_of(NewAvailability), name="AvailabilityChange")
_NEW = {"kind": "ill", "from": "2026-03-02", "until": "2026-03-08", "note": "Flu."}
_OWN_NEW = {"kind": "away", "from": "2026-07-06", "until": "2026-07-12", "note": "No gym there."}


@routes.get("", access=coach(CUSTOMERS.VIEW))
async def list_availability(ctx: Context, customer_id: ObjectId) -> list[Availability]:
    """List the periods in which a client cannot train as planned, in order."""
    return await service.list_availability(ctx, customer_id)


@routes.post("", access=coach(CUSTOMERS.EDIT), errors=(Conflict,), example=_NEW)
async def create_availability(ctx: Context, customer_id: ObjectId, body: NewAvailability) -> Availability:
    """Add a period in which a client cannot train as planned.

    Days of `away`, `injured` and `ill` are no workout days: they neither count nor are missed, and recurring check-ins
    leave them out. 409 `AVAILABILITY_OVERLAP` if another period of the client has one of the days.
    """
    return await service.create(ctx, customer_id, body)


@routes.patch(
    "/{availabilityId}", access=coach(CUSTOMERS.EDIT), body=_CHANGE, example={"until": "2026-05-06", "version": 0}
)
async def update_availability(
    ctx: Context, customer_id: ObjectId, availability_id: ObjectId, body: AvailabilityChange
) -> Availability:
    """Change a period in which a client cannot train as planned.

    Check-ins of days that are no longer part of it come back, from the client's today on.
    """
    return await service.update(ctx, customer_id, availability_id, body)


@routes.delete("/{availabilityId}", access=coach(CUSTOMERS.EDIT))
async def delete_availability(ctx: Context, customer_id: ObjectId, availability_id: ObjectId) -> None:
    """Delete a period in which a client cannot train as planned.

    Its check-ins come back, from the client's today on.
    """
    await service.delete(ctx, customer_id, availability_id)


@own_routes.get("", access=customer())
async def list_own_availability(ctx: Context) -> list[Availability]:
    """List the periods in which I cannot train as planned, in order."""
    return await service.list_availability(ctx, ctx.caller.id)


@own_routes.post("", access=customer(), errors=(Conflict,), example=_OWN_NEW)
async def create_own_availability(ctx: Context, body: NewAvailability) -> Availability:
    """Add a period in which I cannot train as planned.

    My coaches see it. 409 `AVAILABILITY_OVERLAP` if another period has one of the days.
    """
    return await service.create(ctx, ctx.caller.id, body)


@own_routes.patch(
    "/{availabilityId}",
    access=customer(),
    body=_CHANGE,
    errors=(Forbidden,),
    example={"until": "2026-06-03", "version": 0},
)
async def update_own_availability(ctx: Context, availability_id: ObjectId, body: AvailabilityChange) -> Availability:
    """Change a period in which I cannot train as planned.

    403 `NOT_THE_AUTHOR` if a coach has entered it.
    """
    return await service.update(ctx, ctx.caller.id, availability_id, body)


@own_routes.delete("/{availabilityId}", access=customer(), errors=(Forbidden,))
async def delete_own_availability(ctx: Context, availability_id: ObjectId) -> None:
    """Delete a period in which I cannot train as planned.

    403 `NOT_THE_AUTHOR` if a coach has entered it.
    """
    await service.delete(ctx, ctx.caller.id, availability_id)
