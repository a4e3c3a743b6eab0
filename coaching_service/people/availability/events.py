"""Events about the availability of clients, for the features that build on it."""

from __future__ import annotations

from dataclasses import dataclass

from coaching_service.core.events import DomainEvent
from coaching_service.core.ids import ObjectId
from coaching_service.people.availability.models import Availability


@dataclass(frozen=True)
class AvailabilityChanged(DomainEvent):
    """A period of a client was added (`before` is None), changed, or deleted (`after` is None).

    `is_undo`: by an undo, which has restored what the change had changed.
    """

    customer_id: ObjectId
    before: Availability | None
    after: Availability | None
    is_undo: bool = False
