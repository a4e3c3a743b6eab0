"""What the log says of proposals: typed events, without text."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.database.recording import LoggedEvent
from coaching_service.core.events import EventType, EventValue
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.proposals.models import Decision, Proposal


def report_creation(ctx: Context, proposal: Proposal) -> None:
    """Report a new proposal, in the transaction that stores it."""
    _report(ctx, "proposal.created", proposal, {"expiresAt": proposal["expiresAt"]})


def report_decision(ctx: Context, proposal: Proposal, decision: Decision) -> None:
    """Report a decision, in the transaction that stores it."""
    data: dict[str, EventValue] = {"status": decision.status}
    if decision.by is not None:
        data["decidedBy"] = decision.by["_id"]
    if decision.place is not None:
        data["decidedIn"] = decision.place
    _report(ctx, "proposal.decided", proposal, data)


def _report(ctx: Context, event_type: EventType, proposal: Proposal, data: dict[str, EventValue]) -> None:
    facts: dict[str, EventValue] = {
        "proposalId": proposal["_id"],
        "tool": proposal["tool"],
        "assistantId": proposal["assistant"]["_id"],
    }
    event = LoggedEvent(event_type, only_client(proposal), facts | data)
    ctx.changes.events.append(event)


def only_client(proposal: Proposal) -> ObjectId | None:
    """Return the client of a proposal that concerns no other; None if it concerns several, or none."""
    return proposal["customerIds"][0] if len(proposal["customerIds"]) == 1 else None
