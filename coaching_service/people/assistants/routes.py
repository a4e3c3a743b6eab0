"""Connected assistants over REST: an interactive session only."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import session_only
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import Routes, list_of
from coaching_service.core.ids import ObjectId
from coaching_service.people.assistants import service
from coaching_service.people.assistants.schemas import Assistant

routes = Routes("/coach/assistants", tag="Assistants")


@routes.get("", access=session_only(), returns=list_of(Assistant))
async def list_assistants(ctx: Context) -> list[dict[str, Any]]:
    """List the connected assistants.

    A coach sees those they let in, the owner all of the company's.
    """
    return await service.list_assistants(ctx)


@routes.delete("/{assistantId}", access=session_only())
async def disconnect_assistant(ctx: Context, assistant_id: ObjectId) -> None:
    """Disconnect an assistant.

    Its tokens fail on their very next request.
    """
    await service.revoke(ctx, assistant_id)
