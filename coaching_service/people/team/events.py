"""What happens to coaches, for features that build on them."""

from __future__ import annotations

from dataclasses import dataclass

from coaching_service.core.events import DomainEvent
from coaching_service.core.ids import ObjectId


@dataclass(frozen=True)
class CoachRemoved(DomainEvent):
    """An employee was removed from the company."""

    coach_id: ObjectId
