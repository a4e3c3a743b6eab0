"""A client with figures computed as of today."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import CustomerProfile
from coaching_service.progress.compliance import service as compliance


async def get(ctx: Context, customer_id: ObjectId) -> CustomerProfile:
    """Return a client with compliance rates and last trained date computed now instead of the stored ones.

    Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    customer = await customers.get(ctx, customer_id)
    figures = await compliance.compute_figures(ctx, [{"_id": customer_id, "timezone": customer["timezone"]}])
    customer["customerRoleData"] = {**customer["customerRoleData"], **figures[customer_id]}
    return customer
