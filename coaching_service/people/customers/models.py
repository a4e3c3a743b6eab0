"""Clients as they are sent, stored and returned."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict

from marshmallow import fields

from coaching_service.core import fields as core_fields
from coaching_service.core import validation
from coaching_service.core.auth import FORMS, Area, areas_of
from coaching_service.core.database.context import Context
from coaching_service.core.database.declared import Stored
from coaching_service.core.database.recording import LoggedEvent
from coaching_service.core.errors import invalid_field
from coaching_service.core.events import DomainEvent, EventType
from coaching_service.core.external_identity import (
    Identity,
    IdentityFields,
    IdentityInput,
    IdentityResult,
    StoredIdentity,
)
from coaching_service.core.fields import input_of, output_of, query_of
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.core.independent_entries import BatchCounts, BatchEntry, IndependentEntries, InvalidEntry
from coaching_service.core.list_selection import PageFields, PageQuery, RecordFilters
from coaching_service.core.query import FormVersion
from coaching_service.people.notification_settings import SETTINGS_INPUT, NotificationSettings, SomeSettings

# --- Clients ---------------------------------------------------------------------------------------------------------


_EARLIEST_ZONE = timedelta(hours=14)


class ProfilePhoto(TypedDict):
    """The stored files of a profile photo."""

    fileId: ObjectId
    thumbnailId: ObjectId | None


# In percent, derived; null without workout days.
_Rate: TypeAlias = Annotated[float | None, fields.Float(metadata={"minimum": 0, "maximum": 100})]


class CustomerRoleData(TypedDict):
    """A client's status in the company."""

    isArchived: Annotated[bool, core_fields.Label("Archived")]
    groups: list[str]
    assignedTo: Annotated[
        ObjectId | None, core_fields.Description("The trainer of the client."), core_fields.Label("Trainer")
    ]
    customerType: Literal["REAL", "SAMPLE"]
    complianceRate7d: _Rate
    complianceRate30d: _Rate
    complianceRate90d: _Rate
    complianceDate: Annotated[str | None, validation.Date()]
    lastWorkoutDate: Annotated[
        str | None, validation.Date(), core_fields.Description("The last date with a scheduled workout.")
    ]
    lastTrainedDate: Annotated[
        str | None, validation.Date(), core_fields.Description("The date of the latest session with completed work.")
    ]
    firstLoginDate: datetime | None


# The figures by which lists are sorted.
SortFigure = Literal["compliance", "lastTrained", "unread"]
ReasonType = Literal[
    "health_note",
    "erasure_requested",
    "unread_message",
    "check_in_to_review",
    "check_in_overdue",
    "missed_workout",
    "inactive",
    "low_compliance",
    "nothing_scheduled",
    "program_ending",
    "personal_record",
    "returning",
    "unavailable",
]


class Reason(TypedDict):
    """Why a client needs attention: since when (UTC), and the number of occurrences, 1 for a state."""

    type: ReasonType
    since: datetime
    count: int


class AttentionCounts(TypedDict):
    """How many clients that need attention have each reason, trainer (None: without one) and group."""

    reasons: dict[ReasonType, int]
    trainers: dict[ObjectId | None, int]
    groups: dict[str, int]


class Attention(TypedDict):
    """Why a client needs attention, most important first; `dismissed` are the reasons that do not count in `score`.

    `unread` counts the client's messages that the company has not read; None or absent for none.
    """

    score: int
    reasons: list[Reason]
    dismissed: list[Reason]
    unread: NotRequired[int | None]


class ClientText(TypedDict):
    """A text about a client (`_id`)."""

    _id: ObjectId
    text: str


class DatedCount(TypedDict):
    """How many of something a client (`_id`) has, and the time (UTC) of the newest."""

    _id: ObjectId
    count: int
    newest: datetime


class Birthday(validation.Date):
    """A date of birth: until today, in the time zone that is furthest ahead."""

    default_error_messages = {
        "range": validation.Message("must not be in the future or before 1900", "DATE_OUT_OF_RANGE")
    }

    @classmethod
    def bounds(cls) -> tuple[str, str]:
        """Return the first and the last day."""
        return cls.first, str((datetime.now(UTC) + _EARLIEST_ZONE).date())


class _Names(TypedDict):
    name: Annotated[str, validation.Text()]
    surname: Annotated[str | None, validation.Text(allow_blank=True), core_fields.Default(core_fields.UNSET)]
    email: Annotated[str | None, validation.Email(), core_fields.Default(core_fields.UNSET)]


