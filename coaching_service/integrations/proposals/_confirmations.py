"""Confirmations for which the client of an assistant asks its user, until they are given or expire."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Documents
from coaching_service.core.database.models import Stored
from coaching_service.core.database.portable import NotExported
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.proposals.models import Resolution

LIFETIME = timedelta(minutes=10)


class StoredConfirmation(Stored):
    """What a token confirms: a call, as the hash of its caller, tool and arguments, and the hash of what was shown.

    `resolved`: what its names, dates and groups mean.
    """

    tokenHash: str
    call: str
    shown: str
    resolved: list[Resolution]


_confirmations = Documents[StoredConfirmation](
    "confirmations",
    (Index(("tokenHash",), unique=True),),
    secret=True,
    expire=("createdAt", int(LIFETIME.total_seconds())),
    transfer=NotExported("confirmations are valid for ten minutes"),
    incidental=True,
)
# By the clock of the database, which has also set createdAt.
_AGE: Document = {"$subtract": ["$$NOW", "$createdAt"]}
_VALID: Document = {"$expr": {"$lte": [_AGE, round(LIFETIME.total_seconds() * 1000)]}}


async def create(ctx: Context, token_hash: str, call: str, shown: str, resolved: Sequence[Resolution]) -> None:
    """Store a new confirmation."""
    new = {"tokenHash": token_hash, "call": call, "shown": shown, "resolved": list(resolved)}
    stored = await _confirmations.insert(ctx, new)
    await _confirmations.set_derived(ctx, {"_id": stored["_id"]}, {"$currentDate": {"createdAt": True}})


async def find(ctx: Context, token_hash: str, call: str) -> StoredConfirmation | None:
    """Return the confirmation of a call, or None if the token is unknown, used, expired or of another call."""
    return await _confirmations.find_one(ctx, {"tokenHash": token_hash, "call": call, **_VALID})


async def delete(ctx: Context, confirmation_id: ObjectId) -> None:
    """Delete a confirmation that has been used, in the transaction that carries out the call."""
    await _confirmations.delete(ctx, {"_id": confirmation_id})
