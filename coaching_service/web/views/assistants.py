"""Settings: the connected assistants (OAuth applications)."""

from __future__ import annotations

from functools import partial
from typing import Any

from coaching_service.core.auth.access import CUSTOMERS, session_only
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import require_by_id
from coaching_service.core.ids import ObjectId
from coaching_service.people.assistants import service as assistants
from coaching_service.people.assistants.models import Grant, Scope
from coaching_service.people.team import service as team
from coaching_service.web.page_queries import PartQuery
from coaching_service.web.pages import ConfirmedAction, Pages, Redirect
from coaching_service.web.views.history import COMPANY_PATH, list_changes

pages = Pages("/app/settings/assistants")
_SCOPE_NAMES: dict[Scope, str] = {"read": "Read", "change": "Change", "outreach": "Contact people"}


@pages.get("", access=session_only(), template="settings/assistants.html")
async def assistants_page(ctx: Context) -> dict[str, Any]:
    """The assistants that the coach connected; for the owner, all of the company."""
    connected, coaches = await gather_reads(ctx, assistants.list_assistants(ctx), team.list_coaches(ctx))
    return {
        "assistants": connected,
        "coach_names": {coach["_id"]: coach["name"] for coach in coaches},
        "scope_names": _SCOPE_NAMES,
        "mcp_url": f"{ctx.services.base_url}/mcp",
    }


@pages.get("/{assistantId}", access=session_only(CUSTOMERS.VIEW), template="settings/assistant.html")
async def assistant_page(ctx: Context, assistant_id: ObjectId, query: PartQuery) -> dict[str, Any]:
    """What an assistant may do and what it has changed, newest first, with Undo."""
    assistant = await _get_assistant(ctx, assistant_id)
    path = f"/app/settings/assistants/{assistant_id}"
    variables = await list_changes(ctx, path, query, via="assistant", credential_id=assistant_id)
    return {
        **variables,
        "history_path": COMPANY_PATH,
        "assistant": assistant,
        "assistant_path": path,
        "scope_names": _SCOPE_NAMES,
    }


@pages.confirm("/{assistantId}/disconnect", access=session_only(), template="settings/disconnect_assistant.html")
async def disconnect_assistant(ctx: Context, assistant_id: ObjectId) -> ConfirmedAction:
    """Disconnect an assistant: its next request is rejected."""
    assistant = await _get_assistant(ctx, assistant_id)
    done = Redirect(pages.prefix, f"{assistant['clientName']} disconnected.")
    return ConfirmedAction({"assistant": assistant}, partial(assistants.revoke, ctx, assistant_id), done)


async def _get_assistant(ctx: Context, assistant_id: ObjectId) -> Grant:
    return require_by_id(await assistants.list_assistants(ctx), assistant_id, "assistant")
