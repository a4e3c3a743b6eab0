"""How many clients a company has: kept in the transaction that changes it, spread over a few documents so that
concurrent changes seldom meet."""

from __future__ import annotations

import secrets

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Documents

_SLOTS = 8

_totals = Documents[Document]("customerTotals", (Index(("slot",), unique=True),))


async def add(ctx: Context, *, archived: bool, count: int) -> None:
    """Count `count` clients more (or fewer) in the caller's transaction."""
    field = "archived" if archived else "active"
    await _totals.increment(ctx, {"slot": secrets.randbelow(_SLOTS)}, {field: count})


async def of(ctx: Context, *, archived: bool) -> int:
    """How many clients the company has, archived or not."""
    field = "archived" if archived else "active"
    return sum(slot.get(field, 0) for slot in await _totals.find(ctx, {}, fields=(field,)))
