"""Sign-in identities and password resets as they are stored."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NotRequired

from coaching_service.core.database.models import Stored
from coaching_service.core.events import DomainEvent
from coaching_service.core.ids import ObjectId

SubjectKind = Literal["coach", "customer"]


class StoredIdentity(Stored):
    """How a coach or client signs in.

    `address` is the normalised e-mail address; `passwordHash` is null until a password is set. `isConfirmed`: a mailed
    token or the operator has confirmed the address; identities stored before the field existed count as confirmed.
    `passwordChangedAt` is missing until the first change.
    """

    address: str
    kind: SubjectKind
    subjectId: ObjectId
    passwordHash: str | None
    isConfirmed: NotRequired[bool]
    passwordChangedAt: NotRequired[datetime]


class IdentityClaim(Stored):
    """An employee's claim to an e-mail address that another, unconfirmed identity uses.

    It becomes the identity when the employee uses a token that was mailed to `address`.
    """

    address: str
    kind: SubjectKind
    subjectId: ObjectId


class PasswordReset(Stored):
    """A single-use right to set the password of a coach or client, found by the hash of its token."""

    subjectId: ObjectId
    kind: SubjectKind
    tokenHash: str


# --- Domain events about sign-in identities ---------------------------------------------------------------------------


@dataclass(frozen=True)
class IdentityDisplaced(DomainEvent):
    """A coach or client of any company lost an unconfirmed e-mail address to a user who confirmed it."""

    company_id: ObjectId
    subject_id: ObjectId


@dataclass(frozen=True)
class EmailConfirmed(DomainEvent):
    """A coach or client of the company has confirmed the e-mail address by a mailed token."""

    subject_id: ObjectId
