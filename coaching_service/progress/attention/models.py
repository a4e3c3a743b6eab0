"""Why clients need attention, as it is asked for, computed, dismissed and returned."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, NotRequired, TypedDict

from marshmallow import fields

from coaching_service.core.database.declared import Stored
from coaching_service.core.fields import Default, Description
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import PartQuery
from coaching_service.core.query import QueryInteger
from coaching_service.core.validation import Date
from coaching_service.people.customers.attention_events import WEIGHTS
from coaching_service.people.customers.models import ReasonType

_WEIGHTS = ", ".join(f"`{name}` {weight}" for name, weight in WEIGHTS.items())


MAX_INACTIVE_DAYS = 365


class AttentionQuery(PartQuery):
    """Filters of the attention list; they combine with AND."""

    reason: Annotated[
        list[ReasonType],
        Default([]),
        Description("Repeatable; clients with any of the reasons, all of whose reasons are listed."),
    ]
    assignedTo: NotRequired[
        Annotated[
            list[str],
            Description("Repeatable; any of the trainers; `none`: clients without a trainer."),
        ]
    ]
    groups: NotRequired[Annotated[list[str], Description("Repeatable; any of the groups.")]]
    inactiveDays: Annotated[
        int | None,
        Default(None),
        QueryInteger(minimum=1, maximum=MAX_INACTIVE_DAYS),
        Description("Only clients without a session in so many days; also those that need attention for nothing else."),
    ]


class DismissalFields(TypedDict):
    """Until when a reason is dismissed.

    Until the client's local date `until` (`YYYY-MM-DD`; None: no date), but no longer than until the newest occurrence
    of the reason is later than `since` (UTC), the newest when it was dismissed.
    """

    until: Annotated[str | None, Date()]
    since: datetime


class StoredDismissal(Stored, DismissalFields):
    """A reason that a coach has dismissed for the whole company; at most one of each client and reason."""

    customerId: ObjectId
    reason: ReasonType


class AttentionDismissal(TypedDict):
    """The reason to dismiss."""

    reason: Annotated[ReasonType, Description("The reason to dismiss.")]
    until: Annotated[
        str | None,
        Date(),
        Description(
            "The client's local date on which the reason counts again, if nothing new happens before; null: only when "
            "something new happens. A date that is not in the future ends an earlier dismissal."
        ),
    ]


class AttentionCustomer(TypedDict):
    """A client who needs attention."""

    _id: ObjectId
    name: str
    surname: str | None
    profilePhotoUrl: Annotated[str | None, fields.Url()]
    groups: list[str]
    assignedTo: Annotated[ObjectId | None, Description("The trainer of the client.")]
    lastTrainedDate: Annotated[str | None, Date(), Description("The date of the latest session with completed work.")]
    complianceRate7d: Annotated[
        float | None,
        fields.Float(
            metadata={
                "description": "Completed workout days of the last 7 days, in percent.",
                "minimum": 0,
                "maximum": 100,
            }
        ),
    ]


class AttentionReason(TypedDict):
    """Why a client needs attention."""

    type: Annotated[ReasonType, Description(f"The reason; it adds to the score: {_WEIGHTS} each, at most 60.")]
    since: Annotated[
        datetime,
        Description(
            "The time of the newest note, message or response; otherwise the beginning of a day of the client: for "
            "missed workouts and overdue check-ins the first that `count` includes."
        ),
    ]
    count: Annotated[int, Description("The number of occurrences; 1 for a state such as `inactive`.")]
    quote: Annotated[
        str | None,
        Description(
            "What has caused it, in at most 120 characters, such as the beginning of the newest note; null if there is "
            "nothing to quote, or the caller may not read it."
        ),
    ]


class AttentionEntry(TypedDict):
    """A client, and why the client needs attention."""

    customer: Annotated[AttentionCustomer, Description("The client.")]
    score: Annotated[int, Description("The sum of the weights of the reasons; 0 without one.")]
    reasons: Annotated[list[AttentionReason], Description("Most important first, without those that are dismissed.")]
