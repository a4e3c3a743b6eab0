"""Visibility over REST."""

from __future__ import annotations

from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.field_schemas import input_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import DateRange, Period, SearchedRange
from coaching_service.core.validation import DryRun
from coaching_service.training.visibility import service
from coaching_service.training.visibility.service import DayVisibility, VisibilityChange

routes = Routes("/coach/customers/{customerId}/visibility", tag="Visibility", locks="customer")


@routes.get("", access=coach(CUSTOMERS.VIEW), query=SearchedRange())
async def get_visibility(ctx: Context, customer_id: ObjectId, query: Period) -> list[DayVisibility]:
    """List which days a client sees.

    Every day of the range, at most three years; shown unless hidden.
    """
    return await service.list_days(ctx, customer_id, query["startDate"], query["endDate"])


@routes.put(
    "",
    access=coach(CUSTOMERS.EDIT),
    body=input_of(VisibilityChange, DateRange, DryRun)(),
    rolls_back=True,
    example={"startDate": "2026-03-02", "endDate": "2026-03-08", "isVisible": False},
)
async def set_visibility(ctx: Context, customer_id: ObjectId, body: VisibilityChange) -> list[DayVisibility]:
    """Show or hide days of a client's calendar."""
    return await service.set_visibility(ctx, customer_id, body["startDate"], body["endDate"], visible=body["isVisible"])
