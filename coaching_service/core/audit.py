"""What was done with secrets and in others' names, and by whom: kept with the change it reports."""

from __future__ import annotations

from typing import Any

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Documents

_records = Documents[Document]("audit", (Index(("createdAt",)), Index(("about",))), client_field="about")


async def record(ctx: Context, action: str, **facts: Any) -> None:
    """Keep that the one asking did `action` (`apiKey.revealed`, say); `about` names the client it concerns, if any."""
    who = ctx.caller
    await _records.insert(
        ctx,
        {
            "action": action,
            "actorId": who.id,
            "via": who.via,
            "credentialId": who.credential_id,
            "requestId": ctx.request_id,
            "about": None,
            **facts,
        },
    )
