"""The audit log: sensitive actions and who performed them, stored in the transaction of the change."""

from __future__ import annotations

from typing import Any, NotRequired

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.models import Stored
from coaching_service.core.database.portable import NotExported
from coaching_service.core.ids import ObjectId


class AuditEntry(Stored):
    """An action and its actor; `about` is the client it concerns, and further fields depend on the action."""

    action: str
    actorId: ObjectId
    via: str
    credentialId: ObjectId | None
    requestId: str
    about: NotRequired[ObjectId | None]


_entries = Documents[AuditEntry](
    "audit",
    (Index(("createdAt",)), Index(("about",))),
    client_field="about",
    transfer=NotExported("the audit log of this company"),
)


async def record(ctx: Context, action: str, **facts: Any) -> None:
    """Store that the caller did `action`, such as `apiKey.revealed`; `about` names the client it concerns, if any."""
    caller = ctx.caller
    entry = {
        "action": action,
        "actorId": caller.id,
        "via": caller.via,
        "credentialId": caller.credential_id,
        "requestId": ctx.request_id,
        "about": None,
        **facts,
    }
    await _entries.insert(ctx, entry)
