"""The activity feed over REST."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.pagination import Page
from coaching_service.people.activity import models, service
from coaching_service.people.activity.schemas import ActivityEventPage, FeedQuery

routes = Routes("/coach/customers/{customerId}/activity-feed", tag="Activity")


@routes.get("", access=coach(CUSTOMERS.VIEW), query=FeedQuery(), returns=ActivityEventPage)
async def list_activity(ctx: Context, customer_id: ObjectId, query: dict[str, Any]) -> Page[models.ActivityEvent]:
    """Read a client's activity feed, newest first."""
    return await service.list_events(ctx, customer_id, page=query["page"], size=query["limit"])
