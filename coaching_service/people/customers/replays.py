"""Kept answers about clients: they are for those who may see the client."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import service


async def require_seen(ctx: Context, about: ObjectId) -> None:
    """Raise Forbidden when an answer is about a client outside an employee's scope; it may be about no client."""
    if ctx.caller.customers_scope == "assigned":
        try:
            await service.visible(ctx, about)
        except NotFound:
            return
