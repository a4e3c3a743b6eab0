"""Settings: the assistants that were let in, and their end."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import session_only
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.people.assistants import service as assistants
from coaching_service.people.assistants.models import Grant
from coaching_service.people.team import service as team
from coaching_service.web.pages import Pages, Redirect

pages = Pages("/app/settings/assistants")


@pages.get("", access=session_only(), template="settings/assistants.html")
async def assistants_page(ctx: Context) -> dict[str, Any]:
    """The assistants the coach let in; for the owner, all of the company's."""
    granted, coaches = await gather_reads(ctx, assistants.list_assistants(ctx), team.list_coaches(ctx))
    names = {each["_id"]: each["name"] for each in coaches}
    return {"assistants": granted, "names": names, "address": f"{ctx.services.base_url}/mcp"}


@pages.get("/{assistantId}/disconnect", access=session_only(), template="settings/disconnect_assistant.html")
async def disconnect_page(ctx: Context, assistant_id: ObjectId) -> dict[str, Any]:
    """What ends with an assistant's access."""
    return {"assistant": await _one(ctx, assistant_id)}


@pages.post("/{assistantId}/disconnect", access=session_only(), on=disconnect_page)
async def disconnect(ctx: Context, assistant_id: ObjectId) -> Redirect:
    """Take an assistant's access away: it is refused from its next request on."""
    assistant = await _one(ctx, assistant_id)
    await assistants.revoke(ctx, assistant_id)
    return Redirect("/app/settings/assistants", f"{assistant['clientName']} is disconnected.")


async def _one(ctx: Context, assistant_id: ObjectId) -> Grant:
    granted = await assistants.list_assistants(ctx)
    found = next((each for each in granted if each["_id"] == assistant_id), None)
    if found is None:
        raise NotFound("assistant")
    return found
