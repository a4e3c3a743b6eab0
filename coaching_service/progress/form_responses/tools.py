"""Form responses for assistants."""

from __future__ import annotations

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import FORMS
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import CustomerArgument, OpenDates, ToolPage, paged
from coaching_service.core.mcp.tools import Tools
from coaching_service.people.customers import service as customers
from coaching_service.progress.form_responses import service

tools = Tools()


class ResponsesPage(OpenDates, ToolPage, CustomerArgument):
    """Whose responses, of which days, and which page of them."""


@tools.tool("List form responses", access=coach(FORMS.VIEW), takes=ResponsesPage())
async def list_form_responses(
    ctx: Context, customer_id: ObjectId, start_date: str | None, end_date: str | None, page: int, page_size: int
) -> Document:
    """List what a client answered to forms, the newest first; each answer with its question as it was worded then.
    Gives docs, totalDocs, hasNextPage and nextPage."""
    client, found = await gather_reads(
        ctx, customers.get_visible_reference(ctx, customer_id), service.between(ctx, customer_id, start_date, end_date)
    )
    return {"customer": client, **paged(found, page, page_size)}
