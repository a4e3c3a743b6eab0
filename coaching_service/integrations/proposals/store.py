"""Proposals in the database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Documents, Filter, now
from coaching_service.core.database.portable import NotExported
from coaching_service.core.fields import private_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_parts import ListPart
from coaching_service.integrations.proposals.models import (
    Decision,
    NewProposal,
    Proposal,
    Status,
    ToolResult,
)

LIFETIME = timedelta(hours=24)
_RETENTION = timedelta(days=30)  # after it could be approved
NEWEST_FIRST = ("-createdAt", "-_id")
_PENDING = (("status", {"$eq": "pending"}),)

proposals = Documents[Proposal](
    "proposals",
    (
        Index(NEWEST_FIRST),
        Index(("status", *NEWEST_FIRST)),
        Index(("coachId", *NEWEST_FIRST)),
        Index(("customerIds",)),
        Index(("result.changeId",), partial_filter=(("result.changeId", {"$exists": True}),)),
        Index(("call",), unique=True, partial_filter=_PENDING),
    ),
    private=private_of(Proposal),
    client_field="customerIds",
    secret=True,  # they also concern other clients
    expire=("expiresAt", int(_RETENTION.total_seconds())),
    transfer=NotExported("proposals can be approved within a day, and only here; what was done is in the history"),
)


async def create(ctx: Context, new: NewProposal) -> Proposal:
    """Store a new proposal. Raises AlreadyClaimed if the same call is pending."""
    identifier = ObjectId()
    await proposals.claim(ctx, {"_id": identifier, **new, "decidedAt": None, "decidedBy": None, "result": None})
    [stored] = await proposals.find(ctx, {"_id": identifier}, including=private_of(Proposal))
    return stored


async def find(ctx: Context, proposal_id: ObjectId, where: Filter) -> Proposal | None:
    """Return the proposal of `where` with its private fields, or None."""
    found = await proposals.find(ctx, {"_id": proposal_id, **where}, including=private_of(Proposal))
    return found[0] if found else None


async def find_pending(ctx: Context, call: str) -> Proposal | None:
    """Return the proposal of a call that is not decided, even if it has expired, or None."""
    found = await proposals.find(ctx, {"call": call, "status": "pending"}, including=private_of(Proposal))
    return found[0] if found else None


async def list_part(ctx: Context, part: ListPart, where: Filter) -> list[Proposal]:
    """Return the proposals of `where` for a part of their list, with their private fields."""
    return await proposals.find(
        ctx, part.within(where), sort=part.sort, limit=part.limit, including=private_of(Proposal)
    )


def has_status(status: Status) -> Filter:
    """Return the filter of proposals that have a status now."""
    if status == "pending":
        return {"status": "pending", "expiresAt": {"$gt": now()}}
    if status == "expired":
        return {"status": {"$in": ["pending", "expired"]}, "expiresAt": {"$lte": now()}}
    return {"status": status}


async def count(ctx: Context, where: Filter) -> int:
    """Return the number of proposals of `where`."""
    return await proposals.count(ctx, where)


async def list_ids_of_clients(ctx: Context, customer_ids: Sequence[ObjectId]) -> list[ObjectId]:
    """Return the proposals that concern any of these clients."""
    found = await proposals.find(ctx, {"customerIds": {"$in": list(customer_ids)}}, fields=("_id",))
    return [each["_id"] for each in found]


async def find_unannounced(ctx: Context, coach_id: ObjectId, assistant_id: ObjectId) -> Proposal | None:
    """Return the newest proposal of an assistant to a coach that waits, and that no notification includes, or None."""
    where: Filter = {"coachId": coach_id, "assistant._id": assistant_id, "isMailed": {"$exists": False}}
    found = await proposals.find(
        ctx, has_status("pending") | where, sort=NEWEST_FIRST, limit=1, including=private_of(Proposal)
    )
    return found[0] if found else None


async def mark_announced(ctx: Context, proposal: Proposal) -> int:
    """Mark what the assistant of a proposal has proposed to the same coach and waits; returns how many that are."""
    where: Filter = {"coachId": proposal["coachId"], "assistant._id": proposal["assistant"]["_id"]}
    return await proposals.set_derived(ctx, has_status("pending") | where, {"$set": {"isMailed": True}})


async def decide(ctx: Context, proposal_id: ObjectId, decision: Decision) -> bool:
    """Set the decision on a proposal that is stored as pending; returns whether it was.

    One that is replaced by another expires before its time.
    """
    fields: Document = {
        "status": decision.status,
        "decidedAt": now(),
        "decidedBy": decision.by,
        "result": decision.result,
    }
    if decision.status == "expired":
        fields["expiresAt"] = now()
    where = {"_id": proposal_id, "status": "pending"}
    return await proposals.update(ctx, where, {"$set": fields}) is not None


async def set_stale(ctx: Context, proposal_id: ObjectId) -> None:
    """Mark a proposal whose approval was refused, because what was shown has changed."""
    await proposals.set_derived(ctx, {"_id": proposal_id, "status": "pending"}, {"$set": {"isStale": True}})


async def set_recalled(ctx: Context, change_id: ObjectId) -> None:
    """Mark the proposal that was executed with a change, or a batch, as recalled; if there is one."""
    where = {"status": "executed", "result.changeId": str(change_id)}
    await proposals.set_derived(ctx, where, {"$set": {"status": "recalled"}})


async def set_result(ctx: Context, proposal_id: ObjectId, result: ToolResult, text: str) -> None:
    """Set the result of a proposal that is being executed, in the transaction of the call."""
    fields = {"result": result, "resultText": text}
    await proposals.set_derived(ctx, {"_id": proposal_id}, {"$set": fields})
