"""The activity feed for assistants."""

from __future__ import annotations

from typing import cast

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import CustomerArgument, ToolPage, numbered
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.pagination import Page
from coaching_service.people.activity import service
from coaching_service.people.activity.models import ActivityEvent
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import CustomerReference

tools = Tools()
_TOOL_NAMES = {"wblockId": "workoutId", "witemId": "itemId"}


class CustomerActivity(Page[ActivityEvent]):
    """A page of a client's activity feed, with the client."""

    customer: CustomerReference


class ActivityPage(ToolPage, CustomerArgument):
    """Whose feed, and which page of it."""


@tools.tool("Read a client's activity", access=coach(CUSTOMERS.VIEW), takes=ActivityPage())
async def get_activity(ctx: Context, customer_id: ObjectId, page: int, page_size: int) -> CustomerActivity:
    """Read a client's recent activity, newest first: completed workouts, records, forms, metrics with their values,
    photos, the beginnings of notes, programs. Returns docs, totalDocs, hasNextPage and nextPage."""
    client, events = await gather_reads(
        ctx,
        customers.get_visible_reference(ctx, customer_id),
        service.list_events(ctx, customer_id, page=page, size=page_size),
    )
    docs = [_with_tool_names(event) for event in events["docs"]]
    return cast("CustomerActivity", {"customer": client, **numbered(events), "docs": docs})


def _with_tool_names(event: ActivityEvent) -> ActivityEvent:
    """Return an entry whose data uses the names that tool arguments have."""
    return {**event, "data": {_TOOL_NAMES.get(name, name): value for name, value in event["data"].items()}}
