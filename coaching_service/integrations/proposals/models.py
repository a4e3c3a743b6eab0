"""Proposals as they are stored and returned."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypeAlias, TypedDict

from marshmallow import fields

from coaching_service.core.database.context import Context
from coaching_service.core.database.declared import Index, NotExported, Stored
from coaching_service.core.database.documents import Document, Documents, Filter, now
from coaching_service.core.database.recording import Approver, DecidedIn, LoggedEvent
from coaching_service.core.events import EventType, EventValue
from coaching_service.core.fields import Default, Description, Private, private_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import PartQuery
from coaching_service.core.mcp import Source
from coaching_service.core.validation import Identifier, ListOf, Text
from coaching_service.people.customers.models import NamedCustomer

Status = Literal["pending", "executed", "rejected", "expired", "failed", "recalled", "stale"]
_STATUS = (
    "`pending`: a coach has to decide; `executed`: approved and done; `rejected`; `expired`: nobody decided within 24 "
    "hours; `failed`: approved, but the assistant was not allowed to do it any more; "
    "`stale`: the records have changed since; "
    "`recalled`: approved, and its messages were recalled, or deleted before the client had read them."
)
# The result of a tool as programs read it. It depends on the tool: docs/assistants.md describes each.
ToolResult: TypeAlias = dict[str, Any]


class ProposedChange(TypedDict):
    """One record that a proposal changes, in words for a coach."""

    kind: Annotated[str, Description("The kind of record, such as `workout`.")]
    customer: Annotated[NamedCustomer | None, Description("The client whose record it is, if any.")]
    date: Annotated[str | None, Description("The day of the record, if it has one.")]
    before: Annotated[str | None, Description("The record before; null if it does not exist.")]
    after: Annotated[str | None, Description("The record afterwards; null if it is removed.")]


class ProposingAssistant(TypedDict):
    """The assistant, or the API key, that proposes."""

    _id: Annotated[ObjectId, Description("The connected assistant, or the API key.")]
    name: str


class Resolution(TypedDict):
    """What a name, date or group of a call means (`Context.resolved`)."""

    key: str
    meaning: object  # of the feature that resolved it: identifiers, a date or documents; the proposal only returns it


class ShownRecord(TypedDict):
    """A record that a call changes, with the version that the coach is shown."""

    collection: str
    _id: ObjectId
    version: int


class NewProposal(TypedDict):
    """What an assistant proposes.

    `arguments`: those of the call as they were sent, as JSON, and `resolved` what they mean. `call` is a hash of the
    call and its caller, `shown` one of what the coach is shown. `customerIds`: the clients whom it concerns.
    `watches`: the records, and the clients and programs of copied days, whose changes may make it stale.
    """

    tool: Annotated[str, Description("The name of the tool.")]
    summary: Annotated[str, Description("What would be done, in one or a few sentences.")]
    reasons: Annotated[list[str], Description("Why it has to be confirmed, such as `CONTACT`.")]
    changes: Annotated[list[ProposedChange], Description("The records that it changes: before and afterwards.")]
    assistant: Annotated[ProposingAssistant, Description("The assistant, or the API key, that proposes it.")]
    coachId: Annotated[ObjectId, Description("The coach on whose behalf it is proposed.")]
    arguments: Annotated[str, Private]
    resolved: NotRequired[Annotated[list[Resolution], Private]]  # older ones have none
    idempotencyKey: Annotated[str | None, Private]
    hasKey: Annotated[bool, Private]  # it was proposed with an API key
    call: Annotated[str, Private]
    shown: Annotated[str, Private]
    records: NotRequired[Annotated[list[ShownRecord], Private]]  # older ones have none
    sources: NotRequired[Annotated[list[Source], Private]]
    customerIds: Annotated[list[ObjectId], Private]
    watches: NotRequired[Annotated[list[ObjectId], Private]]  # older ones have none
    status: Annotated[Status, Description(_STATUS)]
    expiresAt: Annotated[datetime, Description("Until when it can be approved.")]


class Proposal(NewProposal, Stored):
    """A call of a tool that a coach decides on."""

    decidedAt: Annotated[datetime | None, Description("When it was approved, rejected or expired; else null.")]
    decidedBy: Annotated[Approver | None, Description("Who approved or rejected it.")]
    decidedIn: NotRequired[
        Annotated[
            DecidedIn | None,
            Description("Where: on a `page`, over the `api`, or in the `view` of an application; null until then."),
        ]
    ]
    note: NotRequired[Annotated[str | None, Description("What the coach wrote who rejected it, if anything.")]]
    result: Annotated[
        ToolResult | None,
        fields.Dict(),
        Description("What the tool has returned; of a failed one `{code, message}`; null until it is decided."),
    ]
    resultText: NotRequired[Annotated[str, Private]]  # of the result, for assistants
    isMailed: NotRequired[Annotated[bool, Private]]  # a mail to the coach has included it


class ProposalQuery(PartQuery):
    """Which proposals are listed."""

    status: Annotated[Status | None, Description("Only proposals with this status.")]


class Rejection(TypedDict):
    """What the coach writes to the assistant."""

    note: Annotated[
        str | None, Text(max_length=500), Description("What the assistant reads about it. Default: nothing.")
    ]


class ManyRejections(Rejection):
    """The proposals to reject: these, or all pending ones of an assistant or API key."""

    ids: Annotated[
        list[ObjectId],
        ListOf(Identifier(), maximum=100),
        Default(list),
        Description("The proposals to reject."),
    ]
    assistantId: Annotated[
        ObjectId | None, Description("The assistant, or the API key, all of whose proposals are rejected.")
    ]


class Rejected(TypedDict):
    """How many proposals were rejected."""

    rejected: Annotated[int, Description("How many proposals were rejected.")]


class Decision(NamedTuple):
    """How a proposal was decided: its status, who decided and where, the result, and what the coach wrote."""

    status: Status
    by: Approver | None = None
    result: ToolResult | None = None
    place: DecidedIn | None = None
    note: str | None = None


def report(ctx: Context, proposal: Proposal, decision: Decision | None = None) -> None:
    """Report a new proposal, or a decision, in the transaction that stores it: a typed event, without text."""
    data: dict[str, EventValue] = {
        "proposalId": proposal["_id"],
        "tool": proposal["tool"],
        "assistantId": proposal["assistant"]["_id"],
    }
    if decision is None:
        data["expiresAt"] = proposal["expiresAt"]
    else:
        data["status"] = decision.status
        data |= {} if decision.by is None else {"decidedBy": decision.by["_id"]}
        data |= {} if decision.place is None else {"decidedIn": decision.place}
    event_type: EventType = "proposal.created" if decision is None else "proposal.decided"
    ctx.changes.events.append(LoggedEvent(event_type, only_client(proposal), data))


def only_client(proposal: Proposal) -> ObjectId | None:
    """Return the client of a proposal that concerns no other; None if it concerns several, or none."""
    return proposal["customerIds"][0] if len(proposal["customerIds"]) == 1 else None


# --- Proposals and confirmations in the database ----------------------------------------------------------------------


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
        Index(("watches",), partial_filter=_PENDING),
    ),
    private=private_of(Proposal),
    client_field="customerIds",
    secret=True,  # they also concern other clients
    expire=("expiresAt", int(_RETENTION.total_seconds())),
    transfer=NotExported("proposals can be approved within a day, and only here; what was done is in the history"),
)


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


# --- Confirmations for which the client of an assistant asks its user, until they are given or expire ----------------

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
IS_VALID: Document = {"$expr": {"$lte": [_AGE, round(CONFIRMATION_LIFETIME.total_seconds() * 1000)]}}