class OwnContact(TypedDict):
    """What clients change of how to reach them."""

    phone: Annotated[
        str | None, validation.Text(max_length=50, allow_blank=True), core_fields.Default(core_fields.UNSET)
    ]
    birthday: Annotated[str | None, Birthday(), core_fields.Default(core_fields.UNSET)]
    timezone: Annotated[
        str | None,
        validation.Timezone(),
        core_fields.Default(core_fields.UNSET),
        core_fields.Description(response="IANA name; null: the company's time zone."),
        core_fields.Label("Time zone"),
    ]


class ContactDetails(_Names, OwnContact):
    """Who a client is, and how to reach them."""


class _Role(TypedDict):
    role: Literal["CUSTOMER"]


class _Status(TypedDict):
    lastActivityDate: Annotated[
        datetime | None,
        core_fields.Description("The time of the client's own latest action; what a coach logs does not change it."),
    ]
    customerRoleData: CustomerRoleData


class _ProfileFields(ContactDetails, _Role, _Status):
    pass


class NewCustomerDocument(_ProfileFields, StoredIdentity):
    """A client to store, without the fields that the database package adds; `_id` only to choose it."""

    _id: NotRequired[ObjectId]
    profilePhoto: ProfilePhoto | None
    firstAccessHash: str
    figuresChangedAt: datetime
    sortName: str
    sortSurname: str
    search: str
    suf: list[str]


# Why the figures of a client are due: something has changed, or the client's local day has begun.
FigureLane = Literal["changes", "daily"]


class FigureMark(TypedDict):
    """Until when the figures of a client were valid, since when and how often they had been marked (None: never)."""

    figuresUntil: datetime | None
    figuresChangedAt: datetime | None
    scheduleChanges: int | None


class Customer(_ProfileFields, Stored, StoredIdentity):
    """A stored client.

    `lastActivityDate` is the time of the client's own latest action. The fields that may be missing are private:
    `sortName`, `sortSurname`, `search` and `suf` serve sorting and searching; `firstAccessHash` is the hash of an
    unused first-access token; the derived figures are valid until `figuresUntil`, unless something has changed since
    `figuresChangedAt`; `attention` is absent until it is first computed with them; `scheduleChanges` is a counter that
    makes concurrent changes of one client's schedule conflict, and shows that the figures have become invalid while
    they were computed; `loadsIn` is the unit of the client's loads once they have been converted;
    `notifications`, `consent` and `language` are absent until the client changes them; `erasureRequestedAt` is the time
    at which the client asked for the erasure of their data. An archived client has `archivedAt`, at the latest an hour
    later, and `erasureDueAt` once a mail to the owner has announced that the client will be erased then.
    """

    profilePhoto: ProfilePhoto | None
    sortName: NotRequired[Annotated[str, core_fields.Private]]
    sortSurname: NotRequired[Annotated[str, core_fields.Private]]
    search: NotRequired[Annotated[str, core_fields.Private]]
    suf: NotRequired[Annotated[list[str], core_fields.Private]]
    firstAccessHash: NotRequired[Annotated[str, core_fields.Private]]
    figuresUntil: NotRequired[Annotated[datetime, core_fields.Private]]
    figuresChangedAt: NotRequired[Annotated[datetime, core_fields.Private]]
    attention: NotRequired[Annotated[Attention, core_fields.Private]]
    scheduleChanges: NotRequired[Annotated[int, core_fields.Private]]
    loadsIn: NotRequired[Annotated[str, core_fields.Private]]
    notifications: NotRequired[Annotated[SomeSettings, core_fields.Private]]
    language: NotRequired[Annotated[str | None, core_fields.Private]]
    loadUnit: NotRequired[Annotated[Literal["kg", "lb"] | None, core_fields.Private]]
    erasureRequestedAt: NotRequired[Annotated[datetime, core_fields.Private]]
    consent: NotRequired[Consent]
    archivedAt: NotRequired[Annotated[datetime, core_fields.Private]]
    erasureDueAt: NotRequired[Annotated[datetime, core_fields.Private]]


class _Photo(TypedDict):
    profilePhotoUrl: Annotated[str | None, fields.Url()]


class CustomerProfile(ContactDetails, _Role, Stored, _Photo, _Status, Identity):
    """A client."""


