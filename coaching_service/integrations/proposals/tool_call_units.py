"""Tools about a client show and take loads in the unit that the client has chosen."""

from __future__ import annotations

from dataclasses import replace

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import service as customers


async def use_unit_of_client(ctx: Context, customer_id: ObjectId | None) -> Context:
    """Return a context in which loads are shown and taken in the unit of a client; the company's without a client."""
    if customer_id is None:
        return ctx
    own_unit = await customers.find_own_load_unit(ctx, customer_id)
    return replace(ctx, principal=replace(ctx.caller, own_load_unit=own_unit))
