"""The start page: the clients who need a coach, and why, as a list to work through."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from marshmallow import fields

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS, FORMS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import Conflict, InvalidFields
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice, Date, Input, ListOf
from coaching_service.people.customers import derived_figures, listing
from coaching_service.progress.attention import service as attention
from coaching_service.progress.attention.reasons import WEIGHTS
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.conversation.schemas import MessageText
from coaching_service.progress.form_responses import service as form_responses
from coaching_service.web.formatting import format_date
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.activity_descriptions import RECORD_TYPES
from coaching_service.web.views.attention_descriptions import describe_entry
from coaching_service.web.views.attention_previews import load_previews
from coaching_service.web.views.done_sessions import list_done_sessions

pages = Pages("/app/attention")
_PATH = "/app/attention"
_CLIENTS_PER_PAGE = 60


class _Part(Input):
    """A part of the list: `after` is the cursor of the one before."""

    after = fields.String(load_default=None)


class _Dismissal(Input):
    """The reasons to dismiss, and the date until which they are; without one until something new happens."""

    reason = ListOf(Choice(*WEIGHTS), minimum=1, maximum=len(WEIGHTS), required=True)
    until = Date(load_default=None, allow_none=True)


@pages.get("", access=coach(CUSTOMERS.VIEW), query=_Part(), template="attention.html")
async def attention_page(ctx: Context, query: dict[str, Any]) -> dict[str, Any] | Redirect:
    """The clients who need a coach, the most urgent first."""
    try:
        page, count, done_sessions = await gather_reads(
            ctx,
            derived_figures.list_attention(ctx, limit=_CLIENTS_PER_PAGE, after=query["after"]),
            derived_figures.count_attention(ctx),
            list_done_sessions(ctx),
        )
    except InvalidFields:  # the cursor is of another list
        return Redirect(_PATH)
    return {
        "entries": [describe_entry(ctx, customer) for customer in page["docs"]],
        "previews": None,
        "done_sessions": done_sessions,
        "count": count,
        "most_counted": derived_figures.MOST_COUNTED,
        "has_clients": bool(count) or await _has_clients(ctx),
        "next_url": f"{_PATH}?{urlencode({'after': page['nextCursor']})}" if page["hasMore"] else None,
    }


async def _has_clients(ctx: Context) -> bool:
    return (await listing.list_customers(ctx, archived=False, page=1, size=1))["totalDocs"] > 0


@pages.get("/{customerId}", access=coach(CUSTOMERS.VIEW), template="attention.html")
async def attention_entry_page(ctx: Context, customer_id: ObjectId) -> dict[str, Any]:
    """One client of the list, with what each reason is about: the part of the list that its forms change."""
    customer, count = await gather_reads(
        ctx, derived_figures.read_for_attention(ctx, customer_id), derived_figures.count_attention(ctx)
    )
    described = describe_entry(ctx, customer)
    reasons = [reason["type"] for reason in described["reasons"]]
    today = ctx.caller.today(described["timezone"])
    return {
        "entries": [described] if reasons else [],
        "previews": await load_previews(ctx, customer_id, reasons, today),
        "record_types": RECORD_TYPES,
        "done_sessions": [],
        "count": count,
        "most_counted": derived_figures.MOST_COUNTED,
        "has_clients": True,
        "next_url": None,
        "path_with_query": _PATH,  # where an undo leads
    }


@pages.post("/{customerId}/dismiss", access=coach(CUSTOMERS.EDIT), form=_Dismissal(), on=attention_entry_page)
async def dismiss_attention(ctx: Context, customer_id: ObjectId, form: dict[str, Any]) -> Redirect:
    """Dismiss reasons for the whole company, until a date or until something new happens."""
    until = form["until"]
    try:
        await attention.dismiss_all(ctx, customer_id, form["reason"], until=until)
    except Conflict:  # the list was shown before something changed
        return _leave(customer_id, "This reason no longer applies.")
    return _leave(customer_id, f"Dismissed until {format_date(until) if until else 'something new happens'}.")


@pages.post("/{customerId}/reply", access=coach(CUSTOMERS.EDIT), form=MessageText(), on=attention_entry_page)
async def reply_to_client(ctx: Context, customer_id: ObjectId, form: dict[str, Any]) -> Redirect:
    """Answer a client's messages, which count as read."""
    await conversation.mark_read(ctx, customer_id)
    await conversation.create(ctx, customer_id, {"text": form["text"]})
    await attention.renew(ctx, customer_id)
    return _leave(customer_id, "Message sent.")


@pages.post("/{customerId}/read", access=coach(CUSTOMERS.EDIT), on=attention_entry_page, idempotent=True)
async def mark_client_messages_read(ctx: Context, customer_id: ObjectId) -> Redirect:
    """Mark a client's messages as read, for the whole company."""
    await conversation.mark_read(ctx, customer_id)
    await attention.renew(ctx, customer_id)
    return _leave(customer_id, "Marked as read.")


@pages.post(
    "/{customerId}/responses/{responseId}/reviewed",
    access=coach(FORMS.EDIT),
    on=attention_entry_page,
    idempotent=True,
)
async def mark_client_response_reviewed(ctx: Context, customer_id: ObjectId, response_id: ObjectId) -> Redirect:
    """Mark a response of a client as reviewed."""
    await form_responses.set_reviewed(ctx, response_id, reviewed=True)
    await attention.renew(ctx, customer_id)
    return _leave(customer_id, "Marked as reviewed.")


def _leave(customer_id: ObjectId, notice: str) -> Redirect:
    return Redirect(_PATH, notice, part=f"{_PATH}/{customer_id}")
