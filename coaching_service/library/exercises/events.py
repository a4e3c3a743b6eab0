"""Domain events about exercises."""

from __future__ import annotations

from dataclasses import dataclass

from coaching_service.core.events import DomainEvent
from coaching_service.core.ids import ObjectId


@dataclass(frozen=True)
class LoadTypeChanged(DomainEvent):
    """What the loads of one of the company's exercises mean changed: figures derived from its logs follow it."""

    exercise_id: ObjectId
