"""Compliance over REST."""

from __future__ import annotations

from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import CursorPage
from coaching_service.progress.compliance import service
from coaching_service.progress.compliance.models import (
    COMPLIANCE_LIST_QUERY,
    ClientCompliance,
    Compliance,
    ComplianceListQuery,
)
from coaching_service.progress.form_responses import OPEN_RANGE, OpenRange

routes = Routes("/coach/customers/{customerId}/compliance", tag="Compliance")
company_routes = Routes("/coach/compliance", tag="Compliance")


@routes.get("", access=coach(CUSTOMERS.VIEW), query=OPEN_RANGE())
async def get_compliance(ctx: Context, customer_id: ObjectId, query: OpenRange) -> Compliance:
    """Read what a client did of what was scheduled.

    Without `from` and `to`: the last 30 days up to the client's today; less than 3,700 days at once. A workout day has
    a block that is not rest and has an exercise, a circuit or a task; it is completed when all items of such blocks
    are. Days up to yesterday count, and today once it is completed; later days are listed and not counted.
    """
    return await service.get_compliance(ctx, customer_id, query.get("from"), query.get("to"))


@company_routes.get("", access=coach(CUSTOMERS.VIEW), query=COMPLIANCE_LIST_QUERY())
async def list_compliance(ctx: Context, query: ComplianceListQuery) -> CursorPage[ClientCompliance]:
    """List what each client did of what was scheduled.

    With `period`: the rates stored with the clients, which follow a change within ten seconds, lowest first. With
    `from` and `to`: computed for these dates, by name. Archived clients, and those that the caller may not see, are
    left out.
    """
    limit, after = query["limit"], query["after"]
    if "period" not in query:
        return await service.list_between(
            ctx, query["from"], query["to"], below=query.get("below"), limit=limit, after=after
        )
    return await service.list_stored(
        ctx,
        query["period"],
        below=query.get("below"),
        sort=query.get("sort", "percentage"),
        limit=limit,
        after=after,
    )
