"""Locks of clients in the database, with the derived fields that the same write sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Filter, now
from coaching_service.core.ids import ObjectId
from coaching_service.people.account import service as account
from coaching_service.people.customers import attention_events
from coaching_service.people.customers.models import Customer
from coaching_service.people.customers.store import BY_ID, LAST_WORKOUT, REASONS, SCORE, TRAINER, customers

_LOCKED = (TRAINER, LAST_WORKOUT, "loadsIn")  # what is read with a lock


async def lock_and_mark_figures(ctx: Context, customer_id: ObjectId, *, trainer: ObjectId | None = None) -> bool:
    """Write to the client, so that concurrent transactions conflict; returns whether there is such a client.

    With `trainer`, only one who is assigned to this coach. Once in a transaction is enough. The same write marks the
    client's figures as due, as `mark_figures_due` does.
    """
    if (locked := locked_clients(ctx).get(customer_id)) is not None:
        return trainer is None or locked["customerRoleData"]["assignedTo"] == trainer
    where = {"_id": customer_id} if trainer is None else {"_id": customer_id, TRAINER: trainer}
    return await write_and_lock(ctx, where, {})


async def lock_all(ctx: Context, ids: Sequence[ObjectId]) -> list[Customer]:
    """Lock several clients that the transaction has not locked yet; returns existing ones, each with the trainer."""
    where: Filter = {"_id": {"$in": list(ids)}}
    await customers.set_derived(ctx, where, mark())
    locked = await customers.find(ctx, where, fields=_LOCKED, hint=BY_ID)
    for customer in locked:
        _remember_lock(ctx, customer)
    return locked


async def write_and_lock(ctx: Context, where: Filter, operators: Document) -> bool:
    """Write to the client of `where`, if there is one, as `lock` does, together with derived fields.

    Raises Conflict if the client's loads have been converted to another unit since the request began.
    """
    locked = await customers.set_derived_and_read(ctx, where, operators | mark(), _LOCKED)
    if locked is None:
        return False
    _remember_lock(ctx, locked)
    return True


def _remember_lock(ctx: Context, locked: Customer) -> None:
    if locked.get("loadsIn", ctx.caller.company.load_unit) != ctx.caller.company.load_unit:
        raise account.load_unit_changed()
    locked_clients(ctx)[locked["_id"]] = locked


def locked_clients(ctx: Context) -> dict[ObjectId, Mapping[str, Any]]:
    """Return the clients that the transaction has locked, each with its trainer and the last scheduled date."""
    return ctx.recorder.locked if ctx.recorder is not None else {}


async def mark_figures_due(ctx: Context, ids: Sequence[ObjectId]) -> None:
    """Make the derived figures of clients invalid from now on; the lock of a client has done so."""
    if others := set(ids) - locked_clients(ctx).keys():
        await customers.set_derived(ctx, {"_id": {"$in": list(others)}}, mark())


async def follow_archiving(ctx: Context, ids: Sequence[ObjectId], *, archived: bool) -> None:
    """Clear the reasons of clients who are archived, or restored: the figures of these are due.

    What is being computed of them at the moment is not stored.
    """
    if archived:
        for client in await customers.find(ctx, {"_id": {"$in": list(ids)}}, fields=(REASONS,), hint=BY_ID):
            if "attention" in client:
                attention_events.report(ctx, client["_id"], client["attention"]["reasons"], [])
    await customers.set_derived(ctx, {"_id": {"$in": list(ids)}, SCORE: {"$gte": 0}}, {"$set": {SCORE: 0, REASONS: []}})
    await mark_figures_due(ctx, ids)


def mark() -> Document:
    """Return the update that makes the derived figures of clients invalid from now on.

    It counts the marks: figures that are computed in the meantime are not stored. The time of an earlier mark stays: a
    changed one would make MongoDB compute the keys of all indexes of clients.
    """
    return {"$min": {"figuresChangedAt": now()}, "$inc": {"scheduleChanges": 1}}
