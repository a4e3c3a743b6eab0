"""Carries out a call of a tool: once for each idempotency key, and only when it needs no confirmation or has one.

A call is confirmed by a token, for which the client of the assistant has asked its user, or by the approval of its
proposal. A call that is not confirmed is rolled back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import orjson

from coaching_service.core import audit
from coaching_service.core.auth.access import find_denial
from coaching_service.core.auth.principal import Principal
from coaching_service.core.auth.secrets import new_token, token_hash
from coaching_service.core.database.context import Context
from coaching_service.core.database.recording import Approver, DecidedIn
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.errors import Conflict, Forbidden, ServiceError
from coaching_service.core.http.responses import to_json
from coaching_service.core.idempotency import (
    Claim,
    IdempotencyKeyReused,
    RequestInProgress,
    StoredResponse,
    claim_steps,
    run_once,
)
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.confirmation import OUTREACH, OutreachDenied, Reason
from coaching_service.core.mcp.results import Answer, Source, Written, as_proposed, mark_typed
from coaching_service.core.mcp.tools import Tool
from coaching_service.integrations.proposals import _budgets as budgets
from coaching_service.integrations.proposals import allowance, events, store
from coaching_service.integrations.proposals._changes import describe_changes, is_shown
from coaching_service.integrations.proposals.models import Decision, Proposal, ProposedChange, Resolution, ShownRecord
from coaching_service.integrations.proposals.store import StoredConfirmation
from coaching_service.integrations.proposals.versions import (
    AMOUNTS,
    Version,
    find_unusual,
    reaches_people,
    read_versions,
)
from coaching_service.people.customers import service as customers

TOKEN_LIFETIME = store.CONFIRMATION_LIFETIME
_ORDER = list(Reason)


@dataclass(frozen=True)
class Output:
    """The result of a call: what an assistant reads, and the JSON object for programs."""

    text: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Approval:
    """The approval of a proposal by a coach, under the claim of an idempotency key if the request has one."""

    proposal: Proposal
    coach: Principal
    place: DecidedIn
    claim: Claim | None = None


@dataclass(frozen=True)
class Call:
    """A call with validated arguments. `sent`: its arguments as they were sent, without those the server consumes.

    `token` confirms it: from the user whom the client has asked, or, `in_chat`, from the arguments. `approval` confirms
    it too. `id` is the same when its transaction is repeated.
    """

    tool: Tool
    arguments: Mapping[str, Any]
    sent: Any
    idempotency_key: str | None = None
    token: str | None = None
    in_chat: bool = False
    approval: Approval | None = None
    id: ObjectId = field(default_factory=ObjectId)

    def identity(self, ctx: Context) -> str:
        """Return what a confirmation is bound to: key or grant, tool, arguments, and units of their loads."""
        units = [ctx.caller.load_unit, ctx.caller.company.load_unit, ctx.caller.company.loads_converted_at]
        return _digest([str(ctx.caller.credential_id), self.tool.name, self.sent, units])


class Unconfirmed(Exception):
    """The call was rolled back: the coach has to confirm it first.

    `messages`: how many people it writes to. `shown` is the hash of what it would do, and `changes` says it in words.
    `customer_ids`: the clients it concerns. `resolved`: what its names, dates and groups mean. `token_refused`: a token
    was sent that is not valid, or confirmed something else than what would be done now.
    """

    def __init__(
        self,
        call: Call,
        line: str,
        reasons: Sequence[Reason],
        shown: str,
        records: Sequence[ShownRecord],
        sources: Sequence[Source],
        changes: Sequence[ProposedChange],
        customer_ids: Sequence[ObjectId],
        resolved: Sequence[Resolution],
    ) -> None:
        super().__init__(line)
        self.messages = _count_messages(reasons, customer_ids)
        self.call, self.line, self.reasons, self.shown = call, line, reasons, shown
        self.records, self.sources = records, sources
        self.changes, self.customer_ids, self.resolved = changes, customer_ids, resolved

    @property
    def token_refused(self) -> bool:
        """Whether a token was sent, and is not valid."""
        return self.call.token is not None


class ProposalStale(Conflict):
    """What the coach was shown has changed: the assistant has to propose it again."""

    default_code = "PROPOSAL_STALE"
    default_message = "The records have changed since this was proposed; ask the assistant to propose it again"


class ProposalRejected(Conflict):
    """The coach has rejected the same call within the last 24 hours."""

    default_code = "REJECTED"


class TooManyProposals(ServiceError):
    """The assistant has 50 proposals that wait for the coach."""

    status, reason = 429, "Too Many Requests"
    default_code = "TOO_MANY_PROPOSALS"
    default_message = "50 proposals wait for the coach, who has to decide on some first"


class ProposalClosed(Conflict):
    """The proposal has been decided, or has expired."""

    default_code = "PROPOSAL_CLOSED"
    default_message = "This proposal has been decided, or has expired"


def find_tool_denial(tool: Tool, caller: Principal) -> Forbidden | None:
    """Return the error with which a caller may not call a tool, or None."""
    if not (tool.writes or tool.own_calls or caller.may_read):
        return Forbidden("This access may not read")
    if (denial := find_denial(tool.access, caller, writes=tool.writes)) is not None:
        return denial
    return OutreachDenied() if tool.outreach and not caller.may_reach_out else None


async def carry_out(ctx: Context, call: Call) -> Output:
    """Carry out a call. A tool that writes runs in one transaction: a call that fails changes nothing.

    Raises Unconfirmed; for an approved proposal ProposalClosed or ProposalStale; and what the tool raises.
    """
    if not call.tool.writes:
        result = await call.tool.call(ctx, call.arguments)
        if isinstance(result, Answer):
            return Output(result.text, _json(result.data))
        if isinstance(result, Written):
            raise TypeError(f"{call.tool.name} only reads, so it must not return Written")
        data = _json(result)
        return Output(orjson.dumps(data).decode(), data)
    if not call.tool.deletes:
        ctx.services.disk_space.require()
    await call.tool.call_preparation(ctx, call.arguments)
    if call.idempotency_key is None or call.arguments.get("dryRun"):
        return await in_transaction(ctx, lambda tx: _write(tx, call))
    return await _write_once(ctx, call, call.idempotency_key)


async def create_token(ctx: Context, unconfirmed: Unconfirmed) -> str:
    """Return a token that confirms a call that was not confirmed."""
    token = new_token()
    await store.create_confirmation(
        ctx, token_hash(token), _bound_call(ctx, unconfirmed.call), unconfirmed.shown, unconfirmed.resolved
    )
    return token


def _bound_call(ctx: Context, call: Call) -> str:
    """Return what a token confirms: a call, and whether the assistant or the user of the client confirms it."""
    return f"{call.identity(ctx)} {'chat' if call.in_chat else 'user'}"


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
        response = await run_once(ctx, claim, about, work)
    except RequestInProgress as error:
        raise Conflict("The first call with this idempotencyKey is still running", code=error.code) from None
    except IdempotencyKeyReused as error:
        message = "This idempotencyKey was used with another call or other arguments"
        raise Conflict(message, code=error.code) from None
    stored = orjson.loads(response.body)
    output = Output(stored["text"], stored["data"])
    if response.replayed and (approval := call.approval) is not None:  # the call was carried out before
        return await in_transaction(ctx, lambda tx: _settle(tx, approval, partial(_return, output)))
    return output


async def _return(output: Output) -> Output:
    return output


async def _write(tx: Context, call: Call) -> Output:
    confirmed = await _find_confirmation(tx, call) if call.approval is None else call.approval.proposal
    resolved = confirmed.get("resolved", ()) if confirmed is not None else ()
    tx.resolved.update((each["key"], each["meaning"]) for each in resolved)
    if call.approval is None:
        return await _write_confirmed(tx, call)
    return await _settle(tx, call.approval, lambda: _write_confirmed(tx, call))


async def _settle(tx: Context, approval: Approval, work: Callable[[], Awaitable[Output]]) -> Output:
    """Mark a proposal as executed, and store the result of `work`, which carries it out.

    Raises ProposalClosed, and RequestInProgress while another request with the same key approves it.
    """
    proposal = approval.proposal
    if approval.claim is not None:
        await claim_steps(tx, approval.claim, [proposal["_id"]], lambda _: events.only_client(proposal))
    by: Approver = {"_id": approval.coach.id, "name": approval.coach.name}
    decision = Decision("executed", by, place=approval.place)
    tx.changes.approved_by, tx.changes.decided_in = by, approval.place
    if not await store.decide(tx, proposal["_id"], decision):
        raise ProposalClosed
    output = await work()
    result = {"result": output.data, "resultText": output.text}
    await store.proposals.set_derived(tx, {"_id": proposal["_id"]}, {"$set": result})
    events.report_decision(tx, proposal, decision)
    as_coach = replace(tx, principal=approval.coach)
    await audit.record(as_coach, "proposal.approved", proposalId=proposal["_id"], about=events.only_client(proposal))
    return output


async def _write_confirmed(tx: Context, call: Call) -> Output:
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
    is_deleted = any(each.action == "deleted" and each.id == each.client_id for each in tx.changes.documents.values())
    if len(clients) != 1 or is_deleted or not await customers.is_archived(tx, clients[0]):
        return written
    return replace(written, line=f"{written.line} This client is archived.")


async def _require_confirmation(tx: Context, call: Call, written: Written) -> None:
    """Use up the confirmation of the call, if it needs one. Raises Forbidden, Unconfirmed, ProposalStale."""
    await tx.changes.check(tx)
    versions = [] if written.leads_back else await read_versions(tx, AMOUNTS)
    reasons = _find_reasons(tx, call, written, versions)
    # Not the reasons: what the assistant has done in the last minutes is one.
    shown = _digest([written.line, written.depends_on, [each["plans"] for each in written.sources], _versions(tx)])
    if call.approval is not None:
        if shown != call.approval.proposal["shown"]:
            raise ProposalStale
        return
    if await _use_token(tx, call, shown, reasons):
        return
    if unusual := await find_unusual(tx, versions):
        reasons.add(Reason.UNUSUAL_AMOUNT)
    if not reasons:
        reasons = await budgets.spend(tx, call.id, written, versions)
    if reasons:
        ordered = sorted(reasons, key=_ORDER.index)
        changes, customer_ids = await describe_changes(tx, written.unlogged), _concerned_clients(tx, call)
        line = " ".join([as_proposed(written.line), *unusual])
        resolved: list[Resolution] = [{"key": key, "meaning": meaning} for key, meaning in tx.resolved.items()]
        records = _list_records(tx)
        raise Unconfirmed(call, line, ordered, shown, records, written.sources, changes, customer_ids, resolved)


def _find_reasons(tx: Context, call: Call, written: Written, versions: Sequence[Version]) -> set[Reason]:
    """Return the reasons for a confirmation that the tool has found, and those of the call as a whole.

    Raises OutreachDenied.
    """
    reasons = {*written.reasons, *([Reason.MANY_CLIENTS] if len(_changed_clients(tx)) > 1 else [])}
    if undeclared := reasons - call.tool.confirms:
        raise RuntimeError(f"{call.tool.name} does not declare that it confirms {sorted(undeclared)}")
    if reaches_people(tx, versions):
        reasons.add(Reason.CONTACT)
    if reasons & OUTREACH and not tx.caller.may_reach_out:
        raise OutreachDenied
    return reasons


async def _find_confirmation(tx: Context, call: Call) -> StoredConfirmation | None:
    """Return what the token of a call confirms; None without a token, or if it is not valid."""
    if call.token is None:
        return None
    return await store.find_confirmation(tx, token_hash(call.token), _bound_call(tx, call))


async def _use_token(tx: Context, call: Call, shown: str, reasons: Collection[Reason]) -> bool:
    """Use up the token of a call; returns whether it confirms what the call would do."""
    known = await _find_confirmation(tx, call)
    if known is None or known["shown"] != shown:
        return False
    is_limited = call.in_chat or tx.caller.via == "apiKey"  # the program of a key answers what its user would be asked
    if is_limited and not await allowance.use(tx, _count_messages(reasons, _concerned_clients(tx, call))):
        return False
    tx.changes.approved_by, tx.changes.decided_in = {"_id": tx.caller.id, "name": tx.caller.name}, "chat"
    await store.confirmations.delete(tx, {"_id": known["_id"]})  # with what the call does
    return True


def _count_messages(reasons: Collection[Reason], customer_ids: Sequence[ObjectId]) -> int:
    """Return how many people a call writes to."""
    return max(1, len(customer_ids)) if Reason.CONTACT in reasons else 0


def _concerned_clients(tx: Context, call: Call) -> list[ObjectId]:
    """Return the clients whom the call changes, writes to or names; not those whom it would create."""
    clients = [*_changed_clients(tx), *(event.customer_id for event in tx.changes.events)]
    known = dict.fromkeys([*clients, call.arguments.get("customerId")])
    created = {each.id for each in tx.changes.documents.values() if each.action == "created"}
    return [each for each in known if each is not None and each not in created]


def _versions(tx: Context) -> list[list[object]]:
    """Return the documents that the call changes, with the versions they have now; of new ones only how many."""
    records = _list_records(tx)
    created = {each.id for each in tx.changes.documents.values() if is_shown(each)} - {each["_id"] for each in records}
    return [[len(created)], *sorted([[*each.values()] for each in records], key=str)]


def _list_records(tx: Context) -> list[ShownRecord]:
    """Return the existing documents that the call changes, with the versions they have now.

    Left out is what only follows: the conversation of a message, and the delivered message whose sending is undone.
    """
    followed = [each for each in tx.changes.documents.values() if is_shown(each)]
    changes = {each.id: each for each in reversed(followed)}.values()
    return [
        {"collection": change.collection, "_id": change.id, "version": change.from_version}
        for change in changes
        if change.action != "created"
    ]


def _digest(value: object) -> str:
    canonical = orjson.dumps(orjson.loads(to_json(value)), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(canonical).hexdigest()


def _spoken(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _json(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object as JSON has it, in which the text written by people is marked."""
    decoded: dict[str, Any] = mark_typed(orjson.loads(to_json(value)))
    return decoded


async def use_unit_of_client(ctx: Context, customer_id: ObjectId | None) -> Context:
    """Return a context in which loads are shown and taken in the unit of a client; the company's without a client."""
    if customer_id is None:
        return ctx
    own_unit = await customers.find_own_load_unit(ctx, customer_id)
    return replace(ctx, principal=replace(ctx.caller, own_load_unit=own_unit))
