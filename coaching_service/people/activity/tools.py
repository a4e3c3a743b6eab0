"""The activity feed for assistants."""

from __future__ import annotations

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import CustomerArgument, ToolPage
from coaching_service.core.mcp.tools import Tools
from coaching_service.people.activity import service
from coaching_service.people.customers import service as customers

tools = Tools()


class ActivityPage(ToolPage, CustomerArgument):
    """Whose feed, and which page of it."""


@tools.tool("Read a client's activity", access=coach(CUSTOMERS.VIEW), takes=ActivityPage())
async def get_activity(ctx: Context, customer_id: ObjectId, page: int, page_size: int) -> Document:
    """Read what happened with a client lately, the newest first: workouts completed, records, forms, metrics with their
    values, photos, the beginnings of notes, programs. Gives docs, totalDocs, hasNextPage and nextPage."""
    client, found = await gather_reads(
        ctx,
        customers.get_visible_reference(ctx, customer_id),
        service.list_events(ctx, customer_id, page=page, size=page_size),
    )
    return {"customer": client, **found, "docs": [_event(event) for event in found["docs"]]}


def _event(event: Document) -> Document:
    """An event with the names that tools go by."""
    data = {{"wblockId": "workoutId", "witemId": "itemId"}.get(key, key): of for key, of in event["data"].items()}
    return {**event, "data": data}
