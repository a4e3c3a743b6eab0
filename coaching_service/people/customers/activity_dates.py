"""Dates of clients that other features report: of their last activity, and of the last workout."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, now
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import figures_store, service, store
from coaching_service.people.customers.store import customers


async def record_activity(ctx: Context, customer_id: ObjectId) -> None:
    """Set `lastActivityDate` if the caller is the client; actions of a coach, even impersonating, do not change it.

    In both cases it serialises transactions as `lock` does. Raises NotFound if there is no such client.
    """
    if _is_action_of_client(ctx, customer_id):
        await customers.set_derived(ctx, {"_id": customer_id}, {"$set": {"lastActivityDate": now()}})
    else:
        await service.lock_and_mark_figures(ctx, customer_id)


async def lock_active(ctx: Context, customer_id: ObjectId) -> None:
    """Lock a client that the caller may access, as `lock` does, and set `lastActivityDate` as `record_activity` does.

    Raises what customers.get_visible raises.
    """
    if not _is_action_of_client(ctx, customer_id):
        await service.authorize_and_lock(ctx, customer_id)
    else:
        await _write(ctx, customer_id, {"$set": {"lastActivityDate": now()}})


async def set_last_workout_date(ctx: Context, customer_id: ObjectId, day: str | None) -> None:
    """Set the last date on which anything is scheduled for a client, and lock the client as `lock` does.

    Raises NotFound if there is no such client.
    """
    locked = figures_store.locked_clients(ctx).get(customer_id)
    if locked is None or locked["customerRoleData"]["lastWorkoutDate"] != day:
        await _write(ctx, customer_id, {"$set": {store.LAST_WORKOUT: day}})


async def extend_last_workout_date(ctx: Context, customer_id: ObjectId, day: str) -> None:
    """Set the last date on which anything is scheduled for a client to `day`, unless it is later.

    Locks the client as `lock` does. Raises NotFound if there is no such client.
    """
    locked = figures_store.locked_clients(ctx).get(customer_id)
    if locked is None or (locked["customerRoleData"]["lastWorkoutDate"] or "") < day:
        await _write(ctx, customer_id, {"$max": {store.LAST_WORKOUT: day}})


async def _write(ctx: Context, customer_id: ObjectId, change: Document) -> None:
    if not await figures_store.write_and_lock(ctx, {"_id": customer_id}, change):
        raise NotFound("customer")


def _is_action_of_client(ctx: Context, customer_id: ObjectId) -> bool:
    return ctx.caller.id == customer_id and ctx.caller.impersonated_by is None
