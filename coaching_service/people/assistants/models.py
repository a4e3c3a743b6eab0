"""OAuth grants of assistants as they are stored and returned."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, NotRequired, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.fields import Description, Private
from coaching_service.core.ids import ObjectId
from coaching_service.people.account.models import Account
from coaching_service.people.team.models import Coach

# What a coach allows an assistant: to read, to change, and to reach out: mail, messages, and work on many clients.
Scope = Literal["read", "change", "outreach"]
SCOPES: tuple[Scope, ...] = ("read", "change", "outreach")


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
    """A refresh token by its hash; `spentAt` is null until it is used, `of` the token that it was returned for."""

    hash: str
    spentAt: datetime | None
    of: NotRequired[str]


class Grant(Stored):
    """An assistant that a coach has connected."""

    coachId: Annotated[ObjectId, Description("The coach on whose behalf it acts.")]
    clientId: Annotated[str, Description("The identifier of the registered OAuth application.")]
    clientName: Annotated[str, Description("The name of the OAuth application, as it registered.")]
    redirectHost: Annotated[str, Description("The host to which the authorization code was sent.")]
    readOnly: bool
    scopes: Annotated[
        list[Scope],
        Description(
            "What the coach allows. `outreach`: sending mail and messages, and changing several clients at once."
        ),
    ]
    confirmInChat: Annotated[
        bool,
        Description(
            "Whether the assistant may confirm itself what otherwise waits for the coach's approval: up to 5 messages "
            "and 20 other calls in 10 minutes."
        ),
    ]
    lastUsedAt: Annotated[datetime | None, Description("To the minute.")]


class StoredGrant(Grant):
    """A stored grant with its private fields.

    `requested`: the scopes of OAuth that the application asked for, as one text; absent in grants before scopes.
    """

    requested: NotRequired[Annotated[str, Private]]
    code: Annotated[AuthorizationCode, Private]
    familyHash: NotRequired[Annotated[str, Private]]
    refresh: NotRequired[Annotated[list[StoredRefreshToken], Private]]
    access: NotRequired[Annotated[list[StoredAccessToken], Private]]
    expiresAt: Annotated[datetime, Private]


class GrantWithCoach(Grant):
    """A grant with its coach and the company."""

    coach: Coach
    company: Account
