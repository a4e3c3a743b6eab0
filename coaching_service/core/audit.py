"""The audit log: sensitive actions and who performed them, stored in the transaction of the change."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, NotRequired, TypedDict, cast

from coaching_service.core.database.collections import Unsharded
from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Documents, now
from coaching_service.core.database.field_changes import Stored
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
    incidental=True,
)


class OperatorAction(TypedDict):
    """An action of the operator: `operator` is the name of the operating system's user, `subjectId` what it concerns.

    Further fields depend on the action.
    """

    _id: ObjectId
    action: str
    operator: str
    subjectId: ObjectId | None
    createdAt: datetime


_operator_actions = Documents[OperatorAction](
    "operatorActions",
    private=(),
    global_indexes=(Index(("createdAt", "_id")),),
    cross_company_reason="the operator acts on all companies, and the log of it outlives their data",
    placement=Unsharded("few documents, which the operator lists"),
    transfer=NotExported("the log of the operator"),
)


async def record_operator(
    ctx: Context, operator: str, action: str, subject_id: ObjectId | None = None, **facts: Any
) -> None:
    """Store that the operator did `action`, such as `company.suspended`, in the transaction of `ctx`, if any.

    It has no personal data but the name of the operator, because it is not erased with a company.
    """
    entry = {
        "_id": ObjectId(),
        "action": action,
        "operator": operator,
        "subjectId": subject_id,
        "createdAt": now(),
        **facts,
    }
    await _operator_actions.across_companies(ctx.services).insert_one(entry, session=ctx.session)


async def iterate_operator_actions(services: Services, limit: int) -> AsyncIterator[OperatorAction]:
    """Yield the last actions of the operator, newest first."""
    cursor = _operator_actions.across_companies(services).find({}, sort=[("createdAt", -1), ("_id", -1)], limit=limit)
    async for entry in cursor:
        yield cast("OperatorAction", entry)


async def find_last_operator_action(services: Services, action: str) -> OperatorAction | None:
    """Return the last time that the operator did `action`, or None."""
    actions = _operator_actions.across_companies(services)
    last = await actions.find_one({"action": action}, sort=[("createdAt", -1), ("_id", -1)])
    return cast("OperatorAction | None", last)


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
