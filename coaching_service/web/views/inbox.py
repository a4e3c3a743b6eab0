"""The inbox: unread messages, responses to review, and forms that clients have not answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS, FORMS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.people.changes import following
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.form_requests import service as form_requests
from coaching_service.progress.form_requests.models import FormRequest
from coaching_service.progress.form_responses import service as form_responses
from coaching_service.web.page_queries import PartQuery, list_url
from coaching_service.web.pages import Pages, Redirect

pages = Pages("/app/inbox")
_PATH = "/app/inbox"
_CONVERSATIONS, _FORMS, _OVERDUE, _UPCOMING = 30, 20, 100, 10


class _InboxQuery(PartQuery):
    """With `all` also the conversations in which everything has been read."""

    all: Annotated[bool, Default(False)]


@pages.get("", access=coach(CUSTOMERS.VIEW), query=_InboxQuery, template="messages/inbox.html")
async def inbox_page(ctx: Context, query: _InboxQuery) -> dict[str, Any]:
    """The conversations with unread messages, or all of them; with the permission, the forms of clients."""
    unread, live_after = None if query["all"] else True, await following.find_position(ctx)
    page = await conversation.list_conversations(ctx, unread=unread, limit=_CONVERSATIONS, after=query["after"])
    return {
        "page": page,
        "shows_all": query["all"],
        "live_after": None if query["after"] else live_after,
        "next_url": list_url(_PATH, {"after": page["nextCursor"], "all": query["all"]})(),
        **(await _load_forms(ctx) if FORMS.VIEW in ctx.caller.permissions else {}),
    }


async def _load_forms(ctx: Context) -> dict[str, Any]:
    """Load the latest responses that are not reviewed, and the forms without an answer."""
    responses, overdue, upcoming = await gather_reads(
        ctx,
        form_responses.list_received(ctx, reviewed=False, limit=_FORMS),
        form_requests.list_overdue(ctx, limit=_OVERDUE),
        form_requests.list_pending(ctx, overdue=False, limit=_UPCOMING),
    )
    return {
        "responses": responses,
        "overdue": _group_by_client(overdue),
        "counts_all": len(overdue) < _OVERDUE,
        "upcoming": upcoming,
    }


def _group_by_client(overdue: Sequence[FormRequest]) -> list[list[FormRequest]]:
    """Group overdue forms by client; the forms and the clients are in the order given."""
    groups: dict[ObjectId, list[FormRequest]] = {}
    for request in overdue:
        groups.setdefault(request["customer"]["_id"], []).append(request)
    return list(groups.values())


@pages.post("/responses/{responseId}/reviewed", access=coach(FORMS.EDIT), on=inbox_page, idempotent=True)
async def mark_response_reviewed(ctx: Context, response_id: ObjectId) -> Redirect:
    """Mark a response as reviewed."""
    await form_responses.set_reviewed(ctx, response_id, reviewed=True)
    return Redirect(f"{_PATH}#responses", "Marked as reviewed.")
