"""Compliance over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.progress.compliance import models, schemas, service
from coaching_service.progress.form_responses.schemas import OpenRange

routes = Routes("/coach/customers/{customerId}/compliance", tag="Compliance")


@routes.get("", access=coach(CUSTOMERS.VIEW), query=OpenRange(), returns=schemas.Compliance)
async def get_compliance(ctx: Context, customer_id: ObjectId, query: dict[str, str]) -> models.Compliance:
    """Read what a client did of what was scheduled.

    Without `from` and `to`: the last 30 days up to the client's today; less than 3,700 days at once. A workout day has
    a block that is not rest and has at least one item; it is completed when all its items are. Days up to yesterday
    count, and today once it is completed; later days are listed and not counted.
    """
    return await service.read_compliance(ctx, customer_id, query.get("from"), query.get("to"))
