"""Kept answers about clients: they are for those who may see the client."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.errors import NotFound
from coaching_service.core.idempotency import ResponseReplayed
from coaching_service.people.customers import service


async def require_customer_in_scope(ctx: Context, event: ResponseReplayed) -> None:
    """Raise Forbidden if a stored response is about a client outside the employee's scope."""
    if ctx.caller.customers_scope == "assigned":
        try:
            await service.get_visible(ctx, event.about)
        except NotFound:
            return
