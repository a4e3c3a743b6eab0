"""One request of a page or form, and what its page needs of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any
from urllib.parse import urlencode

from aiohttp import web
from marshmallow import ValidationError

from coaching_service.core.auth.access import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.dates import zone_of
from coaching_service.core.errors import InvalidFields
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.proposals import service as proposals
from coaching_service.people.changes import service as changes
from coaching_service.people.changes import undo
from coaching_service.people.changes.models import ChangeSummary
from coaching_service.progress.conversation import service as conversation
from coaching_service.web.browser_sessions import BrowserSession, home_of
from coaching_service.web.formatting import format_date
from coaching_service.web.forms import load_form
from coaching_service.web.pages import Page, Redirect
from coaching_service.web.views.operation_names import describe_operation

# The number in the navigation of a page, by its audience: its name in templates, and how it is read.
_COUNTERS = {
    "customer": ("unread_messages", conversation.count_own_unread),
    "coach": ("waiting_proposals", proposals.count_pending),
}


@dataclass(frozen=True)
class PageRequest:
    """One request of a page or form."""

    page: Page
    request: web.Request
    browser_session: BrowserSession
    ctx: Context

    async def after_waiting(self) -> PageRequest:
        """Return this request with the caller as they are now, if it has waited. Raises as Context.after_waiting."""
        return replace(self, ctx=await self.ctx.after_waiting())

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the page's handler, without its form."""
        page = self.page
        arguments: dict[str, Any] = {**self._identifiers()}
        if page.query is not None:
            try:
                arguments["query"] = load_form(page.query, self.request.query)
            except ValidationError:
                arguments["query"] = load_form(page.query, {})
        if page.with_request:
            arguments["request"] = self.request
        return arguments

    def _identifiers(self) -> dict[str, ObjectId]:
        """Return the identifiers in the path by the names of the handler's arguments."""
        return {
            argument: ObjectId(self.request.match_info[name])
            for name, argument in self.page.path_parameters
            if name in self.request.match_info
        }

    async def read_variables(self) -> tuple[Any, dict[str, int]]:
        """Return the result of the page's handler and the number in its navigation.

        That is how many messages a client has not read, or how many proposals of assistants wait for a coach. Both are
        read at the same time, so that the number does not delay the page.
        """
        handler_result = self._read_page()
        if self.page.access.audience not in _COUNTERS or not self.page.template:
            return await handler_result, {}
        name, count = _COUNTERS[self.page.access.audience]
        result, number = await gather_reads(self.ctx, handler_result, count(self.ctx))
        return result, {name: number}

    async def _read_page(self) -> Any:
        """Return the result of the page's handler; of a list whose cursor is of another one, its beginning."""
        arguments = self.arguments()
        try:
            return await self.page.handler(self.ctx, **arguments)
        except InvalidFields:
            if not arguments.get("query", {}).get("after"):
                raise
            query = [(name, value) for name, value in self.request.query.items() if name != "after"]
            return Redirect(self.request.path + (f"?{urlencode(query)}" if query else ""))

    async def find_undoable_change(self) -> ObjectId | None:
        """Return the change that the notice of the page reports, if the coach may undo it."""
        change_id = self.browser_session.read_notice(self.request).change_id
        principal = self.browser_session.principal
        if change_id is None or principal is None or CUSTOMERS.VIEW not in principal.permissions:
            return None
        return change_id if await undo.is_undoable(self.ctx, change_id) else None

    async def describe_newer_changes(self, version: int) -> str:
        """Describe who changed what this page or form is about since a version, and how."""
        path = self._identifiers()
        return await describe_newer_changes(self.ctx, path.get("customer_id"), list(path.values()), version)

    def find_home_elsewhere(self) -> str | None:
        """Return the start page of a user who opens a page for others: a client of coaches, or a coach of clients."""
        principal, audience = self.browser_session.principal, self.page.access.audience
        if principal is None or audience not in ("coach", "customer"):
            return None
        if (audience == "coach") == principal.is_coach:
            return None
        return home_of(principal)


_MOST = 3
_USES = {"apiKey": " (API key)", "assistant": " (assistant)"}
_UNKNOWN = "by another user or in another window"


async def describe_newer_changes(
    ctx: Context, customer_id: ObjectId | None, document_ids: Sequence[ObjectId], version: int
) -> str:
    """Describe the changes after `version`: `by Kim Coach on Mon 2 Mar 2026 at 09:30 (workout changed)`.

    The document is the last of `document_ids` that was changed. For clients it does not name anyone of the company.
    """
    if not ctx.caller.is_coach:
        return _UNKNOWN
    for document_id in reversed(document_ids):
        if newer := await changes.list_newer(ctx, customer_id, document_id, version, _MOST):
            return ", and ".join(_describe(ctx, change) for change in reversed(newer))
    return _UNKNOWN


def _describe(ctx: Context, change: ChangeSummary) -> str:
    caller = ctx.caller
    actor = change["actor"]
    is_own = actor is not None and actor["_id"] == caller.id and change["via"] == "session"
    name = actor["name"] if actor else "another user"
    author = "in another tab of yours" if is_own else f"by {name}{_USES.get(change['via'], '')}"
    at = change["at"].replace(tzinfo=UTC).astimezone(zone_of(caller.timezone or caller.company.timezone))
    what = describe_operation(change["operation"])
    return f"{author} on {format_date(at.date())} at {at:%H:%M} ({what[:1].lower()}{what[1:]})"
