"""Domain events about logs."""

from __future__ import annotations

from dataclasses import dataclass

from coaching_service.core.events import DomainEvent
from coaching_service.core.ids import ObjectId


@dataclass(frozen=True)
class ItemLogged(DomainEvent):
    """The log of a workout item of a client was replaced."""

    customer_id: ObjectId
