"""Sign-in sessions as they are stored and returned, and the requests about them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from coaching_service.core.database.declared import Stored
from coaching_service.core.database.documents import Filter
from coaching_service.core.events import DomainEvent
from coaching_service.core.fields import Default, Description, Part
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Email, Text
from coaching_service.people.account import Account
from coaching_service.people.customers.models import Customer
from coaching_service.people.identities import passwords
from coaching_service.people.identities.models import SubjectKind
from coaching_service.people.team import Coach


class StoredAccessToken(TypedDict):
    """An access token by its hash, valid until `until`."""

    hash: NotRequired[str]
    until: datetime


class NewSession(TypedDict):
    """The fields of a session to store.

    `application` is `web` for sessions of the web application and missing for the REST interface; neither is
    accepted by the other. `device` (the User-Agent header) and `lastUsedAt` (to the hour) are of a client's
    session of the web application. `hasSecondFactor`: the user has proved one; an impersonated session has it of its
    coach.
    """

    subjectId: ObjectId
    kind: SubjectKind
    impersonatedBy: ObjectId | None
    hasSecondFactor: NotRequired[bool]
    familyHash: NotRequired[str]
    refreshHash: NotRequired[str]
    application: NotRequired[str]
    device: NotRequired[str]
    lastUsedAt: NotRequired[datetime]


class Session(NewSession, Stored):
    """A sign-in session of a coach or client, with its access tokens and, unless it ends soon, a refresh token."""

    access: list[StoredAccessToken]
    expiresAt: datetime


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


class AccessToken(TypedDict):
    """A session that cannot be renewed."""

    accessToken: str
    tokenType: Literal["Bearer"]
    expiresIn: int


class SessionTokens(AccessToken):
    """A session: `accessToken` goes into `Authorization: Bearer`, `expiresIn` counts seconds."""

    refreshToken: str


class _NewDevice(TypedDict):
    deviceToken: Annotated[str, Description("Identifies this device when the user signs in again, for 180 days.")]


class SignedIn(SessionTokens, _NewDevice):
    """A session, and a token of the device: send it as `deviceToken` when the user signs in again on this device."""


class Confirmation(TypedDict):
    """The confirmation of an action."""

    message: str


class _ApiKeys(TypedDict):
    apiKeys: Annotated[int, Description("How many API keys the user still has.")]


class NewPassword(_ApiKeys, _NewDevice):
    """The result of setting a password."""


class PasswordSet(Confirmation, NewPassword):
    """The confirmation of a new password: `apiKeys` is the number of API keys that the user still has."""


class SignUp(TypedDict):
    """A company and its owner."""

    companyName: str
    name: str
    email: Annotated[str, Email()]
    password: Annotated[str, passwords.NewPassword()]


class ForgottenPassword(TypedDict):
    """The e-mail address of a user who has forgotten the password."""

    email: Annotated[str, Text(max_length=254)]


class Credentials(TypedDict):
    """The e-mail address and password of a user who signs in."""

    email: Annotated[str, Text(max_length=254)]
    password: Annotated[str, Text(max_length=passwords.MAX_LENGTH, trim=False)]


class _KnownDevice(TypedDict):
    deviceToken: NotRequired[
        Annotated[
            str | None,
            Text(max_length=500, allow_blank=True),
            Description(
                "`deviceToken` of an earlier sign-in on this device, at most 180 days ago: failures of others do not "
                "lock it. One that is not valid is ignored."
            ),
        ]
    ]


class SignIn(Credentials, _KnownDevice):
    """The e-mail address and password of a user, and the token of the device."""


class ResetRequest(ForgottenPassword, _KnownDevice):
    """The e-mail address of a user, and the token of the device."""


class RefreshToken(TypedDict):
    """A refresh token."""

    refreshToken: Annotated[str, Text(max_length=500)]


class EmailConfirmation(TypedDict):
    """The token that was mailed to an e-mail address."""

    token: Annotated[str, Text(max_length=500)]


class _PasswordToSet(TypedDict):
    password: Annotated[str, passwords.NewPassword()]
    deleteApiKeys: Annotated[
        KeysToDelete,
        Default("none"),
        Description(
            "Which API keys of the user to delete: none, those created since the password was last changed, or all."
        ),
    ]


class PasswordReset(_PasswordToSet):
    """A new password, and the token that allows setting it."""

    token: Annotated[str, Text(max_length=500)]


class PasswordChange(_PasswordToSet):
    """The current password and a new one."""

    currentPassword: Annotated[str, Text(max_length=passwords.MAX_LENGTH, trim=False)]


# Where and when a session was used.
SessionUse: TypeAlias = Part[Session, Literal["_id", "device", "createdAt", "lastUsedAt"]]


# --- Domain events about sessions -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SessionsEnded(DomainEvent):
    """Sessions of a coach or client were ended: one (`session_id`), all but one (`kept_session_id`), or all.

    A session that expires is not reported.
    """

    company_id: ObjectId
    subject_id: ObjectId
    session_id: ObjectId | None = None
    kept_session_id: ObjectId | None = None

    def filter(self, session_field: str) -> Filter:
        """Return the filter of documents of these sessions, which have the identifier of theirs in `session_field`."""
        where: Filter = {"companyId": self.company_id, "subjectId": self.subject_id}
        if self.session_id is not None:
            where[session_field] = self.session_id
        elif self.kept_session_id is not None:
            where[session_field] = {"$ne": self.kept_session_id}
        return where
