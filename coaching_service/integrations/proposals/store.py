"""Proposals and confirmations in the database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Documents, Filter, now
from coaching_service.core.database.models import Stored
from coaching_service.core.database.portable import NotExported
from coaching_service.core.fields import private_of
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.proposals.models import Decision, NewProposal, Proposal, Resolution, Status

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
        Index(("call", "status")),
    ),
    private=private_of(Proposal),
    client_field="customerIds",
    secret=True,  # they also concern other clients
    expire=("expiresAt", int(_RETENTION.total_seconds())),
    transfer=NotExported("proposals can be approved within a day, and only here; what was done is in the history"),
)


_UNDECIDED: Document = {"decidedAt": None, "decidedBy": None, "decidedIn": None, "note": None, "result": None}


async def create(ctx: Context, new: NewProposal) -> Proposal:
    """Store a new proposal. Raises AlreadyClaimed if the same call is pending."""
    where = {"_id": ObjectId()}
    await proposals.claim(ctx, {**where, **new, **_UNDECIDED})
    [stored] = await find(ctx, where)
    return stored


async def find(ctx: Context, where: Filter, *, sort: Sequence[str] = (), limit: int = 0) -> list[Proposal]:
    """Return the proposals of `where` with their private fields."""
    return await proposals.find(ctx, where, sort=sort, limit=limit, including=private_of(Proposal))


async def find_one(ctx: Context, where: Filter) -> Proposal | None:
    """Return the proposal of `where` with its private fields, or None."""
    return next(iter(await find(ctx, where)), None)


def has_status(status: Status) -> Filter:
    """Return the filter of proposals that have a status now."""
    if status == "pending":
        return {"status": "pending", "expiresAt": {"$gt": now()}}
    if status == "expired":
        return {"status": {"$in": ["pending", "expired"]}, "expiresAt": {"$lte": now()}}
    return {"status": status}


async def decide(ctx: Context, proposal_id: ObjectId, decision: Decision) -> bool:
    """Set the decision on a proposal that is stored as pending; returns whether it was.

    One that is replaced by another expires before its time.
    """
    fields: Document = {
        "status": decision.status,
        "decidedAt": now(),
        "decidedBy": decision.by,
        "decidedIn": decision.place,
        "note": decision.note,
        "result": decision.result,
    }
    if decision.status == "expired":
        fields["expiresAt"] = now()
    where = {"_id": proposal_id, "status": "pending"}
    return await proposals.update(ctx, where, {"$set": fields}) is not None


# --- confirmations for which the client of an assistant asks its user, until they are given or expire ----------------

CONFIRMATION_LIFETIME = timedelta(minutes=10)


class StoredConfirmation(Stored):
    """What a token confirms: a call, as the hash of its caller, tool and arguments, and the hash of what was shown.

    `resolved`: what its names, dates and groups mean.
    """

    tokenHash: str
    call: str
    shown: str
    resolved: list[Resolution]


confirmations = Documents[StoredConfirmation](
    "confirmations",
    (Index(("tokenHash",), unique=True),),
    secret=True,
    expire=("createdAt", int(CONFIRMATION_LIFETIME.total_seconds())),
    transfer=NotExported("confirmations are valid for ten minutes"),
    incidental=True,
)
# By the clock of the database, which has also set createdAt.
_AGE: Document = {"$subtract": ["$$NOW", "$createdAt"]}
_VALID: Document = {"$expr": {"$lte": [_AGE, round(CONFIRMATION_LIFETIME.total_seconds() * 1000)]}}


async def create_confirmation(
    ctx: Context, token_hash: str, call: str, shown: str, resolved: Sequence[Resolution]
) -> None:
    """Store a new confirmation."""
    new = {"tokenHash": token_hash, "call": call, "shown": shown, "resolved": list(resolved)}
    stored = await confirmations.insert(ctx, new)
    await confirmations.set_derived(ctx, {"_id": stored["_id"]}, {"$currentDate": {"createdAt": True}})


async def find_confirmation(ctx: Context, token_hash: str, call: str) -> StoredConfirmation | None:
    """Return the confirmation of a call, or None if the token is unknown, used, expired or of another call."""
    return await confirmations.find_one(ctx, {"tokenHash": token_hash, "call": call, **_VALID})