class CreatedCustomer(CustomerProfile):
    """A client just created, with the token by which the client sets a password."""

    firstAccessToken: Annotated[str, fields.UUID()]


class WrittenDetails(ContactDetails):
    """The fields of a client that a coach writes."""

    groups: Annotated[list[str], validation.StringList(), core_fields.Default(core_fields.UNSET)]
    assignedTo: Annotated[ObjectId | None, core_fields.Default(core_fields.UNSET)]


class Archiving(TypedDict):
    """Whether a client who is changed is archived."""

    isArchived: Annotated[
        bool,
        core_fields.Default(core_fields.UNSET),
        core_fields.Description(request="Whether the client is archived; as it is, if it is not sent."),
    ]


class SentCustomer(WrittenDetails):
    """A client to create."""

    sendInvitation: Annotated[bool, core_fields.Default(True)]


class SentBatchCustomer(WrittenDetails):
    """A client to create together with others."""

    sendInvitation: Annotated[
        bool,
        core_fields.Default(False),
        core_fields.Description("Whether to send an invitation to the e-mail address. Default: false."),
    ]
    archived: Annotated[
        bool,
        core_fields.Default(core_fields.UNSET),
        core_fields.Description(
            "Whether the client is archived. Not sent: a new client is not, a known one stays as they are."
        ),
    ]


class ChangedCustomer(WrittenDetails, Archiving):
    """A client to change."""


class SentOrChangedCustomer(SentCustomer, Archiving):
    """A client to create or to change."""


class _Details(ChangedCustomer, IdentityInput):
    pass


class _NewCustomer(SentOrChangedCustomer, IdentityInput):
    pass


CustomerDetails: TypeAlias = core_fields.Partial[_Details]
CustomerChange: TypeAlias = core_fields.Change[_Details]
CustomerUpsert: TypeAlias = core_fields.Change[_NewCustomer]
NewCustomer: TypeAlias = core_fields.Partial[_NewCustomer]


# What becomes of an entry whose identifier in another system a client has.
OnConflict = Literal["error", "update"]


class _SortedCustomers(RecordFilters):
    sort: NotRequired[
        Annotated[
            Literal["name", "createdAt", "lastTrainedDate", "updatedAt"],
            core_fields.Description(
                "`name`, the default; `createdAt`: the oldest first; `lastTrainedDate`: who never trained, then who "
                "did longest ago; `updatedAt`: the change longest ago first."
            ),
        ]
    ]


class CustomerQuery(_SortedCustomers, PageFields):
    """The filters of the customer list."""

    archived: bool
    contains: NotRequired[
        Annotated[str, core_fields.Description("Part of a name, surname or e-mail, taken literally.")]
    ]
    groups: NotRequired[Annotated[list[str], core_fields.Description("Repeatable; any of the groups.")]]
    assignedTo: NotRequired[
        Annotated[
            list[str], core_fields.Description("Repeatable; any of the trainers; `none`: clients without a trainer.")
        ]
    ]
    email: NotRequired[Annotated[str, core_fields.Description("The whole e-mail address, without regard to case.")]]


CUSTOMER_QUERY = query_of(CustomerQuery, PageQuery, query_of(_SortedCustomers))


class CustomerReference(TypedDict):
    """The client to archive or restore."""

    id: ObjectId
    version: NotRequired[Annotated[int, validation.Version()]]


class ProfilePhotoFields(TypedDict):
    """The text fields sent with a profile photo."""

    version: NotRequired[Annotated[int, FormVersion()]]


class NamedCustomer(TypedDict):
    """A client by identifier and full name."""

    _id: ObjectId
    name: Annotated[str, core_fields.Description("Name and surname.")]


class FoundCustomer(NamedCustomer):
    """A client who was found, or of whom something was."""

    timezone: str | None
    isArchived: bool


class CustomerRate(NamedCustomer):
    """A client with one of the stored compliance rates in percent; None without a workout day."""

    rate: float | None


class CustomerGroup(TypedDict):
    """A group and the number of clients in it, archived ones included."""

    name: str
    count: int


# --- The filter `assignedTo` ----------------------------------------------------------------------------------------

NO_TRAINER = "none"


