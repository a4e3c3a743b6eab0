"""Companies as they are sent, stored and returned."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from marshmallow import fields

from coaching_service.core.database.models import Stored
from coaching_service.core.events import DomainEvent
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import UNSET, Change, Default, Description, Partial, Private
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Integer, Text, Timezone

LoadUnit = Literal["kg", "lb"]


class AccountNotifications(TypedDict):
    """Which mails the company sends to its coaches; `notifications` of GET /me are the settings of one coach."""

    messages: Annotated[
        bool,
        Description(
            "Whether coaches get mail about unread messages of clients. false: no coach does; true: each as chosen in "
            "PATCH /me. Notifications on devices depend on PATCH /me alone."
        ),
    ]


class AttentionSettings(TypedDict):
    """When clients need attention."""

    inactiveDays: Annotated[
        int,
        Integer(minimum=1, maximum=365),
        Description("A client is inactive after so many days without a session. A new company has 7."),
    ]
    complianceBelow: Annotated[
        int,
        Integer(minimum=0, maximum=100),
        Description("Compliance in the last 30 days is low below so many percent. A new company has 60."),
    ]
    horizonDays: Annotated[
        int,
        Integer(minimum=0, maximum=90),
        Description("A workout has to be scheduled from today to so many days ahead. A new company has 3."),
    ]


DEFAULT_ATTENTION: AttentionSettings = {"inactiveDays": 7, "complianceBelow": 60, "horizonDays": 3}
AccountNotificationsChange: TypeAlias = Partial[AccountNotifications]
_NOTIFICATIONS = input_of(
    AccountNotificationsChange,
    name="AccountNotificationsInput",
    description="Which mails the company sends to its coaches; settings that are left out stay as they are.",
)
AttentionSettingsChange: TypeAlias = Partial[AttentionSettings]
_ATTENTION = input_of(
    AttentionSettingsChange,
    name="AttentionSettingsInput",
    description="When clients need attention; settings that are left out stay as they are.",
)


class ClientRights(TypedDict):
    """What clients may do by themselves. A new company: all of it."""

    clientsMayImport: Annotated[
        bool, Default(UNSET), Description("Whether clients may import their own training history. A new company: true.")
    ]
    clientsMayMove: Annotated[
        bool,
        Default(UNSET),
        Description("Whether clients may move their workouts to days near the planned one. A new company: true."),
    ]
    clientsMayAdd: Annotated[
        bool,
        Default(UNSET),
        Description("Whether clients may add workouts of their own to their calendar. A new company: true."),
    ]


class AccountDetails(ClientRights):
    """The fields of the company that its owner can change."""

    companyName: Annotated[str, Text()]
    timezone: Annotated[
        str, Timezone(), Description(response="IANA; `today` is there for clients without a zone of their own.")
    ]
    loadUnit: Annotated[LoadUnit, Description(request="Stays while any load is stored.")]
    notifications: Annotated[
        AccountNotifications,
        fields.Nested(_NOTIFICATIONS, required=False),
        Description("Which mails the company sends to its coaches, for all of them."),
    ]
    attention: Annotated[
        AttentionSettings, fields.Nested(_ATTENTION, required=False), Description("When clients need attention.")
    ]


class Suspension(TypedDict):
    """Since when a company is suspended, and the operator's reason."""

    at: datetime
    reason: str


class LoadConversion(TypedDict):
    """The conversion of all loads to another unit that is in progress."""

    jobId: ObjectId
    loadUnit: LoadUnit


class _AccountState(TypedDict):
    """What the service stores with a company.

    `keepsLoads`: loads may be stored in `loadUnit`; `loadLocks` counts the locks of the unit; `loadConversion`: loads
    are being converted; `loadsConvertedAt`: when the last conversion ended; `hasOverrides`: the company has changed
    shared exercises, unknown if not set; `sandboxId`: the sandbox of this company; `sandboxOf`: the company whose
    sandbox this one is; `suspension`: set while the company is suspended; `holdsMail`: set until the owner's e-mail
    address is confirmed.
    """

    keepsLoads: NotRequired[Annotated[bool, Private]]
    loadLocks: NotRequired[Annotated[int, Private]]
    loadConversion: NotRequired[Annotated[LoadConversion, Private]]
    loadsConvertedAt: NotRequired[Annotated[datetime, Private]]
    hasOverrides: NotRequired[Annotated[bool, Private]]
    sandboxId: NotRequired[Annotated[ObjectId, Private]]
    sandboxOf: NotRequired[Annotated[ObjectId, Private]]
    suspension: NotRequired[Annotated[Suspension, Private]]
    holdsMail: NotRequired[Annotated[bool, Private]]


class Account(AccountDetails, _AccountState, Stored):
    """The company."""


AccountChange: TypeAlias = Change[AccountDetails]


class AccountErasure(TypedDict):
    """The owner's password, as a confirmation."""

    password: Annotated[str, Text(max_length=200, trim=False)]


# --- Domain events about the company ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class FigureSettingsChanged(DomainEvent):
    """The company's time zone, or its settings of attention, changed: figures stored with its clients follow them."""


@dataclass(frozen=True)
class LoadUnitChanged(DomainEvent):
    """The company's unit of load is being changed: subscribers raise Conflict if loads are stored in the other one."""

    load_unit: str


@dataclass(frozen=True)
class CompanyDeleted(DomainEvent):
    """The company was deleted; its data is still stored."""


@dataclass(frozen=True)
class CompanyResumed(DomainEvent):
    """The suspension of the company has ended: background work that has been put off continues."""
