"""Proposals for assistants."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, NotRequired, TypedDict

from coaching_service.core.auth import coach
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import Arguments, format_time
from coaching_service.core.mcp.results import Answer, typed
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Choice, Identifier, Text
from coaching_service.integrations.proposals import service
from coaching_service.integrations.proposals.models import Proposal, Status

tools = Tools()
view_tools = Tools()
_SENTENCES: dict[Status, str] = {
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
    return describe_state(ctx, await service.find_own(ctx, proposal_id))


class ProposalDecision(GetProposal):
    """The decision of the coach in the view of a proposal."""

    decision = Choice("approve", "reject", required=True, metadata={"description": "approve or reject."})
    nonce = Text(max_length=100, required=True, metadata={"description": "From the result that the view shows."})


@view_tools.tool("Decide on a proposal", access=coach(), takes=ProposalDecision(), for_views=True, own_calls=True)
async def decide_proposal(
    ctx: Context, proposal_id: ObjectId, decision: Literal["approve", "reject"], nonce: str
) -> Answer:
    """Approve or reject a proposal, as the coach has chosen in its view."""
    decided = await service.decide_in_view(ctx, proposal_id, decision, nonce)
    result = decided["result"] or {}
    sentence = "Rejected: nothing was changed." if decision == "reject" else f"Approved. {result.get('summary', '')}"
    return Answer(sentence.strip(), _data(ctx, decided))


def describe_state(ctx: Context, proposal: Proposal) -> Answer:
    """Return whether a coach has decided on a proposal, and the result once it is approved."""
    if proposal["status"] == "pending":
        url = service.url_of(ctx.services, proposal["_id"])
        line = f"Pending: the coach decides at {url} until {format_time(proposal['expiresAt'])}."
    else:
        note = proposal.get("note")
        line = f"{_SENTENCES[proposal['status']]}{f' The coach writes: {typed(note)}' if note else ''}"
    return Answer(" ".join([line, proposal.get("resultText", "")]).strip(), _data(ctx, proposal))


def _data(ctx: Context, proposal: Proposal) -> dict[str, object]:
    return {
        "proposalId": proposal["_id"],
        "status": proposal["status"],
        "summary": proposal["summary"],
        "approvalUrl": service.url_of(ctx.services, proposal["_id"]),
        "expiresAt": proposal["expiresAt"],
        "result": proposal["result"],
    }
