"""Companies as they are stored and returned."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.ids import ObjectId


class AccountNotifications(TypedDict):
    """Which mails the coaches of a company get: `messages`, about unread messages of clients."""

    messages: bool


class Account(Stored):
    """A stored company. `timezone` is an IANA name; `keepsLoads` (private): loads are stored in `loadUnit`."""

    companyName: str
    timezone: str
    loadUnit: Literal["kg", "lb"]
    notifications: AccountNotifications
    keepsLoads: NotRequired[bool]


class AccountChange(TypedDict, total=False):
    """The fields of a company to change; `version` is the one the change is based on."""

    companyName: str
    timezone: str
    loadUnit: Literal["kg", "lb"]
    notifications: AccountNotifications
    version: int


class CallerProfile(TypedDict):
    """The authenticated caller, as `GET /me` returns it; `via` is `session` or `apiKey`."""

    _id: ObjectId
    name: str
    email: str | None
    role: str
    companyId: ObjectId
    permissions: list[str]
    via: str
