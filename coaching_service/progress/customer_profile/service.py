"""A client with figures computed as of today."""

from __future__ import annotations

from typing import Annotated

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.external_identity import IdentityResult
from coaching_service.core.field_schemas import output_of
from coaching_service.core.fields import Description
from coaching_service.core.ids import ObjectId
from coaching_service.people.availability import service as availability
from coaching_service.people.availability.models import Availability
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import CustomerProfile
from coaching_service.progress.compliance import service as compliance

# --- One client as it is returned -------------------------------------------------------------------------------------


class CustomerNow(CustomerProfile):
    """A client with figures as of today."""

    availability: Annotated[
        Availability | None,
        Description("The period in which the client cannot train as planned, or the next one; null without one."),
    ]


CUSTOMER_NOW = output_of(CustomerNow, IdentityResult, with_private=("companyId",))


async def get(ctx: Context, customer_id: ObjectId) -> CustomerNow:
    """Return a client with compliance rates and last trained date computed now instead of the stored ones.

    Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    customer = await customers.get(ctx, customer_id)
    today = ctx.caller.today(customer["timezone"])
    figures, period = await gather_reads(
        ctx,
        compliance.compute_figures(ctx, customer_id, today, customer["timezone"] or ctx.caller.company.timezone),
        availability.find_present_or_next(ctx, customer_id, today),
    )
    customer["customerRoleData"] = {**customer["customerRoleData"], **figures}
    return {**customer, "availability": period}
