"""Safe retries: the first answer to an `Idempotency-Key` is kept with the change it reports, in one transaction."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import AlreadyClaimed, Document, Documents, now
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.errors import BadRequest, Conflict
from coaching_service.core.events import DomainEvent
from coaching_service.core.ids import ObjectId, stable_id

KEPT = timedelta(hours=24)
_KEY = re.compile(r"[\x21-\x7e]{1,255}")

_replays = Documents[Document](
    "replays",
    (Index(("about",)),),
    client_field="about",
    secret=True,
    expire=("createdAt", int(KEPT.total_seconds())),
)


@dataclass(frozen=True)
class ResponseReplayed(DomainEvent):
    """A stored response is about to be sent again; subscribers may refuse it by raising.

    `about` is the client the response is about, or the identifier of another document.
    """

    about: ObjectId


@dataclass(frozen=True)
class StoredResponse:
    """An answer as it went out: status, JSON bytes, and whether this is a repetition."""

    status: int
    body: bytes
    replayed: bool = False


@dataclass(frozen=True)
class Claim:
    """What a key is bound to, and the fingerprint of the body it came with."""

    id: ObjectId
    fingerprint: str

    @classmethod
    def of(cls, ctx: Context, key: str, method: str, path: str, body: Any) -> Claim:
        """The claim of one request. Raises BadRequest for a malformed key."""
        if not _KEY.fullmatch(key):
            raise BadRequest("Idempotency-Key must be 1 to 255 visible ASCII characters")
        canonical = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
        return cls(stable_id(str(ctx.company_id), method, path, key), hashlib.sha256(canonical).hexdigest())


async def once(
    ctx: Context,
    claim: Claim,
    about: ObjectId | None,
    work: Callable[[Context], Awaitable[tuple[StoredResponse, ObjectId | None]]],
) -> StoredResponse:
    """Do `work` once for this claim; a repetition gets the first answer.

    `work` gives the answer and the client it is about (the record goes when that client is erased), unless `about`
    already says. Raises KeyTaken when the key came with another body, StillRunning while the first request is, and
    what subscribers of ResponseReplayed raise.
    """
    if (first := await _first_answer(ctx, claim)) is not None:
        return first

    async def claimed(tx: Context) -> StoredResponse:
        await _replays.claim(tx, {"_id": claim.id, "fingerprint": claim.fingerprint})
        kept, found_about = await work(tx)
        await _replays.set_derived(tx, {"_id": claim.id}, {"$set": _answer(ctx, claim, kept, about or found_about)})
        return kept

    try:
        return await in_transaction(ctx, claimed)
    except AlreadyClaimed:
        if (first := await _first_answer(ctx, claim)) is not None:
            return first
        raise RequestInProgress from None


async def in_steps(
    ctx: Context, claim: Claim, work: Callable[[Context], Awaitable[tuple[StoredResponse, Any]]]
) -> StoredResponse:
    """Do `work`, which is too much for one transaction and claims each of its steps, once for this claim.

    A repetition gets the first answer; one that comes before there is an answer goes on where the first is, or ended.
    Raises KeyTaken when the key came with another body.
    """
    if (first := await _first_answer(ctx, claim)) is not None:
        return first
    kept, _ = await work(ctx)
    whole = {"_id": claim.id, "fingerprint": claim.fingerprint, **_answer(ctx, claim, kept, None)}
    try:
        await _replays.claim(ctx, whole)
    except AlreadyClaimed:
        return await _first_answer(ctx, claim) or kept
    return kept


async def step(ctx: Context, claim: Claim, about: ObjectId) -> bool:
    """Claim the step about a client, in the transaction that does it; False when it has been done.

    Raises StillRunning while another request with the same key is at it, KeyTaken when it was done for another body.
    """
    identifier = stable_id(str(claim.id), str(about))
    if (done := await _replays.find_one(ctx, {"_id": identifier}, ("fingerprint",))) is not None:
        if done["fingerprint"] != claim.fingerprint:
            raise _another_body()
        return False
    try:
        await _replays.claim(ctx, {"_id": identifier, "fingerprint": claim.fingerprint, "about": about})
    except AlreadyClaimed:
        raise RequestInProgress from None
    return True


def _answer(ctx: Context, claim: Claim, kept: StoredResponse, about: ObjectId | None) -> Document:
    sealed = ctx.services.vault.seal(kept.body, _binding(claim))
    return {"status": kept.status, "answer": sealed, "about": about}


class IdempotencyKeyReused(Conflict):
    """The key was used with another request."""

    default_code = "IDEMPOTENCY_KEY_REUSED"


class RequestInProgress(IdempotencyKeyReused):
    """The first request with the same key is still running."""

    default_code = "IDEMPOTENCY_KEY_IN_USE"

    def __init__(self) -> None:
        super().__init__("A request with this Idempotency-Key is still running; try again shortly")


def _another_body() -> IdempotencyKeyReused:
    return IdempotencyKeyReused("This Idempotency-Key was used with another body")


async def forget(ctx: Context, about: Sequence[ObjectId]) -> None:
    """Remove the answers about clients, in the transaction that erases them."""
    await _replays.delete_many(ctx, {"about": {"$in": list(about)}})


async def _first_answer(ctx: Context, claim: Claim) -> StoredResponse | None:
    record: Document | None = await _replays.find_one(ctx, {"_id": claim.id})
    if record is None:
        return None
    if record["createdAt"] < now() - KEPT:
        await _replays.delete(ctx, {"_id": claim.id, "createdAt": record["createdAt"]})
        return None
    if record["fingerprint"] != claim.fingerprint:
        raise _another_body()
    if record["about"]:
        await ctx.publish(ResponseReplayed(record["about"]))
    body = ctx.services.vault.open(record["answer"], _binding(claim))
    return StoredResponse(record["status"], body, replayed=True)


def _binding(claim: Claim) -> str:
    return f"replay:{claim.id}"
