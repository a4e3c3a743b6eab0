"""Domain events about sign-in identities."""

from __future__ import annotations

from dataclasses import dataclass

from coaching_service.core.events import DomainEvent
from coaching_service.core.ids import ObjectId


@dataclass(frozen=True)
class IdentityDisplaced(DomainEvent):
    """A coach or client of any company lost an unconfirmed e-mail address to a user who confirmed it."""

    company_id: ObjectId
    subject_id: ObjectId


@dataclass(frozen=True)
class EmailConfirmed(DomainEvent):
    """A coach or client of the company has confirmed the e-mail address by a mailed token."""

    subject_id: ObjectId
