"""API keys as they are stored and returned."""

from __future__ import annotations

from datetime import datetime
from typing import NotRequired, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.ids import ObjectId
from coaching_service.people.account.models import Account
from coaching_service.people.team.models import Coach


class Restrictions(TypedDict):
    """What a key may not do although its coach may.

    `permissions` null: all that the coach has; `expiresAt` is UTC, null: the key does not expire.
    """

    readOnly: bool
    permissions: list[str] | None
    expiresAt: datetime | None


class ApiKey(Stored):
    """A stored key. `hash` (keyed) and `sealed` (encrypted secret) are private."""

    coachId: ObjectId
    name: str
    prefix: str
    lastFour: str
    restrictions: Restrictions
    lastUsedAt: datetime | None
    hash: NotRequired[str]
    sealed: NotRequired[bytes]


class ApiKeyWithCoach(ApiKey):
    """A key with its coach and the company."""

    coach: Coach
    company: Account


class CreatedApiKey(ApiKey):
    """A key just created, with its secret."""

    key: str


class NewRestrictions(TypedDict, total=False):
    """The restrictions of a key to create; those that are missing do not apply."""

    readOnly: bool
    permissions: list[str] | None
    expiresAt: datetime | None


class NewApiKey(TypedDict):
    """A key to create."""

    name: str
    restrictions: NewRestrictions | None


class RevealedKey(TypedDict):
    """The secret of a key."""

    key: str
