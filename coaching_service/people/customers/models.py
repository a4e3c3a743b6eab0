"""Clients as they are stored and returned."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NotRequired, TypeAlias, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.entries import InvalidEntry
from coaching_service.core.errors import FieldError
from coaching_service.core.external_identity import Identity, IdentityInput, StoredIdentity
from coaching_service.core.fields import Part
from coaching_service.core.ids import ObjectId


class ProfilePhoto(TypedDict):
    """The stored files of a profile photo."""

    fileId: ObjectId
    thumbnailId: ObjectId | None


class CustomerRoleData(TypedDict):
    """A client's status in the company.

    `assignedTo` is the trainer. Derived: the compliance rates in percent (0 to 100) as of `complianceDate`, null
    without workout days; `lastWorkoutDate`, the last scheduled date; `lastTrainedDate`, the date of the latest session
    with completed work. Dates are `YYYY-MM-DD`.
    """

    isArchived: bool
    groups: list[str]
    assignedTo: ObjectId | None
    customerType: Literal["REAL", "SAMPLE"]
    complianceRate7d: float | None
    complianceRate30d: float | None
    complianceRate90d: float | None
    complianceDate: str | None
    lastWorkoutDate: str | None
    lastTrainedDate: str | None
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


class DatedCount(TypedDict):
    """How many of something a client (`_id`) has, and the time (UTC) of the newest."""

    _id: ObjectId
    count: int
    newest: datetime


class ContactDetails(TypedDict):
    """Who a client is, and how to reach them; `timezone` None: the company's."""

    name: str
    surname: str | None
    email: str | None
    phone: str | None
    birthday: str | None
    timezone: str | None


class _ProfileFields(ContactDetails):
    role: Literal["CUSTOMER"]
    lastActivityDate: datetime | None
    customerRoleData: CustomerRoleData


class _Profile(_ProfileFields, Stored):
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


class Customer(_Profile, StoredIdentity):
    """A stored client.

    `lastActivityDate` is the time of the client's own latest action. The fields that may be missing are private:
    `sortName`, `sortSurname`, `search` and `suf` serve sorting and searching; `firstAccessHash` is the hash of an
    unused first-access token; the derived figures are valid until `figuresUntil`, unless something has changed since
    `figuresChangedAt`; `attention` is absent until it is first computed with them; `scheduleChanges` is a counter that
    makes concurrent changes of one client's schedule conflict, and shows that the figures have become invalid while
    they were computed; `notifications` and `language` are absent until the client changes them; `erasureRequestedAt` is
    the time at which the client asked for the erasure of their data.
    """

    profilePhoto: ProfilePhoto | None
    sortName: NotRequired[str]
    sortSurname: NotRequired[str]
    search: NotRequired[str]
    suf: NotRequired[list[str]]
    firstAccessHash: NotRequired[str]
    figuresUntil: NotRequired[datetime]
    figuresChangedAt: NotRequired[datetime]
    attention: NotRequired[Attention]
    scheduleChanges: NotRequired[int]
    notifications: NotRequired[Notifications]
    language: NotRequired[str | None]
    loadUnit: NotRequired[Literal["kg", "lb"] | None]
    erasureRequestedAt: NotRequired[datetime]


class CustomerProfile(_Profile, Identity):
    """A client as interfaces return one; `profilePhotoUrl` is a signed link."""

    profilePhotoUrl: str | None


class CreatedCustomer(CustomerProfile):
    """A client just created, with the token for the client's first access in plain text."""

    firstAccessToken: str


class CustomerDetails(IdentityInput, total=False):
    """The fields of a client that a coach writes."""

    name: str
    surname: str | None
    email: str | None
    phone: str | None
    birthday: str | None
    timezone: str | None
    groups: list[str]
    assignedTo: ObjectId | None


class NewCustomer(CustomerDetails):
    """A client to create."""

    sendInvitation: bool


# What becomes of an entry whose identifier in another system a client has.
OnConflict = Literal["error", "update"]


class BatchEntryResult(TypedDict):
    """What became of the entry at the position `index` (from 0) of a batch: the client, or its errors."""

    index: int
    _id: NotRequired[ObjectId]
    errors: NotRequired[list[FieldError]]


class CustomerBatch(TypedDict):
    """Clients to create or change."""

    customers: Sequence[NewCustomer | InvalidEntry]
    onConflict: OnConflict


class BatchResult(TypedDict):
    """How many clients a batch has created, how many it has found and changed where they differed, and each entry."""

    created: int
    updated: int
    results: list[BatchEntryResult]


class ArchiveRequest(TypedDict):
    """The client to archive or restore; `version` is the one the change is based on."""

    id: ObjectId
    version: NotRequired[int]


class CustomerChange(CustomerDetails, total=False):
    """The fields of a client to change; `version` is the one the change is based on."""

    version: int


class Notifications(TypedDict):
    """Which mails a client, or the company, wants: `messages`, about unread messages."""

    messages: bool


class CustomerReference(TypedDict):
    """A client by identifier and full name."""

    _id: ObjectId
    name: str


class CustomerRate(CustomerReference):
    """A client with one of the stored compliance rates in percent; None without a workout day."""

    rate: float | None


class OwnDetails(TypedDict, total=False):
    """The fields that clients change of their own record; `version` is the one the change is based on."""

    phone: str | None
    birthday: str | None
    timezone: str | None
    language: str | None
    loadUnit: Literal["kg", "lb"] | None
    notifications: Notifications
    version: int


class GroupCount(TypedDict):
    """A group and the number of clients in it."""

    name: str
    count: int


class CustomerFilter(TypedDict, total=False):
    """Which clients a bulk operation selects; `archived` is required. `assignedTo` may contain None: no trainer."""

    archived: bool
    contains: str
    groups: list[str]
    assignedTo: list[ObjectId | None]


class CustomerCount(TypedDict):
    """One of several documents whose sums are the numbers of active and archived clients of a company."""

    _id: ObjectId
    companyId: ObjectId
    slot: int
    active: NotRequired[int]
    archived: NotRequired[int]


class GroupTotal(TypedDict):
    """One of several documents whose sums are the numbers of active and archived clients in a group of a company."""

    _id: ObjectId
    companyId: ObjectId
    group: str
    slot: int
    active: NotRequired[int]
    archived: NotRequired[int]


class CountDifference(TypedDict):
    """How much the stored numbers of clients of the company `_id` are too high."""

    _id: ObjectId
    active: int
    archived: int


# The two parts of the name of a client.
CustomerNames: TypeAlias = Part[Customer, Literal["_id", "name", "surname"]]


# The files of the profile photo of a client.
CustomerPhoto: TypeAlias = Part[Customer, Literal["_id", "profilePhoto"]]
