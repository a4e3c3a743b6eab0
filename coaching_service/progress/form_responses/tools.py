"""Form responses for assistants."""

from __future__ import annotations

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import FORMS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import CustomerArgument, OpenDates, ToolPage, paged
from coaching_service.core.mcp.tools import Tools
from coaching_service.people.customers import service as customers
from coaching_service.progress.form_responses import service

tools = Tools()


class ResponsesPage(OpenDates, ToolPage, CustomerArgument):
    """The client, the dates, and the page of the responses."""


@tools.tool("List form responses", access=coach(FORMS.VIEW), takes=ResponsesPage(), alias=True)
async def list_form_responses(
    ctx: Context, customer_id: ObjectId, start_date: str | None, end_date: str | None, page: int, page_size: int
) -> dict[str, object]:
    """List a client's responses to forms, the newest first; each answer with the text of its question at the time.
    Returns docs, totalDocs, hasNextPage and nextPage."""
    customer, responses = await gather_reads(
        ctx,
        customers.get_visible_reference(ctx, customer_id),
        service.list_between(ctx, customer_id, start_date, end_date),
    )
    return {"customer": customer, **paged(responses, page, page_size)}
