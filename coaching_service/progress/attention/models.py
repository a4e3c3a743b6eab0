"""Why clients need attention, as it is computed, dismissed and returned."""

from __future__ import annotations

from datetime import datetime
from typing import NotRequired, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers.models import Reason, ReasonType


class DismissalFields(TypedDict):
    """Until when a reason is dismissed.

    Until the client's local date `until` (`YYYY-MM-DD`; None: no date), but no longer than until the newest occurrence
    of the reason is later than `since` (UTC), the newest when it was dismissed.
    """

    until: str | None
    since: datetime


class StoredDismissal(Stored, DismissalFields):
    """A reason that a coach has dismissed for the whole company; at most one of each client and reason."""

    customerId: ObjectId
    reason: ReasonType


class NewDismissal(TypedDict):
    """The reason to dismiss, and the date until which; without a date until something new happens."""

    reason: ReasonType
    until: NotRequired[str | None]


class AttentionCustomer(TypedDict):
    """A client in the attention list; `complianceRate7d` is in percent."""

    _id: ObjectId
    name: str
    surname: str | None
    profilePhotoUrl: str | None
    groups: list[str]
    assignedTo: ObjectId | None
    lastTrainedDate: str | None
    complianceRate7d: float | None


class AttentionEntry(TypedDict):
    """A client, the reasons why they need attention, most important first, and the score: the sum of the weights."""

    customer: AttentionCustomer
    score: int
    reasons: list[Reason]
