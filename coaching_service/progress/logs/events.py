"""What clients and coaches record, for features that build on it."""

from __future__ import annotations

from dataclasses import dataclass

from coaching_service.core.events import DomainEvent
from coaching_service.core.ids import ObjectId


@dataclass(frozen=True)
class ItemLogged(DomainEvent):
    """What was done of a workout item was recorded."""

    customer_id: ObjectId
