"""Carries out a call of a tool: once for each idempotency key, and only when it needs no confirmation or has one.

A call is confirmed by a token, for which the client of the assistant has asked its user, or by the approval of its
proposal. A call that is not confirmed is rolled back.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any, TypedDict

import orjson

from coaching_service.core import audit, idempotency, mcp
from coaching_service.core.auth import Principal, find_denial, new_token, token_hash
from coaching_service.core.changes import history
from coaching_service.core.database.context import Context, in_transaction
from coaching_service.core.database.declared import DocumentFields, Index, NotExported, Stored
from coaching_service.core.database.documents import Documents, now
from coaching_service.core.database.recording import Approver, DecidedIn
from coaching_service.core.errors import Conflict, Forbidden, ServiceError
from coaching_service.core.http.responses import to_json
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import Tool
from coaching_service.integrations import change_descriptions
from coaching_service.integrations.proposals import models
from coaching_service.people.account import convert_stored_load
from coaching_service.people.customers import service as customers
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks.service import ClientCalendar, regular_blocks
from coaching_service.training.workouts.plan_changes import (
    count_most,
    is_done_work_changed,
    is_plan_changed,
    list_load_changes,
    list_moved_loads,
)

# --- Budgets ----------------------------------------------------------------------------------------------------------
# What an assistant may change without a confirmation in ten minutes, or an hour, over all calls of its key or grant.
#
# A call is counted before its transaction ends, outside of it: of calls at the same time, on whatever process, at least
# one sees the other, and none waits. A call that needs a confirmation is forgotten again; one that fails later remains
# counted. What a coach has approved and what an assistant undoes do not count.


MAX_WRITES, MAX_CLIENT_DAYS, MAX_REMOVED = 30, 14, 3
MAX_NEW_CLIENTS = 20  # in an hour
MAX_RATIO, MAX_RAISE_KG = 1.5, 20
_HALF, _MOVED_AWAY = 0.5, 56  # days
_WINDOW, _WINDOW_OF_CLIENTS = timedelta(minutes=10), timedelta(hours=1)


class LoadRaise(TypedDict):
    """A load `of` a client and exercise that a call has changed."""

    of: str
    before: float
    after: float


class DayLoads(TypedDict):
    """The loads `of` a client and exercise that a call has removed from a day, or added to it: one for each set."""

    of: str
    date: str
    isAdded: bool
    loads: list[float]


class WorkoutShare(TypedDict):
    """How much a call leaves `of` a workout: from 0 (removed or replaced) to 1."""

    of: ObjectId
    share: float


class CallSpending(TypedDict):
    """What a call changes: days of clients (`client date`), workouts it reduces, new clients, and loads.

    What only adds to days without a workout counts as one day.
    """

    days: list[str]
    left: list[WorkoutShare]
    newClients: int
    loads: list[LoadRaise]
    dayLoads: list[DayLoads]


class StoredSpending(CallSpending, Stored):
    """What a call of an assistant, with this key or grant, changes."""

    credentialId: ObjectId


_spending = Documents[StoredSpending](
    "assistantSpending",
    (Index(("credentialId", "createdAt")),),
    secret=True,
    expire=("createdAt", int(_WINDOW_OF_CLIENTS.total_seconds()) + 60),
    transfer=NotExported("what assistants have done in the last hour"),
    incidental=True,
)


async def spend(
    tx: Context, call_id: ObjectId, written: mcp.Written, versions: Sequence[change_descriptions.Version]
) -> set[mcp.Reason]:
    """Count a call in whose transaction everything is written, or return why it has to be confirmed.

    `call_id` is the same when the transaction is repeated. `versions`: of what it has changed.
    """
    if written.leads_back or not tx.changes.documents:  # a dry run changes nothing
        return set()
    outside = replace(tx, session=None, thread=None, recorder=None)
    workouts = [each for each in versions if each.change.history.kind == "workout" and each.change.client_id]
    own = _measure(workouts, written.raised)
    if await _only_fills_empty_days(tx, workouts):
        own["days"] = [f"empty days {call_id}"]
    written_clients = [each for each in tx.changes.documents.values() if each.history.kind == "customer"]
    own["newClients"] = sum(each.action == "created" for each in written_clients)
    # At once: calls at the same time see it, whether their transactions commit or not.
    await _spending.upsert(outside, {"_id": call_id}, {"credentialId": tx.caller.credential_id, **own})
    last_hour = {
        "credentialId": tx.caller.credential_id,
        "createdAt": {"$gt": now() - _WINDOW_OF_CLIENTS},
        "_id": {"$ne": call_id},
    }
    of_last_hour = await _spending.find(outside, last_hour, sort=("createdAt",))
    recent = [each for each in of_last_hour if each["createdAt"] > now() - _WINDOW]
    new_clients = own["newClients"] + sum(each.get("newClients", 0) for each in of_last_hour)
    days = {day for call in (own, *recent) for day in call["days"]}
    reasons = {
        # Tools say so themselves; this is for what they do not expect, such as an undo of what a program did.
        mcp.Reason.DONE_WORK: any(before and is_done_work_changed(before, after) for _, before, after in workouts),
        mcp.Reason.MANY_CHANGES: len(recent) + 1 > MAX_WRITES,
        mcp.Reason.MANY_CLIENT_DAYS: own["days"] and len(days) > MAX_CLIENT_DAYS,
        mcp.Reason.MANY_REMOVED: _count_removed(recent) < _count_removed([*recent, own]) > MAX_REMOVED,
        mcp.Reason.MANY_NEW_CLIENTS: own["newClients"] and new_clients > MAX_NEW_CLIENTS,
        mcp.Reason.LOAD_RAISED: _raises_load(tx, recent, own),
        mcp.Reason.OTHERS_VALUE: await _replaces_value_of_others(tx),
    }
    found = {reason for reason, holds in reasons.items() if holds}
    if found:
        await _spending.delete(outside, {"_id": call_id})
    return found


# --- What a call changes ---------------------------------------------------------------------------------------------


def _measure(workouts: Sequence[change_descriptions.Version], raised: Sequence[mcp.RaisedLoad]) -> CallSpending:
    spending: CallSpending = {"days": [], "left": [], "newClients": 0, "loads": [], "dayLoads": []}
    for load in raised:
        of = _key(load.customer_id, load.exercise_id, load.unit)
        spending["loads"].append({"of": of, "before": load.before, "after": load.after})
    for change, before, after in workouts:
        if before is not None and after is not None and not is_plan_changed(before, after):
            continue  # only what was done
        spending["days"] += [f"{change.client_id} {each['date']}" for each in (before, after) if each is not None]
        if before is not None and (share := _share_left(before, after)) < 1:
            spending["left"].append({"of": change.id, "share": share})
        if before is not None and after is not None:
            spending["loads"] += [
                {"of": _key(change.client_id, each.exercise_id, each.unit), "before": each.before, "after": each.after}
                for each in list_load_changes(before, after)
            ]
        for is_added, loads in enumerate(list_moved_loads(before, after)):
            spending["dayLoads"] += [
                {
                    "of": _key(change.client_id, each.exercise_id, each.unit),
                    "date": each.date,
                    "isAdded": bool(is_added),
                    "loads": each.loads,
                }
                for each in loads
            ]
    return {**spending, "days": sorted({*spending["days"]})}


async def _only_fills_empty_days(tx: Context, workouts: Sequence[change_descriptions.Version]) -> bool:
    """Return whether workouts are only added, to days of clients that had none; check-ins do not count."""
    added: dict[ObjectId, set[str]] = {}
    for change, before, after in workouts:
        if before is not None or after is None or change.client_id is None:
            return False
        added.setdefault(change.client_id, set()).add(after["date"])
    ids = {each.change.id for each in workouts}
    for client_id, dates in added.items():
        there = await batches.read_days(tx, ClientCalendar(client_id), {"$in": sorted(dates)})
        if any(block["_id"] not in ids for block in regular_blocks(there)):
            return False
    return bool(added)


def _share_left(before: DocumentFields, after: DocumentFields | None) -> float:
    """Return how much is left of a workout: of its items, their sets and loads, and its day.

    Nothing is left of an item with other exercises, of a day that becomes one of rest, and of a workout that is moved
    by eight weeks.
    """
    if after is None or (after.get("isRest") and not before.get("isRest") and before["items"]):
        return 0
    kept = {item["_id"]: item for item in after["items"]}
    shares = [1.0] if not before["items"] else []
    for item in before["items"]:
        same = kept.get(item["_id"])
        if same is None or same.get("exerciseIds") != item.get("exerciseIds"):
            shares.append(0)
            continue
        had, has = count_most(item), count_most(same)
        shares.append(min([1, *(has[name] / had[name] for name in ("sets", "load") if had[name])]))
    moved = abs((date.fromisoformat(after["date"]) - date.fromisoformat(before["date"])).days)
    return sum(shares) / len(shares) * max(0, 1 - moved / _MOVED_AWAY)


def _count_removed(calls: Sequence[CallSpending]) -> int:
    """Return of how many workouts calls have together left less than half."""
    left: dict[ObjectId, float] = {}
    for each in [each for call in calls for each in call.get("left", ())]:
        left[each["of"]] = left.get(each["of"], 1) * each["share"]
    return sum(share < _HALF for share in left.values())


def _key(customer_id: ObjectId | None, exercise_id: ObjectId, unit: str) -> str:
    return f"{customer_id} {exercise_id} {unit}"


# --- Reasons ---------------------------------------------------------------------------------------------------------


def _raises_load(tx: Context, recent: Sequence[CallSpending], own: CallSpending) -> bool:
    """Return whether a load becomes too much more than it was before the first change of the last ten minutes."""
    most = convert_stored_load(MAX_RAISE_KG, unit="kg", target=tx.caller.company.load_unit)

    def is_too_much(of: str, original: float, after: float) -> bool:
        is_load = not of.endswith("percent")
        return (is_load and after - original > most) or (original > 0 and after > original * MAX_RATIO)

    if any(
        load["after"] > load["before"]
        and is_too_much(load["of"], find_original(recent, load["of"], load["before"]), load["after"])
        for load in own["loads"]
    ):
        return True
    for of, day in {(each["of"], each["date"]) for each in own["dayLoads"]}:
        removed, added = compare_day([*recent, own], of, day)
        if removed and added and is_too_much(of, max(removed), max(added)):
            return True
    return False


async def _replaces_value_of_others(tx: Context) -> bool:
    """Return whether the call replaces or removes a value that another assistant, a program or a person recorded."""
    values = [each for each in tx.changes.documents.values() if each.history.kind == "metric_value"]
    is_same = {each.id: len({*each.values.get("value", ())}) == 1 for each in values}
    for change in [each for each in values if each.action != "created" and not is_same[each.id]]:
        if not await history.is_written_with(tx, tx.caller.credential_id, change.id, change.from_version):
            return True
    return False


# --- What loads were before the first of several calls ---------------------------------------------------------------


def find_original(calls: Sequence[CallSpending], of: str, load: float) -> float:
    """Return what a load was before the first of these calls, the oldest first."""
    for index in reversed(range(len(calls))):
        earlier = [each["before"] for each in calls[index]["loads"] if each["of"] == of and each["after"] == load]
        for each in calls[index]["dayLoads"]:
            if each["of"] == of and each["isAdded"] and load in each["loads"]:
                removed, _ = compare_day(calls[: index + 1], of, each["date"])
                earlier += [max(removed)] if removed else []
        load = min(earlier, default=load)
    return load


def compare_day(calls: Sequence[CallSpending], of: str, date: str) -> tuple[list[float], list[float]]:
    """Return the loads that calls have removed from a day, as they were before the first, and those they have added.

    What was added and removed again is in neither.
    """
    removed: list[float] = []
    added: Counter[float] = Counter()
    for index, call in enumerate(calls):
        of_day = [each for each in call["dayLoads"] if (each["of"], each["date"]) == (of, date)]
        for each in sorted(of_day, key=lambda entry: entry["isAdded"]):
            if each["isAdded"]:
                added.update(each["loads"])
                continue
            for load in each["loads"]:
                known = load
                # What it was before it was changed, without what was removed and added.
                for before in [] if added[load] else reversed(calls[:index]):
                    changed = [each for each in before["loads"] if each["of"] == of and each["after"] == known]
                    known = min((each["before"] for each in changed), default=known)
                if added[known]:
                    added[known] -= 1
                else:
                    removed.append(known)
    return removed, list(added.elements())


# --- Allowance --------------------------------------------------------------------------------------------------------
# What an assistant with `confirmInChat`, or a key, may confirm in any ten minutes: 5 messages and 20 other calls.
#
# The document of a key or grant is written in the transaction of the call: of calls at the same time that together are
# too much, one fails.


MAX_MESSAGES, MAX_OTHERS = 5, 20
WINDOW = timedelta(minutes=10)


class ChatConfirmation(TypedDict):
    """A call that an assistant has confirmed: when, and how many people it has written to."""

    at: datetime
    messages: int


class StoredAllowance(Stored):
    """What was confirmed with the key or grant `_id` in the last ten minutes."""

    confirmed: list[ChatConfirmation]


_allowances = Documents[StoredAllowance](
    "chatConfirmations",
    (Index(()),),
    secret=True,
    expire=("updatedAt", int(WINDOW.total_seconds()) + 60),
    transfer=NotExported("what assistants have confirmed in the last ten minutes"),
    incidental=True,
)


async def has_room(ctx: Context, messages: int) -> bool:
    """Return whether the calling assistant may confirm one more call, which writes to so many people."""
    return await _list_recent_uses(ctx, messages) is not None


async def use(tx: Context, messages: int) -> bool:
    """Count a call that the calling assistant confirms, in its transaction; returns whether it may."""
    if (recent := await _list_recent_uses(tx, messages)) is None:
        return False
    confirmed: list[ChatConfirmation] = [*recent, {"at": now(), "messages": messages}]
    await _allowances.upsert(tx, {"_id": tx.caller.credential_id}, {"confirmed": confirmed})
    return True


async def _list_recent_uses(ctx: Context, messages: int) -> list[ChatConfirmation] | None:
    """Return what was confirmed in the last ten minutes; None if there is no room for a call to so many people."""
    stored = await _allowances.find_one(ctx, {"_id": ctx.caller.credential_id})
    since = now() - WINDOW
    recent = [] if stored is None else [each for each in stored["confirmed"] if each["at"] > since]
    if messages:
        has_room = sum(each["messages"] for each in recent) + messages <= MAX_MESSAGES
    else:
        has_room = sum(1 for each in recent if not each["messages"]) < MAX_OTHERS
    return recent if has_room else None


TOKEN_LIFETIME = models.CONFIRMATION_LIFETIME
_ORDER = list(mcp.Reason)


@dataclass(frozen=True)
class Output:
    """The result of a call: what an assistant reads, and the JSON object for programs."""

    text: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Approval:
    """The approval of a proposal by a coach, under the claim of an idempotency key if the request has one."""

    proposal: models.Proposal
    coach: Principal
    place: DecidedIn
    claim: idempotency.Claim | None = None


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


@dataclass(eq=False)
class Unconfirmed(Exception):
    """The call was rolled back: the coach has to confirm it first.

    `line`: what it would do, in a sentence. `shown` is the hash of what it would do, and `changes` says it in words.
    `customer_ids`: the clients it concerns. `resolved`: what its names, dates and groups mean. `token_refused`: a token
    was sent that is not valid, or confirmed something else than what would be done now.
    """

    call: Call
    line: str
    reasons: Sequence[mcp.Reason]
    shown: str
    records: Sequence[models.ShownRecord]
    sources: Sequence[mcp.Source]
    changes: Sequence[models.ProposedChange]
    customer_ids: Sequence[ObjectId]
    resolved: Sequence[models.Resolution]

    @property
    def messages(self) -> int:
        """How many people the call writes to."""
        return _count_messages(self.reasons, self.customer_ids)

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
    return mcp.OutreachDenied() if tool.outreach and not caller.may_reach_out else None


async def carry_out(ctx: Context, call: Call) -> Output:
    """Carry out a call. A tool that writes runs in one transaction: a call that fails changes nothing.

    Raises Unconfirmed; for an approved proposal ProposalClosed or ProposalStale; and what the tool raises.
    """
    if not call.tool.writes:
        result = await call.tool.call(ctx, call.arguments)
        if isinstance(result, mcp.Answer):
            return Output(result.text, _json(result.data))
        if isinstance(result, mcp.Written):
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
    token, call = new_token(), _bound_call(ctx, unconfirmed.call)
    about = {"call": call, "shown": unconfirmed.shown, "resolved": list(unconfirmed.resolved)}
    stored = await models.confirmations.insert(ctx, {"tokenHash": token_hash(token), **about})
    await models.confirmations.set_derived(ctx, {"_id": stored["_id"]}, {"$currentDate": {"createdAt": True}})
    return token


def _bound_call(ctx: Context, call: Call) -> str:
    """Return what a token confirms: a call, and whether the assistant or the user of the client confirms it."""
    return f"{call.identity(ctx)} {'chat' if call.in_chat else 'user'}"


async def _write_once(ctx: Context, call: Call, key: str) -> Output:
    body = {"tool": call.tool.name, "arguments": call.sent}
    claim = idempotency.Claim.of(ctx, key, "TOOL", str(ctx.caller.credential_id), body)
    about = call.arguments.get("customerId")

    async def work(tx: Context) -> tuple[idempotency.StoredResponse, ObjectId | None]:
        output = await _write(tx, call)
        about_new = output.data.get("customerId")
        body = to_json({"text": output.text, "data": output.data})
        return idempotency.StoredResponse(200, body), ObjectId(about_new) if about_new else None

    try:
        response = await idempotency.run_once(ctx, claim, about, work)
    except idempotency.RequestInProgress as error:
        raise Conflict("The first call with this idempotencyKey is still running", code=error.code) from None
    except idempotency.IdempotencyKeyReused as error:
        message = "This idempotencyKey was used with another call or other arguments"
        raise Conflict(message, code=error.code) from None
    stored = orjson.loads(response.body)
    output = Output(stored["text"], stored["data"])
    if response.replayed and (approval := call.approval) is not None:  # the call was carried out before

        async def find_output() -> Output:
            return output

        return await in_transaction(ctx, lambda tx: _settle(tx, approval, find_output))
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
        await idempotency.claim_steps(tx, approval.claim, [proposal["_id"]], lambda _: models.only_client(proposal))
    by: Approver = {"_id": approval.coach.id, "name": approval.coach.name}
    decision = models.Decision("executed", by, place=approval.place)
    tx.changes.approved_by, tx.changes.decided_in = by, approval.place
    if not await models.decide(tx, proposal["_id"], decision):
        raise ProposalClosed
    output = await work()
    result = {"result": output.data, "resultText": output.text}
    await models.proposals.set_derived(tx, {"_id": proposal["_id"]}, {"$set": result})
    models.report(tx, proposal, decision)
    as_coach = replace(tx, principal=approval.coach)
    await audit.record(as_coach, "proposal.approved", proposal["_id"], customer_id=models.only_client(proposal))
    return output


async def _write_confirmed(tx: Context, call: Call) -> Output:
    result = await call.tool.call(tx, call.arguments)
    if not isinstance(result, mcp.Written):
        raise TypeError(f"{call.tool.name} writes, so it must return Written")
    written, clients = result, _changed_clients(tx)
    is_deleted = any(each.action == "deleted" and each.id == each.client_id for each in tx.changes.documents.values())
    if len(clients) == 1 and not is_deleted and await customers.is_archived(tx, clients[0]):
        written = replace(written, line=f"{written.line} This client is archived.")
    await _require_confirmation(tx, call, written)
    identifiers = _json({"changeId": tx.change_id, **written.identifiers})
    known = [
        f"{name}: {', '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in identifiers.items()
        if value
    ]
    data = {"summary": written.line, **_json(written.details), **identifiers}
    return Output(" ".join([written.line, "; ".join(known)]).strip(), data)


def _changed_clients(tx: Context) -> list[ObjectId]:
    clients = (change.client_id for change in tx.changes.documents.values())
    return [each for each in dict.fromkeys(clients) if each is not None]


async def _require_confirmation(tx: Context, call: Call, written: mcp.Written) -> None:
    """Use up the confirmation of the call, if it needs one. Raises Forbidden, Unconfirmed, ProposalStale."""
    await tx.changes.check(tx)
    versions = [] if written.leads_back else await change_descriptions.read_versions(tx, change_descriptions.AMOUNTS)
    reasons = _find_reasons(tx, call, written, versions)
    # Not the reasons: what the assistant has done in the last minutes is one.
    # Left out is what only follows: the conversation of a message, the delivered message whose sending is undone.
    changed = [each for each in tx.changes.documents.values() if change_descriptions.is_shown(each)]
    by_id = {each.id: each for each in reversed(changed)}
    # The existing documents with the versions that they have now; of new ones only how many.
    records: list[models.ShownRecord] = [
        {"collection": each.collection, "_id": each.id, "version": each.from_version}
        for each in by_id.values()
        if each.action != "created"
    ]
    now_shown = [[len(by_id) - len(records)], *sorted([[*each.values()] for each in records], key=str)]
    shown = _digest([written.line, written.depends_on, [each["plans"] for each in written.sources], now_shown])
    if call.approval is not None:
        if shown != call.approval.proposal["shown"]:
            raise ProposalStale
        return
    if await _use_token(tx, call, shown, reasons):
        return
    if unusual := await change_descriptions.find_unusual(tx, versions):
        reasons.add(mcp.Reason.UNUSUAL_AMOUNT)
    if not reasons:
        reasons = await spend(tx, call.id, written, versions)
    if reasons:
        ordered = sorted(reasons, key=_ORDER.index)
        changes = await change_descriptions.describe_changes(tx, written.unlogged)
        customer_ids = _concerned_clients(tx, call)
        line = " ".join([mcp.as_proposed(written.line), *unusual])
        resolved: list[models.Resolution] = [{"key": key, "meaning": meaning} for key, meaning in tx.resolved.items()]
        raise Unconfirmed(call, line, ordered, shown, records, written.sources, changes, customer_ids, resolved)


def _find_reasons(
    tx: Context, call: Call, written: mcp.Written, versions: Sequence[change_descriptions.Version]
) -> set[mcp.Reason]:
    """Return the reasons for a confirmation that the tool has found, and those of the call as a whole.

    Raises OutreachDenied.
    """
    reasons = {*written.reasons, *([mcp.Reason.MANY_CLIENTS] if len(_changed_clients(tx)) > 1 else [])}
    if undeclared := reasons - call.tool.confirms:
        raise RuntimeError(f"{call.tool.name} does not declare that it confirms {sorted(undeclared)}")
    if change_descriptions.reaches_people(tx, versions):
        reasons.add(mcp.Reason.CONTACT)
    new_dates = [
        each.after["date"]
        for each in versions
        if each.change.kind == "workout"
        and each.after is not None
        and each.after["date"] is not None
        and (each.before is None or each.before["date"] != each.after["date"])
    ]
    reasons.update(mcp.find_reasons(today=tx.caller.today(), dates=new_dates))
    if reasons & mcp.OUTREACH and not tx.caller.may_reach_out:
        raise mcp.OutreachDenied
    return reasons


async def _find_confirmation(tx: Context, call: Call) -> models.StoredConfirmation | None:
    """Return what the token of a call confirms; None without a token, or if it is used, expired or of another call."""
    if call.token is None:
        return None
    bound = {"tokenHash": token_hash(call.token), "call": _bound_call(tx, call)}
    return await models.confirmations.find_one(tx, bound | models.IS_VALID)


async def forget_token(ctx: Context, token: str) -> None:
    """Delete what a token confirms: the user has declined."""
    await models.confirmations.delete(ctx, {"tokenHash": token_hash(token)})


async def _use_token(tx: Context, call: Call, shown: str, reasons: Collection[mcp.Reason]) -> bool:
    """Use up the token of a call; returns whether it confirms what the call would do."""
    known = await _find_confirmation(tx, call)
    if known is None or known["shown"] != shown:
        return False
    # The model repeats the token by itself, and the program of a key answers what its user would be asked.
    is_limited = call.in_chat or tx.caller.via == "apiKey"
    if is_limited and not await use(tx, _count_messages(reasons, _concerned_clients(tx, call))):
        return False
    tx.changes.approved_by, tx.changes.decided_in = {"_id": tx.caller.id, "name": tx.caller.name}, "chat"
    tx.changes.confirms_itself = is_limited
    await models.confirmations.delete(tx, {"_id": known["_id"]})  # with what the call does
    return True


def _count_messages(reasons: Collection[mcp.Reason], customer_ids: Sequence[ObjectId]) -> int:
    """Return how many people a call writes to."""
    return max(1, len(customer_ids)) if mcp.Reason.CONTACT in reasons else 0


def _concerned_clients(tx: Context, call: Call) -> list[ObjectId]:
    """Return the clients whom the call changes, writes to or names; not those whom it would create."""
    clients = [*_changed_clients(tx), *(event.customer_id for event in tx.changes.events)]
    known = dict.fromkeys([*clients, call.arguments.get("customerId")])
    created = {each.id for each in tx.changes.documents.values() if each.action == "created"}
    return [each for each in known if each is not None and each not in created]


def _digest(value: object) -> str:
    canonical = orjson.dumps(orjson.loads(to_json(value)), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(canonical).hexdigest()


def _json(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object as JSON has it, in which the text written by people is marked."""
    decoded: dict[str, Any] = mcp.mark_typed(orjson.loads(to_json(value)))
    return decoded


async def use_unit_of_client(ctx: Context, customer_id: ObjectId | None) -> Context:
    """Return a context in which loads are shown and taken in the unit of a client; the company's without a client."""
    if customer_id is None:
        return ctx
    own_unit = await customers.find_own_load_unit(ctx, customer_id)
    return replace(ctx, principal=replace(ctx.caller, own_load_unit=own_unit))
