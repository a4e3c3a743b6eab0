"""Reading one client over REST."""

from __future__ import annotations

from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.external_identity import ExternalId
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import service as customers
from coaching_service.progress.customer_profile import tools
from coaching_service.progress.customer_profile.tools import CUSTOMER_NOW, CustomerNow

routes = Routes("/coach/customers", tag="Customers")


@routes.get("/{customerId}", access=coach(CUSTOMERS.VIEW), returns=CUSTOMER_NOW, selects_fields=True)
async def get_customer(ctx: Context, customer_id: ObjectId) -> CustomerNow:
    """Read a client.

    The compliance rates are computed as of the client's today; the list has stored ones, at most 10 seconds older.
    """
    return await tools.get(ctx, customer_id)


@routes.get(
    "/by-external-id/{externalId}",
    access=coach(CUSTOMERS.VIEW),
    path_fields={"externalId": ExternalId()},
    returns=CUSTOMER_NOW,
    selects_fields=True,
)
async def get_customer_by_external_id(ctx: Context, external_id: str) -> CustomerNow:
    """Read the client with an external identifier."""
    return await tools.get(ctx, await customers.get_id_by_external_id(ctx, external_id))
