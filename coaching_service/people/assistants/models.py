"""OAuth grants of assistants as they are stored and returned."""

from __future__ import annotations

from datetime import datetime
from typing import NotRequired, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.ids import ObjectId
from coaching_service.people.account.models import Account
from coaching_service.people.team.models import Coach


class AuthorizationCode(TypedDict):
    """The code of a grant and what it is bound to; `usedAt` is null until it is exchanged for tokens.

    `named`: the authorization request contained `redirect_uri`, so the token request must repeat it.
    """

    hash: str
    challenge: str
    redirectUri: str
    named: bool
    resource: str
    usedAt: NotRequired[datetime | None]


class StoredAccessToken(TypedDict):
    """An access token by its hash, valid until `until`."""

    hash: str
    until: datetime


class StoredRefreshToken(TypedDict):
    """A refresh token by its hash; `spentAt` is null until it is used."""

    hash: str
    spentAt: datetime | None


class Grant(Stored):
    """A coach's consent to an OAuth application, as it is returned to coaches."""

    coachId: ObjectId
    clientId: str
    clientName: str
    redirectHost: str
    readOnly: bool
    lastUsedAt: datetime | None


class StoredGrant(Grant):
    """A stored grant with its private fields."""

    code: AuthorizationCode
    familyHash: NotRequired[str]
    refresh: NotRequired[list[StoredRefreshToken]]
    access: NotRequired[list[StoredAccessToken]]
    expiresAt: datetime


class GrantWithCoach(Grant):
    """A grant with its coach and the company."""

    coach: Coach
    company: Account
