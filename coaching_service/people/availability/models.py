"""Periods in which a client cannot train as planned, as they are sent, stored and returned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from coaching_service.core import fields as core_fields
from coaching_service.core.database.declared import Stored
from coaching_service.core.events import DomainEvent
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import AbsenceDate, Text

AvailabilityKind = Literal["away", "injured", "ill", "limited"]


class _Reason(TypedDict):
    kind: Annotated[
        AvailabilityKind,
        core_fields.Description(
            "`away`, `injured` and `ill`: the client does not train, so nothing counts as missed. `limited`: shown, "
            "with no effect."
        ),
        core_fields.Label("Kind"),
    ]


# `from` is a keyword of Python, so this type has the functional form.
AvailabilityDates = TypedDict(
    "AvailabilityDates",
    {
        "from": Annotated[
            str, AbsenceDate(), core_fields.Description("The first day."), core_fields.Label("First day")
        ],
        "until": Annotated[
            str | None,
            AbsenceDate(),
            core_fields.Default(None),
            core_fields.Description(
                request="The last day. Default: no end yet.", response="The last day; null: no end yet."
            ),
            core_fields.Label("Last day"),
        ],
    },
)


class NewAvailability(_Reason, AvailabilityDates):
    """A period in which a client cannot train as planned."""

    note: Annotated[
        str | None,
        Text(max_length=500),
        core_fields.Default(None),
        core_fields.Description("What the client and the coaches should know about it."),
        core_fields.Label("Note"),
    ]


class _Owner(TypedDict):
    customerId: ObjectId
    createdBy: Annotated[
        Literal["client"] | None,
        core_fields.Description("`client`: the client has entered it, and may change it; null: a coach."),
    ]


class Availability(NewAvailability, _Owner, Stored):
    """A period in which a client cannot train as planned."""


class StoredAvailability(Availability):
    """A period with what is not returned.

    `isResumed`: the client has returned from it, and what was planned has been moved or removed.
    """

    isResumed: NotRequired[Annotated[bool, core_fields.Private]]


AvailabilityChange: TypeAlias = core_fields.Change[NewAvailability]


# --- Events about the availability of clients, for the features that build on it --------------------------------------


@dataclass(frozen=True)
class AvailabilityChanged(DomainEvent):
    """A period of a client was added (`before` is None), changed, or deleted (`after` is None).

    `is_undo`: by an undo, which has restored what the change had changed.
    """

    customer_id: ObjectId
    before: Availability | None
    after: Availability | None
    is_undo: bool = False