class TrainerOrNone(validation.Identifier):
    """A coach's identifier, or `none`: clients without a trainer."""

    def __init__(self, **options: Any) -> None:
        super().__init__(metadata={"pattern": f"^([0-9a-fA-F]{{24}}|{NO_TRAINER})$"}, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        return None if value == NO_TRAINER else super()._deserialize(value, attr, data, **kwargs)


def parse_trainers(values: Sequence[str] | None) -> list[ObjectId | None] | None:
    """Return the trainers that `values` name; `none` is None: no trainer. Raises InvalidFields for anything else."""
    if values is None:
        return None
    trainers = {value: parse_id(value) for value in values if value != NO_TRAINER}
    if None in trainers.values():
        message = "must be an identifier of 24 hexadecimal characters, or none"
        raise invalid_field("assignedTo", message, code="INVALID_ID")
    return [trainers.get(value) for value in values]


class CustomerFilter(TypedDict):
    """Clients by their properties; an empty list or text matches all clients."""

    archived: bool
    contains: NotRequired[Annotated[str, validation.Text(allow_blank=True)]]
    groups: NotRequired[Annotated[list[str], validation.StringList(maximum=1_000, allow_none=False)]]
    assignedTo: NotRequired[Annotated[list[ObjectId | None], validation.ListOf(TrainerOrNone(), maximum=1_000)]]


# What a file may name a client with, the two parts of the name, and which notifications a client wants.
CustomerIdentity: TypeAlias = core_fields.Part[Customer, Literal["_id", "name", "surname", "email", "externalId"]]
CustomerNames: TypeAlias = core_fields.Part[Customer, Literal["_id", "name", "surname"]]
CustomerNotifications: TypeAlias = core_fields.Part[Customer, Literal["_id", "notifications"]]


# --- Domain events about clients --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CustomerCreation:
    """A client who was created.

    `first_access_token` is in plain text; `send_invitation`: the coach wants an invitation to be sent.
    """

    customer: Customer
    first_access_token: str
    send_invitation: bool


@dataclass(frozen=True)
class CustomersCreated(DomainEvent):
    """Clients were created."""

    created: Sequence[CustomerCreation]


@dataclass(frozen=True)
class CustomersDeleted(DomainEvent):
    """Clients were deleted; the rest of their data is still stored."""

    customer_ids: Sequence[ObjectId]


@dataclass(frozen=True)
class GroupsChange:
    """The groups that a client has joined and left."""

    customer_id: ObjectId
    joined: frozenset[str]
    left: frozenset[str]

    @staticmethod
    def between(customer_id: ObjectId, before: Iterable[str], after: Iterable[str]) -> GroupsChange:
        """Return the change of a client's groups."""
        earlier, later = frozenset(before), frozenset(after)
        return GroupsChange(customer_id, later - earlier, earlier - later)


@dataclass(frozen=True)
class GroupsChanged(DomainEvent):
    """Clients have joined or left groups; those who were created in a group are in CustomersCreated."""

    changes: Sequence[GroupsChange]


# --- Events of the reasons why clients need attention -----------------------------------------------------------------
# A reason is raised when it appears among the stored ones, and cleared when it leaves them: so what is stored with a
# client is at the same time what the events have said, whenever the process is killed.


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


def list_hidden_reasons(ctx: Context) -> list[ReasonType]:
    """Return the reasons of areas that the caller may not see."""
    visibility = areas_of(ctx.caller)
    return [reason for reason, area in AREA_OF_REASON.items() if not visibility.allows(area=area)]


def report_reasons(ctx: Context, customer_id: ObjectId, before: Sequence[Reason], after: Sequence[Reason]) -> None:
    """Report which reasons of a client are raised, and which are cleared, in the caller's transaction."""
    sides: tuple[tuple[EventType, Sequence[Reason], Sequence[Reason]], ...] = (
        ("attention.cleared", before, after),
        ("attention.raised", after, before),
    )
    for event_type, reasons, others in sides:
        for each in reasons:
            if each["type"] not in {other["type"] for other in others}:
                data = {"customerId": customer_id, "reason": each["type"], "since": each["since"]}
                ctx.changes.events.append(LoggedEvent(event_type, customer_id, {**data, "count": each["count"]}))


# --- What clients change of their own record --------------------------------------------------------------------------


class Language(validation.Text):
    """A language tag of BCP 47: a language, with or without a script and a region."""

    _TAG = re.compile(r"[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|\d{3}))?", re.ASCII)
    default_error_messages = {
        "language": validation.Message("must be a language such as es or pt-BR", "INVALID_LANGUAGE")
    }

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> str:
        text = super()._deserialize(value, attr, data)
        if not self._TAG.fullmatch(text):
            raise self.make_error("language")
        return text


class Consent(TypedDict):
    """By what else than people a client's data may be read and changed: both at first."""

    assistants: Annotated[bool, core_fields.Description("Assistants of the coaches, at /mcp.")]
    applications: Annotated[bool, core_fields.Description("Applications that coaches have allowed over OAuth.")]


SomeConsent: TypeAlias = core_fields.Partial[Consent]
CONSENT_INPUT = input_of(SomeConsent, name="ConsentInput", description="A switch that is left out stays as it is.")


class OwnSettings(TypedDict):
    """What a client chooses for themselves."""

    language: Annotated[
        str | None,
        Language(),
        core_fields.Default(core_fields.UNSET),
        core_fields.Description("The language the client prefers, such as `es` or `pt-BR` (BCP 47); null: none."),
    ]
    loadUnit: Annotated[
        Literal["kg", "lb"] | None,
        core_fields.Default(core_fields.UNSET),
        core_fields.Description("In which unit pages show and take loads; null: the company's, which REST always has."),
    ]
    notifications: Annotated[
        NotificationSettings,
        fields.Nested(SETTINGS_INPUT),
        core_fields.Default(core_fields.UNSET),
        core_fields.Description("Which notifications the client gets, how and when."),
    ]
    consent: Annotated[
        Consent,
        fields.Nested(CONSENT_INPUT),
        core_fields.Default(core_fields.UNSET),
        core_fields.Description("Whether assistants and applications may read and change the client's data."),
    ]


class OwnRecord(OwnContact, OwnSettings):
    """What a client may change of their own record."""


# The fields that clients change of their own record, and the version that the change is based on.
OwnDetails: TypeAlias = core_fields.Change[OwnRecord]


# --- Batches of clients as they are sent, and their results -----------------------------------------------------------


MAX_CUSTOMERS = 500
BatchCustomer = input_of(SentBatchCustomer, IdentityFields, name="NewBatchCustomer")
_SENT_CUSTOMER = type(validation.patch_of(BatchCustomer, name="BatchCustomer"))


class CustomerBatch(TypedDict):
    """Clients to create or change."""

    customers: Annotated[
        Sequence[CustomerUpsert | InvalidEntry],
        IndependentEntries(_SENT_CUSTOMER, maximum=MAX_CUSTOMERS),
        core_fields.Description(f"1 to {MAX_CUSTOMERS} clients, each validated by itself. A new one needs a `name`."),
    ]
    onConflict: Annotated[
        OnConflict,
        core_fields.Default("error"),
        core_fields.Description(
            "What becomes of an entry whose `externalId` a client has: it is not valid, or it changes that client."
        ),
    ]


class Duplicate(TypedDict):
    """A client who may be the same person as a new one."""

    _id: ObjectId
    name: Annotated[str, core_fields.Description("The full name.")]
    same: Annotated[
        Literal["email", "name"],
        core_fields.Description("What is the same: the e-mail address, or only the full name."),
    ]


class CustomerBatchEntry(BatchEntry):
    """What became of an entry: `_id` or `errors`."""

    duplicates: NotRequired[
        Annotated[
            list[Duplicate],
            core_fields.Description("For a new client, if any: others with the same e-mail address or full name."),
            core_fields.Optional,
        ]
    ]


class CustomerBatchResult(BatchCounts):
    """What became of each entry, in order: inspect `errors` even though the status is 200."""

    results: Annotated[
        list[CustomerBatchEntry],
        fields.List(fields.Nested(output_of(CustomerBatchEntry, first=("index",)))),
        core_fields.Description("One result for each entry."),
    ]


# --- Schemas of requests and responses --------------------------------------------------------------------------------


CUSTOMER_FIELDS = input_of(WrittenDetails, IdentityFields, name="CustomerFields")
CUSTOMER_UPDATE = input_of(ChangedCustomer, IdentityFields, name="CustomerUpdate")
NEW_CUSTOMER = input_of(SentCustomer, IdentityFields, name="NewCustomer")
UPSERTED_CUSTOMER = input_of(SentOrChangedCustomer, IdentityFields, name="UpsertedCustomer")
CUSTOMER = output_of(CustomerProfile, IdentityResult, name="Customer", with_private=("companyId",))
CREATED_CUSTOMER = output_of(CreatedCustomer, CUSTOMER)
