"""Companies as they are stored and returned."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NotRequired, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.ids import ObjectId


class AccountNotifications(TypedDict):
    """Which mails the coaches of a company get: `messages`, about unread messages of clients."""

    messages: bool


class AttentionSettings(TypedDict):
    """When clients need attention.

    After `inactiveDays` days without a session, below `complianceBelow` percent of compliance in 30 days, and without a
    workout in the next `horizonDays` days.
    """

    inactiveDays: int
    complianceBelow: int
    horizonDays: int


DEFAULT_ATTENTION: AttentionSettings = {"inactiveDays": 7, "complianceBelow": 60, "horizonDays": 3}


class AttentionSettingsChange(TypedDict, total=False):
    """The settings of AttentionSettings to change."""

    inactiveDays: int
    complianceBelow: int
    horizonDays: int


class Suspension(TypedDict):
    """Since when a company is suspended, and the operator's reason."""

    at: datetime
    reason: str


class LoadConversion(TypedDict):
    """The conversion of all loads to another unit that is in progress."""

    jobId: ObjectId
    loadUnit: Literal["kg", "lb"]


class Account(Stored):
    """A stored company. `timezone` is an IANA name.

    Private: `keepsLoads`: loads may be stored in `loadUnit`; `loadLocks` counts the locks of the unit;
    `loadConversion`: loads are being converted; `loadsConvertedAt`: when the last conversion ended; `sandboxId`: the
    sandbox of this company; `sandboxOf`: the company whose sandbox this one is; `hasOverrides`: the company has changed
    shared exercises, unknown if not set; `suspension`: set while the company is suspended; `holdsMail`: set until the
    owner's e-mail address is confirmed.
    """

    companyName: str
    timezone: str
    loadUnit: Literal["kg", "lb"]
    notifications: AccountNotifications
    attention: AttentionSettings
    keepsLoads: NotRequired[bool]
    loadLocks: NotRequired[int]
    loadConversion: NotRequired[LoadConversion]
    loadsConvertedAt: NotRequired[datetime]
    hasOverrides: NotRequired[bool]
    sandboxId: NotRequired[ObjectId]
    sandboxOf: NotRequired[ObjectId]
    suspension: NotRequired[Suspension]
    holdsMail: NotRequired[bool]


class AccountChange(TypedDict, total=False):
    """The fields of a company to change; `version` is the one the change is based on."""

    companyName: str
    timezone: str
    loadUnit: Literal["kg", "lb"]
    notifications: AccountNotifications
    attention: AttentionSettingsChange
    version: int


class CallerProfile(TypedDict):
    """The authenticated caller, as `GET /me` returns it; `via` is `session` or `apiKey`."""

    _id: ObjectId
    name: str
    email: str | None
    emailConfirmed: bool
    role: str
    companyId: ObjectId
    permissions: list[str]
    via: str
