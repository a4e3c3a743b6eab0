"""Carries out a call of a tool: once for each idempotency key, and only when it needs no confirmation or has one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from coaching_service.core.auth.secrets import new_token, token_hash
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.errors import Conflict, Forbidden
from coaching_service.core.http.responses import to_json
from coaching_service.core.idempotency import Claim, IdempotencyKeyReused, RequestInProgress, StoredResponse, run_once
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.confirmation import OUTREACH, OUTREACH_DENIED, Reason
from coaching_service.core.mcp.results import Answer, Written, mark_typed
from coaching_service.core.mcp.tools import Tool
from coaching_service.mcp import store
from coaching_service.people.customers import service as customers

_ORDER = list(Reason)


@dataclass(frozen=True)
class Output:
    """The result of a call: what an assistant reads, and the JSON object for programs."""

    text: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A call with validated arguments. `sent`: its arguments as they were sent, without those the server consumes.

    `token` confirms it: from the arguments, or from the user whom the client has asked.
    """

    tool: Tool
    arguments: Mapping[str, Any]
    sent: Any
    idempotency_key: str | None = None
    token: str | None = None

    def identity(self, ctx: Context) -> str:
        """Return what a confirmation is bound to: key or grant, tool, arguments, and units of their loads."""
        units = [ctx.caller.load_unit, ctx.caller.company.load_unit, ctx.caller.company.loads_converted_at]
        return _digest([str(ctx.caller.credential_id), self.tool.name, self.sent, units])


class Unconfirmed(Exception):
    """The call was not carried out: the coach has to confirm it first.

    `token_refused`: a token was sent that is not valid, or confirmed something else than what would be done now.
    """

    def __init__(self, line: str, reasons: Sequence[Reason], token: str, *, token_refused: bool) -> None:
        super().__init__(line)
        self.line, self.reasons, self.token, self.token_refused = line, reasons, token, token_refused


class _RolledBack(Exception):
    """Ends the transaction of a call that is not confirmed. `shown` is the hash of what it would do."""

    def __init__(self, line: str, reasons: Sequence[Reason], shown: str) -> None:
        super().__init__(line)
        self.line, self.reasons, self.shown = line, reasons, shown


async def carry_out(ctx: Context, call: Call) -> Output:
    """Carry out a call. A tool that writes runs in one transaction: a call that fails changes nothing.

    Raises Unconfirmed, and what the tool raises.
    """
    if not call.tool.writes:
        result = await call.tool.call(ctx, call.arguments)
        if isinstance(result, Answer):
            return Output(result.text, _json(result.data))
        if isinstance(result, Written):
            raise TypeError(f"{call.tool.name} only reads, so it must not return Written")
        data = _json(result)
        return Output(orjson.dumps(data).decode(), data)
    ctx.services.disk_space.require()
    await call.tool.call_preparation(ctx, call.arguments)
    try:
        if call.idempotency_key is None:
            return await in_transaction(ctx, lambda tx: _write(tx, call))
        return await _write_once(ctx, call, call.idempotency_key)
    except _RolledBack as proposal:
        token = new_token()
        await store.create(ctx, token_hash(token), call.identity(ctx), proposal.shown)
        raise Unconfirmed(proposal.line, proposal.reasons, token, token_refused=call.token is not None) from None


async def _write_once(ctx: Context, call: Call, key: str) -> Output:
    body = {"tool": call.tool.name, "arguments": call.sent}
    claim = Claim.of(ctx, key, "TOOL", str(ctx.caller.credential_id), body)
    about = call.arguments.get("customerId")

    async def work(tx: Context) -> tuple[StoredResponse, ObjectId | None]:
        output = await _write(tx, call)
        about_new = output.data.get("customerId")
        body = to_json({"text": output.text, "data": output.data})
        return StoredResponse(200, body), ObjectId(about_new) if about_new else None

    try:
        stored = orjson.loads((await run_once(ctx, claim, about, work)).body)
    except RequestInProgress as error:
        raise Conflict("The first call with this idempotencyKey is still running", code=error.code) from None
    except IdempotencyKeyReused as error:
        message = "This idempotencyKey was used with another call or other arguments"
        raise Conflict(message, code=error.code) from None
    return Output(stored["text"], stored["data"])


async def _write(tx: Context, call: Call) -> Output:
    result = await call.tool.call(tx, call.arguments)
    if not isinstance(result, Written):
        raise TypeError(f"{call.tool.name} writes, so it must return Written")
    written = await _note_archived(tx, result)
    await _require_confirmation(tx, call, written)
    identifiers = _json({"changeId": tx.change_id, **written.identifiers})
    known = [f"{name}: {_spoken(value)}" for name, value in identifiers.items() if value]
    data = {"summary": written.line, **_json(written.details), **identifiers}
    return Output(" ".join([written.line, "; ".join(known)]).strip(), data)


def _changed_clients(tx: Context) -> list[ObjectId]:
    clients = (change.client_id for change in tx.changes.documents.values())
    return [each for each in dict.fromkeys(clients) if each is not None]


async def _note_archived(tx: Context, written: Written) -> Written:
    """Return what was done, with a sentence if the only client whom it concerns is archived."""
    clients = _changed_clients(tx)
    if len(clients) != 1 or not await customers.is_archived(tx, clients[0]):
        return written
    return replace(written, line=f"{written.line} This client is archived.")


async def _require_confirmation(tx: Context, call: Call, written: Written) -> None:
    """Use up the confirmation of the call, if it needs one. Raises Forbidden, _RolledBack."""
    reasons = {*written.reasons, *([Reason.MANY_CLIENTS] if len(_changed_clients(tx)) > 1 else [])}
    if undeclared := reasons - call.tool.confirms:
        raise RuntimeError(f"{call.tool.name} does not declare that it confirms {sorted(undeclared)}")
    if not reasons:
        return
    if reasons & OUTREACH and not tx.caller.may_reach_out:
        raise Forbidden(OUTREACH_DENIED)
    shown = _digest([written.line, sorted(reasons), written.depends_on, _versions(tx)])
    known = await store.find(tx, token_hash(call.token), call.identity(tx)) if call.token else None
    if known is None or known["shown"] != shown:
        raise _RolledBack(written.line, sorted(reasons, key=_ORDER.index), shown)
    await store.delete(tx, known["_id"])


def _versions(tx: Context) -> list[list[object]]:
    """Return the documents that the call changes, with the versions they have now; of new ones only how many."""
    changes = [change for change in tx.changes.documents.values() if change.history.undo != "derived"]
    existing = [[change.collection, change.id, change.from_version] for change in changes if change.action != "created"]
    return [[len(changes) - len(existing)], *sorted(existing, key=str)]


def _digest(value: object) -> str:
    canonical = orjson.dumps(orjson.loads(to_json(value)), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(canonical).hexdigest()


def _spoken(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _json(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object as JSON has it, in which the text written by people is marked."""
    decoded: dict[str, Any] = mark_typed(orjson.loads(to_json(value)))
    return decoded
