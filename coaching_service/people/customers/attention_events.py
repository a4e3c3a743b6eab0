"""Events of the reasons why clients need attention, reported in the transaction that stores the reasons.

A reason is raised when it appears among the stored ones, and cleared when it leaves them: so what is stored with a
client is at the same time what the events have said, whenever the process is killed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from coaching_service.core.auth import FORMS, Area, areas_of
from coaching_service.core.database.context import Context
from coaching_service.core.database.recording import LoggedEvent
from coaching_service.core.events import EventType
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers.models import Reason, ReasonType

# The operation of changes that have only these events: the renewal of figures, which no coach or client has called.
RENEWAL = "renewAttention"
# In the order in which reasons are listed. A health note outranks all that another client can have but an erasure
# request, and an unread message outranks all reasons below it together.
WEIGHTS: Mapping[ReasonType, int] = {
    "health_note": 400,
    "erasure_requested": 400,
    "unread_message": 200,
    "check_in_to_review": 30,
    "check_in_overdue": 20,
    "missed_workout": 20,
    "inactive": 20,
    "low_compliance": 15,
    "nothing_scheduled": 15,
    "program_ending": 10,
    "returning": 10,
    "personal_record": 5,
    "unavailable": 0,
}
# The areas whose permission is needed to see a reason; each of these reasons adds its weight once.
AREA_OF_REASON: Mapping[ReasonType, Area] = {"check_in_to_review": FORMS, "check_in_overdue": FORMS}

Reasons: TypeAlias = Sequence[Reason]


def list_hidden(ctx: Context) -> list[ReasonType]:
    """Return the reasons of areas that the caller may not see."""
    visibility = areas_of(ctx.caller)
    return [reason for reason, area in AREA_OF_REASON.items() if not visibility.allows(area=area)]


def is_changed(before: Reasons, after: Reasons) -> bool:
    """Return whether a reason is raised or cleared."""
    return {each["type"] for each in before} != {each["type"] for each in after}


def report(ctx: Context, customer_id: ObjectId, before: Reasons, after: Reasons) -> None:
    """Report which reasons of a client are raised, and which are cleared, in the caller's transaction."""
    _report(ctx, "attention.cleared", customer_id, _without(before, after))
    _report(ctx, "attention.raised", customer_id, _without(after, before))


def _without(reasons: Reasons, others: Reasons) -> Reasons:
    types = {each["type"] for each in others}
    return [each for each in reasons if each["type"] not in types]


def _report(ctx: Context, event_type: EventType, customer_id: ObjectId, reasons: Reasons) -> None:
    for each in reasons:
        data = {"customerId": customer_id, "reason": each["type"], "since": each["since"], "count": each["count"]}
        ctx.changes.events.append(LoggedEvent(event_type, customer_id, data))
