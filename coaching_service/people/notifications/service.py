"""Making notifications due, and withdrawing them: what other features call."""

from __future__ import annotations

from collections.abc import Sequence

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import transactional
from coaching_service.people.notifications import store
from coaching_service.people.notifications.models import DueNotification


async def make_due(ctx: Context, due: Sequence[DueNotification]) -> None:
    """Store notifications to send at their time, in the caller's transaction if there is one.

    A key is sent once: calling this again changes nothing but the time of what has not been sent yet. What is sent is
    computed at that time by the source of its kind (`features.NOTIFICATIONS`).
    """
    if ctx.recorder is not None and any(each.recipient["type"] == "client" for each in due):
        ctx.recorder.sends = True
    if due:
        await store.add(ctx, due, creates=True)


async def correct(ctx: Context, due: Sequence[DueNotification]) -> None:
    """Set the time of notifications that are pending; what is not stored is not made due."""
    if due:
        await store.add(ctx, due, creates=False)


@transactional
async def withdraw(ctx: Context, keys: Sequence[str]) -> None:
    """Do not send the notifications with these keys that have not been sent yet."""
    where = {"key": {"$in": list(keys)}, "outcome": None}
    await store.notifications.set_derived(ctx, where, {"$set": {"sendAt": None, "outcome": "dropped"}})
