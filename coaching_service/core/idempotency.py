"""Safe retries: the first response to an `Idempotency-Key` is stored with the change it reports, in one transaction.

Ages are measured by the clock of the database: a wrong clock of a process neither repeats nor forgets a request.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, ClassVar, NotRequired

import orjson

from coaching_service.core.auth import SecretUnreadable
from coaching_service.core.database import outcome
from coaching_service.core.database.context import AlreadyClaimed, Context, Services, in_transaction
from coaching_service.core.database.declared import Index, NotExported, Stored
from coaching_service.core.database.documents import Document, Documents
from coaching_service.core.errors import RETRY_SOON, BadRequest, Conflict
from coaching_service.core.events import DomainEvent
from coaching_service.core.ids import ObjectId, stable_id

RETENTION = timedelta(hours=24)
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


class StoredReplay(Stored):
    """A key, or one step of a long request, and the response once there is one: its status and its encrypted JSON.

    Of a step: its `result`, identifiers and numbers, if the response needs it.

    `about` is the client the response concerns, if any; `changeId` the change or the batch that the request made.
    """

    fingerprint: str
    status: NotRequired[int]
    answer: NotRequired[bytes]
    about: NotRequired[ObjectId | None]
    changeId: NotRequired[ObjectId | None]
    result: NotRequired[Mapping[str, object]]


_replays = Documents[StoredReplay](
    "replays",
    (Index(("about",)),),
    client_field="about",
    secret=True,
    expire=("createdAt", int(RETENTION.total_seconds())),
    cross_company_reason="it is checked whether the responses of all companies can be read",
    transfer=NotExported("stored responses of this company, kept for a day"),
    incidental=True,
)
_AGE: Document = {"$subtract": ["$$NOW", "$createdAt"]}
_RETAINED: Document = {"$expr": {"$lte": [_AGE, round(RETENTION.total_seconds() * 1000)]}}
_EXPIRED: Document = {"$expr": {"$gt": [_AGE, round(RETENTION.total_seconds() * 1000)]}}
_CREATED_NOW: Document = {"$currentDate": {"createdAt": True}}


@dataclass(frozen=True)
class ResponseReplayed(DomainEvent):
    """A stored response is about to be sent again; subscribers may refuse it by raising.

    `about` is the client the response is about, or the identifier of another document.
    """

    changes_nothing: ClassVar[bool] = True
    about: ObjectId


@dataclass(frozen=True)
class StoredResponse:
    """A response: its status, its JSON, whether it is sent again, and the change or batch that the request made."""

    status: int
    body: bytes
    replayed: bool = False
    change_id: ObjectId | None = None


@dataclass(frozen=True)
class Claim:
    """The identity of a request, from its key, company, method and path, and the fingerprint of its body."""

    id: ObjectId
    fingerprint: str

    @classmethod
    def of(cls, ctx: Context, key: str, method: str, path: str, body: Any) -> Claim:
        """Return the claim of one request. Raises BadRequest if the key is malformed."""
        if not _KEY.fullmatch(key):
            raise BadRequest("Idempotency-Key must be 1 to 255 visible ASCII characters")
        canonical = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
        return cls(stable_id(str(ctx.company_id), method, path, key), hashlib.sha256(canonical).hexdigest())


class IdempotencyKeyReused(Conflict):
    """The key was used with another request."""

    default_code = "IDEMPOTENCY_KEY_REUSED"
    default_message = "This Idempotency-Key was used with another body"


class RequestInProgress(IdempotencyKeyReused):
    """The first request with the same key is still running."""

    default_code = "IDEMPOTENCY_KEY_IN_USE"
    default_message = "A request with this Idempotency-Key is still running; try again shortly"
    default_headers = RETRY_SOON


class KeyNotSupported(BadRequest):
    """The operation takes no `Idempotency-Key`: repeating it would not be safe, or would reveal a secret again."""

    default_code = "IDEMPOTENCY_NOT_SUPPORTED"
    default_message = "This operation takes no Idempotency-Key; read the resource before you repeat it"


class ResponseUnreadable(Conflict):
    """The stored response is encrypted with a master key that this process does not have."""

    default_code = "IDEMPOTENT_RESPONSE_UNREADABLE"
    default_message = (
        "The request was carried out before, but its stored response cannot be read any more; read the resource"
    )


async def run_once(
    ctx: Context,
    claim: Claim,
    about: ObjectId | None,
    work: Callable[[Context], Awaitable[tuple[StoredResponse, ObjectId | None]]],
) -> StoredResponse:
    """Call `work` once for this claim, in a transaction; a repetition returns the stored response.

    `work` returns the response and the client it is about, unless `about` names the client: the response is removed
    when that client is erased. Raises IdempotencyKeyReused, RequestInProgress, ResponseUnreadable, and what subscribers
    of ResponseReplayed raise.
    """
    outcome.mark_repeatable()
    if (stored := await _find_response(ctx, claim)) is not None:
        return stored

    async def work_with_claim(tx: Context) -> StoredResponse:
        await _replays.claim(tx, {"_id": claim.id, "fingerprint": claim.fingerprint})
        response, client = await work(tx)
        response = replace(response, change_id=tx.change_id)
        change = {"$set": _seal_response(ctx, claim, response, about or client), **_CREATED_NOW}
        await _replays.set_derived(tx, {"_id": claim.id}, change)
        return response

    try:
        return await in_transaction(ctx, work_with_claim)
    except AlreadyClaimed:
        if (stored := await _find_response(ctx, claim)) is not None:
            return stored
        if await _replays.delete(ctx, {"_id": claim.id, **_EXPIRED}):
            return await run_once(ctx, claim, about, work)
        raise RequestInProgress from None


async def run_in_steps(
    ctx: Context, claim: Claim, work: Callable[[Context], Awaitable[tuple[StoredResponse, ObjectId | None]]]
) -> StoredResponse:
    """Call `work`, which is too much for one transaction and claims each of its steps, once for this claim.

    A repetition returns the stored response; before there is one, it continues with the steps that are not done.
    Raises IdempotencyKeyReused, ResponseUnreadable.
    """
    outcome.mark_repeatable()
    if (stored := await _find_response(ctx, claim)) is not None:
        return stored
    response, about = await work(ctx)
    response = replace(response, change_id=next(iter(ctx.change_ids), None))
    record = {"_id": claim.id, "fingerprint": claim.fingerprint, **_seal_response(ctx, claim, response, about)}
    try:
        await _replays.claim(ctx, record)
    except AlreadyClaimed:
        return await _find_response(ctx, claim) or response
    await _replays.set_derived(ctx, {"_id": claim.id}, _CREATED_NOW)
    return response


async def find_done_steps(
    ctx: Context, claim: Claim, steps: Collection[ObjectId]
) -> dict[ObjectId, Mapping[str, object] | None]:
    """Return which of `steps` were carried out under a claim, each with its result, None if it stored none.

    Raises IdempotencyKeyReused for another body.
    """
    identifiers = {_step_id(claim, step): step for step in steps}
    done = await _replays.find(ctx, {"_id": {"$in": list(identifiers)}}, fields=("fingerprint", "result"))
    if any(each["fingerprint"] != claim.fingerprint for each in done):
        raise IdempotencyKeyReused
    return {identifiers[each["_id"]]: each.get("result") for each in done}


async def claim_steps(
    ctx: Context, claim: Claim, steps: Collection[ObjectId], about: Callable[[ObjectId], ObjectId | None]
) -> None:
    """Claim steps that are not done, in the transaction that carries them out; `about` returns the client of a step.

    Raises RequestInProgress while another request with the same key is at one of them.
    """
    if not steps:
        return
    claims = {_step_id(claim, step): about(step) for step in steps}
    records = [
        {"_id": identifier, "fingerprint": claim.fingerprint, "about": client} for identifier, client in claims.items()
    ]
    try:
        await _replays.claim(ctx, *records)
    except AlreadyClaimed:
        raise RequestInProgress from None
    await _replays.set_derived(ctx, {"_id": {"$in": list(claims)}}, _CREATED_NOW)


async def set_step_result(ctx: Context, claim: Claim, step: ObjectId, result: Mapping[str, object]) -> None:
    """Store the result of a claimed step, in the transaction that carries it out."""
    await _replays.set_derived(ctx, {"_id": _step_id(claim, step)}, {"$set": {"result": result}})


def _step_id(claim: Claim, step: ObjectId) -> ObjectId:
    return stable_id(str(claim.id), str(step))


async def delete_responses(ctx: Context, about: Sequence[ObjectId]) -> None:
    """Delete the responses about clients, in the transaction that erases them."""
    await _replays.delete_many(ctx, {"about": {"$in": list(about)}})


def _seal_response(ctx: Context, claim: Claim, response: StoredResponse, about: ObjectId | None) -> Document:
    sealed = ctx.services.vault.seal(response.body, _binding(claim))
    return {"status": response.status, "answer": sealed, "about": about, "changeId": response.change_id}


async def _find_response(ctx: Context, claim: Claim) -> StoredResponse | None:
    record = await _replays.find_one(ctx, {"_id": claim.id, **_RETAINED})
    if record is None:
        return None
    if record["fingerprint"] != claim.fingerprint:
        raise IdempotencyKeyReused
    if about := record["about"]:
        await ctx.publish(ResponseReplayed(about))
    try:
        body = ctx.services.vault.open(record["answer"], _binding(claim))
    except SecretUnreadable:
        raise ResponseUnreadable from None
    return StoredResponse(record["status"], body, replayed=True, change_id=record.get("changeId"))


def _binding(claim: Claim) -> str:
    return f"replay:{claim.id}"


# --- Checks ----------------------------------------------------------------------------------------------------------


async def iterate_unreadable(services: Services) -> AsyncIterator[ObjectId]:
    """Iterate over the stored responses that no master key opens."""
    cursor = _replays.across_companies(services).find({"answer": {"$exists": True}}, {"answer": 1}, batch_size=50)
    async for record in cursor:
        try:
            services.vault.open(record["answer"], _binding(Claim(record["_id"], "")))
        except SecretUnreadable:
            yield record["_id"]
