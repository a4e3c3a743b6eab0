"""Dates of clients that other features report: of their last activity, and of the last workout."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import service, store


async def record_activity(ctx: Context, customer_id: ObjectId) -> None:
    """Set `lastActivityDate` if the caller is the client; actions of a coach, even impersonating, do not change it.

    In both cases it serialises transactions as `lock` does. Raises NotFound if there is no such client.
    """
    if ctx.caller.id == customer_id and ctx.caller.impersonated_by is None:
        await store.set_last_activity(ctx, customer_id)
    else:
        await service.lock(ctx, customer_id)


async def set_last_workout_date(ctx: Context, customer_id: ObjectId, day: str | None) -> None:
    """Set the last date on which anything is scheduled for a client, and lock the client as `lock` does.

    Raises NotFound if there is no such client.
    """
    if not await store.set_last_workout_date(ctx, customer_id, day):
        raise NotFound("customer")


async def extend_last_workout_date(ctx: Context, customer_id: ObjectId, day: str) -> None:
    """Set the last date on which anything is scheduled for a client to `day`, unless it is later.

    Locks the client as `lock` does. Raises NotFound if there is no such client.
    """
    if not await store.extend_last_workout_date(ctx, customer_id, day):
        raise NotFound("customer")
