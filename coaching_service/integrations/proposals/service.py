"""Proposals of assistants: what a coach has to decide on, and the decision. REST takes a session only."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, NotRequired, TypedDict, cast

import orjson

from coaching_service.core import audit, errors, idempotency
from coaching_service.core.auth import CUSTOMERS, Visibility, coach, session_only
from coaching_service.core.changes.log import DocumentsWritten
from coaching_service.core.database.context import AlreadyClaimed, Context, Services, transactional
from coaching_service.core.database.documents import Document, Filter, now, registry
from coaching_service.core.database.recording import Approver, DecidedIn
from coaching_service.core.http.responses import to_json
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.core.list_selection import CursorPage, ListPart
from coaching_service.core.mcp import Answer, Arguments, InvalidArguments, Tools, format_time, typed, validate_arguments
from coaching_service.core.validation import Choice, Identifier, Text
from coaching_service.integrations.proposals import models, tool_calls
from coaching_service.people import api_keys, assistants, notifications, team
from coaching_service.people.changes.models import area_of, load_visibility
from coaching_service.people.customers.models import CustomersDeleted
from coaching_service.progress.conversation.messages import MessagesRecalled
from coaching_service.training.workouts.blocks import batches

# --- Notifications ----------------------------------------------------------------------------------------------------
# Notifications of a coach for whom proposals wait: after a minute, at most one in 15 minutes for each assistant.
#
# They contain no part of the proposals.


# A coach who is in front of the assistant decides meanwhile.
_DELAY = timedelta(minutes=1)
_INTERVAL = timedelta(minutes=15)


async def write_message(ctx: Context, notification: notifications.Notification) -> notifications.Message | None:
    """Return what to send about the proposals that wait since the last notification; None if there are none."""
    coach, assistant = notification["recipient"]["_id"], notification["subject"]["assistantId"]
    waiting: Filter = {"coachId": coach, "assistant._id": assistant, **models.has_status("pending")}
    unannounced = {**waiting, "isMailed": {"$exists": False}}
    newest = next(iter(await models.find(ctx, unannounced, sort=models.NEWEST_FIRST, limit=1)), None)
    if newest is None:
        return None
    number = await models.proposals.set_derived(ctx, waiting, {"$set": {"isMailed": True}})
    what = "something" if number == 1 else f"{number} things"
    return notifications.Message(
        subject="Your assistant waits for your decision",
        paragraphs=[f"Your assistant {newest['assistant']['name']} proposes {what} that you have to approve first."],
        button="Look at it, and decide",
        path=f"/app/proposals/{newest['_id']}" if number == 1 else "/app/proposals?status=pending",
        notes=["Nothing is done until you approve it, and nothing at all if you do not within 24 hours."],
        reason=f"You receive this mail because an assistant acts for you at {ctx.caller.company.name}.",
        title="Your assistant waits for your decision",
        text=f"It proposes {what}",
    )


# The operations in the history of what happens to a proposal without a request of a coach.
PROPOSE, EXPIRE, CLOSE_STALE = "propose_change", "expire_proposal", "close_stale_proposal"
_HIDDEN = "It changes records that you may not see."
MAX_PENDING = 50  # of one assistant and coach
# A change may be stored at the same time as the proposal, and then neither transaction reads the other.
_LOOK_AGAIN = timedelta(seconds=8)
# Others are of the tool, which could do it when it was proposed.
_OWN_CONFLICTS = (tool_calls.ProposalClosed.default_code, idempotency.RequestInProgress.default_code)


# --- Proposing -------------------------------------------------------------------------------------------------------


async def propose(ctx: Context, unconfirmed: tool_calls.Unconfirmed) -> models.Proposal:
    """Store a call that has to be confirmed, and return it as a proposal of the caller, an assistant.

    An equal call that is pending, and would still do the same, is returned instead. Raises ProposalRejected if the
    coach has rejected an equal one within a day, TooManyProposals, and Conflict for the idempotency key of another one.
    """
    caller = ctx.caller
    is_key = caller.via == "apiKey"
    name = await api_keys.find_name(ctx, caller.credential_id) if is_key else caller.application
    assistant: models.ProposingAssistant = {"_id": caller.credential_id, "name": name or "Assistant"}
    ctx = replace(ctx, operation=PROPOSE)
    while True:
        try:
            return await _propose(ctx, unconfirmed, assistant)
        except AlreadyClaimed:  # the same call at the same time
            continue


@transactional
async def _propose(
    ctx: Context, unconfirmed: tool_calls.Unconfirmed, assistant: models.ProposingAssistant
) -> models.Proposal:
    call, caller = unconfirmed.call, ctx.caller
    identity = call.identity(ctx)
    if (pending := await models.find_one(ctx, {"call": identity, "status": "pending"})) is not None:
        if pending["shown"] == unconfirmed.shown and pending["expiresAt"] > now():
            return pending
        await _decide(ctx, pending, models.Decision("expired"))
    await _require_welcome(ctx, unconfirmed, identity)
    owners = (each["programId"] or each["customerId"] for each in unconfirmed.sources)
    watched = dict.fromkeys([*(each["_id"] for each in unconfirmed.records), *owners])
    new: models.NewProposal = {
        "tool": call.tool.name,
        "summary": unconfirmed.line,
        "reasons": [reason.name for reason in unconfirmed.reasons],
        "changes": list(unconfirmed.changes),
        "assistant": assistant,
        "coachId": caller.id,
        "arguments": to_json(call.sent).decode(),
        "resolved": list(unconfirmed.resolved),
        "idempotencyKey": call.idempotency_key,
        "hasKey": caller.via == "apiKey",
        "call": identity,
        "shown": unconfirmed.shown,
        "records": list(unconfirmed.records),
        "sources": list(unconfirmed.sources),
        "customerIds": list(unconfirmed.customer_ids),
        "watches": [each for each in watched if each is not None],
        "status": "pending",
        "expiresAt": now() + models.LIFETIME,
    }
    undecided = dict.fromkeys(("decidedAt", "decidedBy", "decidedIn", "note", "result"))
    await models.proposals.claim(ctx, {"_id": (proposal_id := ObjectId()), **new, **undecided})
    [proposal] = await models.find(ctx, {"_id": proposal_id})
    arguments = _arguments(ctx, proposal["_id"])
    await queue.enqueue(ctx, EXPIRE, arguments, after=_LOOK_AGAIN, about=models.only_client(proposal))
    due = notifications.DueNotification(
        key=f"proposals:{caller.id}:{caller.credential_id}",
        kind="proposals",
        recipient={"type": "coach", "_id": caller.id},
        due_at=now() + _DELAY,
        subject={"assistantId": caller.credential_id},
        interval=_INTERVAL,
    )
    await notifications.make_due(ctx, [due])
    models.report(ctx, proposal)
    return proposal


async def _require_welcome(ctx: Context, unconfirmed: tool_calls.Unconfirmed, identity: str) -> None:
    """Raise what `propose` raises for a new proposal."""
    since = now() - models.LIFETIME
    rejected: Filter = {"status": "rejected", "decidedAt": {"$gt": since}}
    refused = await models.find_one(ctx, {**rejected, "call": identity})
    if refused is None:  # one of other arguments that does the same
        of_tool: Filter = {
            **rejected,
            "createdAt": {"$gt": since - models.LIFETIME},
            "assistant._id": ctx.caller.credential_id,
            "tool": unconfirmed.call.tool.name,
            "summary": unconfirmed.line,
        }
        alike = await models.find(ctx, of_tool)
        refused = next((each for each in alike if each["changes"] == list(unconfirmed.changes)), None)
    if refused is not None:
        note = refused.get("note")
        raise tool_calls.ProposalRejected(
            f"REJECTED: the coach has rejected this call{f': {typed(note)}' if note else ''}"
        )
    own: Filter = {"coachId": ctx.caller.id, "assistant._id": ctx.caller.credential_id, **models.has_status("pending")}
    if await models.proposals.count(ctx, own) >= MAX_PENDING:
        raise tool_calls.TooManyProposals
    key = unconfirmed.call.idempotency_key
    if key is not None and await models.find_one(ctx, {**own, "idempotencyKey": key}) is not None:
        message = "This idempotencyKey was used with another call or other arguments"
        raise errors.Conflict(message, code=idempotency.IdempotencyKeyReused.default_code)


def nonce_of(services: Services, proposal_id: ObjectId) -> str:
    """Return the secret that a view of the proposal sends with a decision; the model never reads it."""
    return services.vault.sign(f"proposal:{proposal_id}")


def url_of(services: Services, proposal_id: ObjectId) -> str:
    """Return the address of the page on which a coach decides on a proposal."""
    return f"{services.base_url}/app/proposals/{proposal_id}"


# --- Reading ---------------------------------------------------------------------------------------------------------


routes = Routes(
    "/coach/proposals", tag="Proposals", path_descriptions={"proposalId": "The identifier of the proposal."}
)


@routes.get("", access=session_only())
async def list_proposals(ctx: Context, query: models.ProposalQuery) -> CursorPage[models.Proposal]:
    """List proposals of assistants, newest first.

    Those on the caller's behalf; for the owner, all of the company. A proposal that concerns a client whom the caller
    does not work with is left out.
    """
    status, limit, after = query["status"], query["limit"], query["after"]
    part = ListPart(ctx, "proposals", {"status": status}, models.NEWEST_FIRST, size=limit, after=after)
    where = _own(ctx) | ({} if status is None else models.has_status(status)) | await _in_scope(ctx)
    stored = await models.find(ctx, part.within(where), sort=part.sort, limit=part.limit)
    visibility = await load_visibility(ctx)
    return part.by_cursor(stored, lambda each: _present(each, visibility))


async def count_pending(ctx: Context) -> int:
    """Return how many proposals wait for a decision of the caller."""
    return await models.proposals.count(ctx, _own(ctx) | models.has_status("pending") | await _in_scope(ctx))


@routes.get("/{proposalId}", access=session_only(), errors=(errors.NotFound,), operation_id="getProposal")
async def get(ctx: Context, proposal_id: ObjectId) -> models.Proposal:
    """Read a proposal of an assistant."""
    proposal = await _get_stored(ctx, proposal_id, _own(ctx))
    ctx.clients_seen.ids.update(proposal["customerIds"])
    return _present(proposal, await load_visibility(ctx))


async def find_own(ctx: Context, proposal_id: ObjectId) -> models.Proposal:
    """Return a proposal of the calling assistant, with its private fields. Raises NotFound if it made no such one."""
    where: Filter = {"coachId": ctx.caller.id, "assistant._id": ctx.caller.credential_id}
    proposal = await _get_stored(ctx, proposal_id, where)
    return {**proposal, "status": _status(proposal)}


async def _get_stored(ctx: Context, proposal_id: ObjectId, where: Filter) -> models.Proposal:
    """Return the proposal of `where` with private fields. Raises NotFound, also without a client of it in scope."""
    if (proposal := await models.find_one(ctx, {"_id": proposal_id} | where | await _in_scope(ctx))) is None:
        raise errors.NotFound("proposal")
    return proposal


async def find_decided(ctx: Context, call: tool_calls.Call, proposal_id: str) -> models.Proposal | None:
    """Return the proposal of a call of the calling assistant if a coach has decided on it, else None."""
    if not ObjectId.is_valid(proposal_id):
        return None
    proposal = await models.find_one(ctx, {"_id": ObjectId(proposal_id), "call": call.identity(ctx)})
    return proposal if proposal is not None and proposal["status"] not in ("pending", "expired") else None


def _own(ctx: Context) -> Filter:
    return {} if ctx.caller.role == "OWNER" else {"coachId": ctx.caller.id}


async def _in_scope(ctx: Context) -> Filter:
    """Return the filter of proposals that concern no client whom the caller does not work with."""
    visibility = await load_visibility(ctx)
    if visibility.customer_ids is None:
        return {}
    return {"customerIds": {"$not": {"$elemMatch": {"$nin": list(visibility.customer_ids)}}}}


def _present(proposal: models.Proposal, visibility: Visibility) -> models.Proposal:
    """Return a proposal as a coach reads it.

    Changes in areas that the coach may not see are left out, and then also the texts that say what they are. What has
    no area of its own lies under a client.
    """
    changes = [
        change
        for change in proposal["changes"]
        if visibility.allows(
            area=area_of(change["kind"], change["customer"] and change["customer"]["_id"]) or CUSTOMERS
        )
    ]
    public = {name: value for name, value in proposal.items() if name not in models.proposals.private}
    if len(changes) < len(proposal["changes"]) or not (changes or visibility.allows(area=CUSTOMERS)):
        public |= {"summary": _HIDDEN, "result": None}
    return cast("models.Proposal", {**public, "status": _status(proposal), "changes": changes})


def _status(proposal: models.Proposal) -> models.Status:
    return "expired" if proposal["status"] == "pending" and proposal["expiresAt"] <= now() else proposal["status"]


# --- Deciding --------------------------------------------------------------------------------------------------------


async def approve(
    ctx: Context, proposal_id: ObjectId, claim: idempotency.Claim | None = None, *, place: DecidedIn = "page"
) -> models.Proposal:
    """Carry out a proposal with the rights that its assistant has now, and return it; `place`: where it is approved.

    A proposal that was approved under the same `claim` is returned. Raises NotFound as `get` does, ProposalClosed,
    ProposalStale; Forbidden, and the proposal has failed, if the assistant may not do it any more; and Conflict while
    an equal call with the same idempotency key is running.
    """
    if claim is not None and await idempotency.find_done_steps(ctx, claim, [proposal_id]):
        return await get(ctx, proposal_id)
    proposal = await _get_open(ctx, proposal_id)
    try:
        await _execute(ctx, tool_calls.Approval(proposal, ctx.caller, place, claim))
    except errors.Forbidden as error:
        result = {"code": error.code, "message": str(error)}
        await _decide(ctx, proposal, models.Decision("failed", _identify_coach(ctx), result, place))
        raise
    except tool_calls.ProposalStale:
        await _decide(ctx, proposal, models.Decision("stale"))
        raise
    except tool_calls.ProposalClosed:
        await _get_open(ctx, proposal_id)  # it may have become stale meanwhile
        raise
    return await get(ctx, proposal_id)


@transactional
async def reject(
    ctx: Context, proposal_id: ObjectId, note: str | None = None, *, place: DecidedIn = "page"
) -> models.Proposal:
    """Reject a proposal, with what the assistant is to read, and return it.

    Raises NotFound as `get` does, ProposalStale, ProposalClosed.
    """
    proposal = await _get_open(ctx, proposal_id)
    if not await _decide(ctx, proposal, models.Decision("rejected", _identify_coach(ctx), None, place, note or None)):
        raise tool_calls.ProposalClosed
    await audit.record(ctx, "proposal.rejected", proposal_id, customer_id=models.only_client(proposal))
    return await get(ctx, proposal_id)


async def reject_many(
    ctx: Context,
    ids: Sequence[ObjectId],
    assistant_id: ObjectId | None = None,
    note: str | None = None,
    *,
    place: DecidedIn = "page",
) -> int:
    """Reject proposals on which the caller decides, or all that wait of an assistant; returns how many were rejected.

    Those that are decided, or not there, are left out. Raises InvalidFields for both.
    """
    if assistant_id is not None and ids:
        raise errors.invalid_field("assistantId", "must not be sent beside ids")
    if assistant_id is not None:
        where = _own(ctx) | models.has_status("pending") | await _in_scope(ctx) | {"assistant._id": assistant_id}
        ids = [each["_id"] for each in await models.find(ctx, where, sort=models.NEWEST_FIRST)]
    rejected = 0
    for proposal_id in ids:
        with suppress(errors.NotFound, tool_calls.ProposalStale, tool_calls.ProposalClosed):
            await reject(ctx, proposal_id, note, place=place)
            rejected += 1
    return rejected


async def _get_open(ctx: Context, proposal_id: ObjectId) -> models.Proposal:
    """Return a pending proposal on which the caller decides, with its private fields.

    Raises NotFound, ProposalStale, ProposalClosed.
    """
    proposal = await _get_stored(ctx, proposal_id, _own(ctx))
    if proposal["status"] == "stale":
        raise tool_calls.ProposalStale
    if _status(proposal) != "pending":
        raise tool_calls.ProposalClosed
    return proposal


async def _execute(ctx: Context, approval: tool_calls.Approval) -> None:
    """Carry out the call of a proposal, as its assistant. Raises Forbidden, ProposalClosed, ProposalStale, Conflict."""
    proposal = approval.proposal
    if (tool := ctx.services.tools.get(proposal["tool"])) is None:  # a version of the service without it
        raise tool_calls.ProposalStale
    load = api_keys.load_principal if proposal["hasKey"] else assistants.load_principal
    if (principal := await load(ctx.services, proposal["assistant"]["_id"])) is None:
        raise errors.Forbidden("The assistant is not connected any more, or its API key is gone")
    if (denial := tool_calls.find_tool_denial(tool, principal)) is not None:
        raise denial
    sent = orjson.loads(proposal["arguments"])
    acting = replace(ctx, principal=principal, interface="assistant", operation=tool.name)
    try:
        arguments = validate_arguments(tool.takes, sent)
        acting = await tool_calls.use_unit_of_client(acting, arguments.get("customerId"))
        call = tool_calls.Call(tool, arguments, sent, proposal["idempotencyKey"], approval=approval)
        if call.identity(acting) != proposal["call"]:  # its loads would be in another unit
            raise tool_calls.ProposalStale
        await tool_calls.carry_out(acting, call)
    except (InvalidArguments, errors.BadRequest, errors.NotFound) as error:  # what it refers to is not there any more
        raise tool_calls.ProposalStale from error
    except errors.Conflict as error:
        raise error if error.code in _OWN_CONFLICTS else tool_calls.ProposalStale() from error


async def forget_responses(ctx: Context, event: CustomersDeleted) -> None:
    """Delete the stored responses to decisions about deleted clients."""
    about = {"customerIds": {"$in": list(event.customer_ids)}}
    found = await models.proposals.find(ctx, about, fields=("_id",))
    await idempotency.delete_responses(ctx, [each["_id"] for each in found])


async def mark_recalled(ctx: Context, event: MessagesRecalled) -> None:
    """Show that the messages of a proposal were recalled."""
    executed = {"status": "executed", "result.changeId": str(event.change_id)}
    await models.proposals.set_derived(ctx, executed, {"$set": {"status": "recalled"}})


@transactional
async def _decide(ctx: Context, proposal: models.Proposal, decision: models.Decision) -> bool:
    """Store a decision by which nothing is done; returns whether there was none before."""
    if not await models.decide(ctx, proposal["_id"], decision):
        return False
    models.report(ctx, proposal, decision)
    return True


async def expire_step(services: Services, job: queue.Job) -> queue.RunAgain | None:
    """Close a proposal that is undecided when it expires; one look before, a few seconds after it was stored."""
    expires_at = await _close(services, job)
    return None if expires_at is None else queue.RunAgain(max(expires_at - now(), timedelta(seconds=1)))


async def close_stale_step(services: Services, job: queue.Job) -> None:
    """Close an undecided proposal if its records have changed."""
    await _close(services, job)


async def queue_stale(ctx: Context, event: DocumentsWritten) -> None:
    """Queue the look at each proposal whose records, or copied days, a transaction changes."""
    changed = {each.id for each in event.documents if each.action != "created"}
    for each in event.documents:
        if each.kind == "workout":
            changed |= {owner for owner in (each.client_id, each.known["programId"]) if isinstance(owner, ObjectId)}
    if changed:
        watching: Filter = {"status": "pending", "watches": {"$in": list(changed)}}
        found = await models.find(ctx, watching)
        jobs = {ObjectId(): (_arguments(ctx, each["_id"]), models.only_client(each)) for each in found}
        if jobs:
            await queue.enqueue_each(ctx, CLOSE_STALE, jobs)


def _arguments(ctx: Context, proposal_id: ObjectId) -> Document:
    return {"companyId": ctx.company_id, "proposalId": proposal_id}


async def _close(services: Services, job: queue.Job) -> datetime | None:
    """Close the proposal of a job if it can be; returns when it expires if it is still open."""
    with suppress(errors.NotFound):  # the company is deleted
        owner = await team.get_owner(services, job.arguments["companyId"])
        return await _close_stored(Context(services, owner, interface="system", operation=EXPIRE), job)
    return None


@transactional
async def _close_stored(ctx: Context, job: queue.Job) -> datetime | None:
    proposal = await models.find_one(ctx, {"_id": job.arguments["proposalId"], "status": "pending"})
    if proposal is None:
        return None
    is_expired = proposal["expiresAt"] <= now()
    if not is_expired and not await _has_changed(ctx, proposal):
        return proposal["expiresAt"]
    await _decide(ctx, proposal, models.Decision("expired" if is_expired else "stale"))
    return None


async def _has_changed(ctx: Context, proposal: models.Proposal) -> bool:
    """Return whether a record that the coach is shown has another version, or is gone, or what is copied differs."""
    for source in proposal.get("sources", ()):
        if await batches.has_changed(ctx, source):
            return True
    shown = {each["_id"]: each for each in proposal.get("records", ())}
    for name in {each["collection"] for each in shown.values()}:
        ids = [each["_id"] for each in shown.values() if each["collection"] == name]
        found = await registry[name].find(ctx, {"_id": {"$in": ids}}, fields=("version",))
        if {each["_id"]: each["version"] for each in found} != {each: shown[each]["version"] for each in ids}:
            return True
    return False


def _identify_coach(ctx: Context) -> Approver:
    return {"_id": ctx.caller.id, "name": ctx.caller.name}


# --- Decisions over REST ----------------------------------------------------------------------------------------------


_decision = partial(
    routes.post,
    access=session_only(),
    status=200,
    returns=models.Proposal,
    errors=(errors.NotFound, errors.Conflict),
    idempotent=True,
)


@_decision("/{proposalId}/approve", resumable=True)
async def approve_proposal(ctx: Context, proposal_id: ObjectId, claim: idempotency.Claim | None) -> models.Proposal:
    """Approve a proposal: what it proposes is done, once.

    It is done with the rights that the assistant has now; if they do not suffice any more, the response is 403 and the
    proposal has failed. If what was shown has changed, nothing is done: `PROPOSAL_STALE`.
    """
    return await approve(ctx, proposal_id, claim, place="api")


@_decision("/{proposalId}/reject", body_optional=True, example={"note": "Not this week"})
async def reject_proposal(ctx: Context, proposal_id: ObjectId, body: models.Rejection) -> models.Proposal:
    """Reject a proposal: nothing is done, and the same call is refused for 24 hours."""
    return await reject(ctx, proposal_id, body["note"], place="api")


@routes.post(
    "/reject",
    access=session_only(),
    status=200,
    idempotent=True,
    example={"ids": ["66f0c0ffee0000000000abcd"], "note": "Not this week"},
)
async def reject_proposals(ctx: Context, body: models.ManyRejections) -> models.Rejected:
    """Reject several proposals.

    Those with the given identifiers, or all that wait of an assistant or API key. What is decided already is left out.
    """
    rejected = await reject_many(ctx, body["ids"], body["assistantId"], body["note"], place="api")
    return {"rejected": rejected}


# --- Proposals for assistants -----------------------------------------------------------------------------------------


tools = Tools()
view_tools = Tools()
_SENTENCES: dict[models.Status, str] = {
    "executed": "The coach has approved it, and it is done.",
    "rejected": "The coach has rejected it; nothing was changed. Do not propose it again unless the user asks for it.",
    "expired": "It has expired without a decision; nothing was changed.",
    "recalled": "The coach has approved it, and the messages were recalled; the client does not have them.",
    "stale": (
        "The records have changed since, so that it cannot be approved; nothing was changed. Make the call again, so "
        "that it is proposed as it is now."
    ),
    "failed": "The coach has approved it, but this access was not allowed to do it any more; nothing was changed.",
}


class ProposalState(TypedDict):
    """A proposal; `result` once it is executed."""

    proposalId: ObjectId
    status: str
    summary: str
    approvalUrl: str
    expiresAt: datetime
    result: NotRequired[dict[str, Any]]


class GetProposal(Arguments):
    """The proposal."""

    proposalId = Identifier(required=True, metadata={"description": "From the call that was not executed."})


@tools.tool("Get a proposal", access=coach(), takes=GetProposal(), returns=ProposalState, own_calls=True)
async def get_proposal(ctx: Context, proposal_id: ObjectId) -> Answer:
    """Return whether the coach has decided on a call, and its result once it is approved."""
    return describe_state(ctx, await find_own(ctx, proposal_id))


class ProposalDecision(GetProposal):
    """The decision of the coach in the view of a proposal."""

    decision = Choice("approve", "reject", required=True, metadata={"description": "approve or reject."})
    nonce = Text(max_length=100, required=True, metadata={"description": "From the result that the view shows."})


@view_tools.tool("Decide on a proposal", access=coach(), takes=ProposalDecision(), for_views=True, own_calls=True)
async def decide_proposal(
    ctx: Context, proposal_id: ObjectId, decision: Literal["approve", "reject"], nonce: str
) -> Answer:
    """Approve or reject a proposal, as the coach has chosen in its view."""
    is_valid = ctx.services.vault.verify_signature(f"proposal:{proposal_id}", nonce)
    if ctx.caller.via == "apiKey" or not is_valid:  # only views receive the secret of the proposal
        raise errors.Forbidden("Only the coach decides on a proposal")
    await find_own(ctx, proposal_id)
    decided = await (approve if decision == "approve" else reject)(ctx, proposal_id, place="view")
    result = decided["result"] or {}
    sentence = "Rejected: nothing was changed." if decision == "reject" else f"Approved. {result.get('summary', '')}"
    return Answer(sentence.strip(), _data(ctx, decided))


def describe_state(ctx: Context, proposal: models.Proposal) -> Answer:
    """Return whether a coach has decided on a proposal, and the result once it is approved."""
    if proposal["status"] == "pending":
        url = url_of(ctx.services, proposal["_id"])
        line = f"Pending: the coach decides at {url} until {format_time(proposal['expiresAt'])}."
    else:
        note = proposal.get("note")
        line = f"{_SENTENCES[proposal['status']]}{f' The coach writes: {typed(note)}' if note else ''}"
    return Answer(" ".join([line, proposal.get("resultText", "")]).strip(), _data(ctx, proposal))


def _data(ctx: Context, proposal: models.Proposal) -> dict[str, object]:
    return {
        "proposalId": proposal["_id"],
        "status": proposal["status"],
        "summary": proposal["summary"],
        "approvalUrl": url_of(ctx.services, proposal["_id"]),
        "expiresAt": proposal["expiresAt"],
        "result": proposal["result"],
    }
