"""Sign-in sessions as they are stored and returned."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NotRequired, TypeAlias, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.fields import Part
from coaching_service.core.ids import ObjectId
from coaching_service.people.account.models import Account
from coaching_service.people.customers.models import Customer
from coaching_service.people.identities.models import SubjectKind
from coaching_service.people.team.models import Coach


class StoredAccessToken(TypedDict):
    """An access token by its hash, valid until `until`."""

    hash: NotRequired[str]
    until: datetime


class Session(Stored):
    """A sign-in session of a coach or client, with its access tokens and, unless it ends soon, a refresh token.

    `application` is `web` for sessions of the web application and missing for the REST interface; neither is
    accepted by the other. `device` (the User-Agent header) and `lastUsedAt` (to the hour) are of a client's
    session of the web application.
    """

    subjectId: ObjectId
    kind: SubjectKind
    access: list[StoredAccessToken]
    expiresAt: datetime
    impersonatedBy: ObjectId | None
    familyHash: NotRequired[str]
    refreshHash: NotRequired[str]
    application: NotRequired[str]
    device: NotRequired[str]
    lastUsedAt: NotRequired[datetime]


class NewSession(TypedDict):
    """The fields of a session to store."""

    subjectId: ObjectId
    kind: SubjectKind
    impersonatedBy: ObjectId | None
    familyHash: NotRequired[str]
    refreshHash: NotRequired[str]
    application: NotRequired[str]
    device: NotRequired[str]
    lastUsedAt: NotRequired[datetime]


class OwnSession(TypedDict):
    """A session of the web application as its user sees it; `device` is the User-Agent header of the browser."""

    _id: ObjectId
    device: str
    createdAt: datetime
    lastUsedAt: datetime
    isCurrent: bool


KeysToDelete = Literal["none", "sinceLastChange", "all"]


class SessionWithSubject(Session):
    """A session with the company and the coach or client: each a list of one, or empty if it is deleted."""

    company: list[Account]
    coach: list[Coach]
    customer: list[Customer]


class AccessTokenResponse(TypedDict):
    """A session that cannot be renewed; `expiresIn` in seconds."""

    accessToken: str
    tokenType: Literal["Bearer"]
    expiresIn: int


class TokensResponse(AccessTokenResponse):
    """A session that the refresh token renews."""

    refreshToken: str


class SignInResponse(TokensResponse):
    """A session, and the token of the device, which the next sign-in sends."""

    deviceToken: str


class SignUp(TypedDict):
    """A company and its owner."""

    companyName: str
    name: str
    email: str
    password: str


class Credentials(TypedDict):
    """The e-mail address and password of a user who signs in."""

    email: str
    password: str
    deviceToken: NotRequired[str | None]


class MessageResponse(TypedDict):
    """The confirmation of an action."""

    message: str


class NewPassword(TypedDict):
    """The result of setting a password: how many API keys the user still has, and the token of the device."""

    apiKeys: int
    deviceToken: str


class NewPasswordResponse(NewPassword, MessageResponse):
    """The confirmation of a new password."""


class RefreshToken(TypedDict):
    """A refresh token."""

    refreshToken: str


class ForgottenPassword(TypedDict):
    """The e-mail address of a user who has forgotten the password."""

    email: str
    deviceToken: NotRequired[str | None]


class PasswordReset(TypedDict):
    """A new password, and the token that allows setting it."""

    token: str
    password: str
    deleteApiKeys: KeysToDelete


class EmailConfirmation(TypedDict):
    """The token that was mailed to an e-mail address."""

    token: str


# Where and when a session was used.
SessionUse: TypeAlias = Part[Session, Literal["_id", "device", "createdAt", "lastUsedAt"]]
