"""Requests and responses of the attention list."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.pagination import CursorQuery
from coaching_service.core.validation import Choice, Date, DateTime, Identifier, Input, Output
from coaching_service.progress.attention.reasons import WEIGHTS

_REASON_TYPES = tuple(WEIGHTS)
_WEIGHTS = ", ".join(f"`{name}` {weight}" for name, weight in WEIGHTS.items())


class AttentionQuery(CursorQuery):
    """Filters of the attention list; they combine with AND."""

    reason = fields.List(
        Choice(*_REASON_TYPES),
        load_default=[],
        metadata={"description": "Repeatable; clients with any of the reasons, all of whose reasons are listed."},
    )
    assignedTo = fields.List(
        fields.String(), metadata={"description": "Repeatable; any of the trainers; `none`: clients without a trainer."}
    )
    groups = fields.List(fields.String(), metadata={"description": "Repeatable; any of the groups."})


class AttentionDismissal(Input):
    """The reason to dismiss."""

    reason = Choice(*_REASON_TYPES, required=True, metadata={"description": "The reason to dismiss."})
    until = Date(
        load_default=None,
        allow_none=True,
        metadata={
            "description": "The client's local date on which the reason counts again, if nothing new happens before; "
            "null: only when something new happens. A date that is not in the future ends an earlier dismissal."
        },
    )


class AttentionCustomer(Output):
    """A client who needs attention."""

    _id = Identifier()
    name = fields.String()
    surname = fields.String(allow_none=True)
    profilePhotoUrl = fields.Url(allow_none=True)
    groups = fields.List(fields.String())
    assignedTo = Identifier(allow_none=True, metadata={"description": "The trainer of the client."})
    lastTrainedDate = Date(
        allow_none=True, metadata={"description": "The date of the latest session with completed work."}
    )
    complianceRate7d = fields.Float(
        allow_none=True,
        metadata={
            "description": "Completed workout days of the last 7 days, in percent.",
            "minimum": 0,
            "maximum": 100,
        },
    )


class AttentionReason(Output):
    """Why a client needs attention."""

    type = Choice(
        *_REASON_TYPES,
        metadata={"description": f"The reason; it adds to the score: {_WEIGHTS} each, at most 60."},
    )
    since = DateTime(
        metadata={
            "description": "The time of the newest note, message or response; otherwise the beginning of a day of the "
            "client: for missed workouts and overdue check-ins the first that `count` includes."
        }
    )
    count = fields.Integer(metadata={"description": "The number of occurrences; 1 for a state such as `inactive`."})


class AttentionEntry(Output):
    """A client, and why the client needs attention."""

    customer = fields.Nested(AttentionCustomer, metadata={"description": "The client."})
    score = fields.Integer(metadata={"description": "The sum of the weights of the reasons; 0 without one."})
    reasons = fields.List(
        fields.Nested(AttentionReason),
        metadata={"description": "Most important first, without those that are dismissed."},
    )
