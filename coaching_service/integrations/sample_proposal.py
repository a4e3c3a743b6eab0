"""The proposal of the demo company: what an assistant with a key of its own asked to do, and a coach has to decide."""

from __future__ import annotations

from coaching_service.core.database.context import Context, Services
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import validate_arguments
from coaching_service.demo.company import EMAIL
from coaching_service.integrations.proposals import service as proposals
from coaching_service.integrations.proposals import tool_calls
from coaching_service.people import api_keys, team
from coaching_service.people.identities import service as identities
from coaching_service.progress.conversation import tools

_ASSISTANT = "Assistant"
_SENT = {"groups": ["Morning"], "text": "The gym opens an hour later on Friday. Shall we move your session to 8:00?"}


async def ensure(services: Services) -> None:
    """Let an assistant propose a message to a group of the demo company, once."""
    identity = await identities.find_by_email(services, EMAIL)
    owner = await team.get_principal(services, identity.subject_id) if identity is not None else None
    if owner is None:
        return
    ctx = Context(services, operation="addSampleData").acting_as(owner)
    if await api_keys.find_secret(ctx, _ASSISTANT) is not None:
        return
    created = await api_keys.create(ctx, _ASSISTANT, {"outreach": True})
    assistant = await api_keys.load_principal(services, ObjectId(created["_id"]))
    if assistant is not None:
        await _propose(ctx.acting_as(assistant))


async def _propose(ctx: Context) -> None:
    [tool] = [each for each in tools.tools.declared if each.name == "send_message"]
    try:
        await tool_calls.carry_out(ctx, tool_calls.Call(tool, validate_arguments(tool.takes, _SENT), _SENT))
    except tool_calls.Unconfirmed as unconfirmed:
        await proposals.propose(ctx, unconfirmed)
