"""The activity feed over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.field_schemas import query_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import ListSelection, PartOfList
from coaching_service.core.pagination import AfterCursor, CursorPage, Page
from coaching_service.people.activity import models, service
from coaching_service.people.activity.service import ActivityEventPage, CompanyEventList

routes = Routes("/coach/customers/{customerId}/activity-feed", tag="Activity")
company_routes = Routes("/coach/activity-feed", tag="Activity")


class _FeedPage(AfterCursor):
    page_field = "page"


@routes.get("", access=coach(CUSTOMERS.VIEW), query=query_of(models.FeedQuery, _FeedPage)(), returns=ActivityEventPage)
async def list_activity(ctx: Context, customer_id: ObjectId, query: models.FeedQuery) -> Page[models.ActivityEvent]:
    """Read a client's activity feed, newest first."""
    part: PartOfList = {
        "page": query["page"],
        "size": query["limit"],
        "selection": ListSelection.of(query),
        "after": query["after"],
    }
    return await service.list_events(ctx, customer_id, part)


@company_routes.get("", access=coach(CUSTOMERS.VIEW), returns=CompanyEventList)
async def list_company_activity(ctx: Context, query: models.CompanyFeedQuery) -> CursorPage[models.CompanyEvent]:
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
