"""The activity feed over REST."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import ListSelection
from coaching_service.core.pagination import CursorPage, Page
from coaching_service.people.activity import models, service
from coaching_service.people.activity.schemas import (
    ActivityEventPage,
    CompanyEventList,
    CompanyFeedQuery,
    FeedQuery,
)

routes = Routes("/coach/customers/{customerId}/activity-feed", tag="Activity")
company_routes = Routes("/coach/activity-feed", tag="Activity")


@routes.get("", access=coach(CUSTOMERS.VIEW), query=FeedQuery(), returns=ActivityEventPage)
async def list_activity(ctx: Context, customer_id: ObjectId, query: dict[str, Any]) -> Page[models.ActivityEvent]:
    """Read a client's activity feed, newest first."""
    return await service.list_events(
        ctx,
        customer_id,
        page=query["page"],
        size=query["limit"],
        selection=ListSelection.of(query),
        after=query["after"],
    )


@company_routes.get("", access=coach(CUSTOMERS.VIEW), query=CompanyFeedQuery(), returns=CompanyEventList)
async def list_company_activity(ctx: Context, query: dict[str, Any]) -> CursorPage[models.CompanyEvent]:
    """Read the activity of all clients, newest first: what happened since yesterday, with client and author.

    Entries of clients that the caller may not see are left out.
    """
    return await service.list_company_events(
        ctx,
        limit=query["limit"],
        after=query["after"],
        since=query["since"],
        types=query["types"],
        customer_id=query["customerId"],
        mine=query["mine"],
    )
