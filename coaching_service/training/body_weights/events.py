"""Domain events about body weights."""

from __future__ import annotations

from dataclasses import dataclass

from coaching_service.core.events import DomainEvent
from coaching_service.core.ids import ObjectId


@dataclass(frozen=True)
class BodyWeightsChanged(DomainEvent):
    """What a client weighs from the date `first` to `last` changed: estimates of added loads follow it."""

    customer_id: ObjectId
    first: str
    last: str
