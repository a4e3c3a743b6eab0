"""Domain events about coaches."""

from __future__ import annotations

from dataclasses import dataclass

from coaching_service.core.events import DomainEvent
from coaching_service.core.ids import ObjectId


@dataclass(frozen=True)
class CoachRemoved(DomainEvent):
    """An employee was removed from the company."""

    coach_id: ObjectId


@dataclass(frozen=True)
class CoachNotificationsChanged(DomainEvent):
    """A coach has changed which notifications to get, how or when."""

    coach_id: ObjectId


@dataclass(frozen=True)
class SignInEmailChanged(DomainEvent):
    """An employee signs in by another e-mail address."""

    coach_id: ObjectId
