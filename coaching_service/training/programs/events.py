"""Domain events about programs."""

from __future__ import annotations

from dataclasses import dataclass

from coaching_service.core.events import DomainEvent
from coaching_service.core.ids import ObjectId


@dataclass(frozen=True)
class ProgramDeleted(DomainEvent):
    """A program was deleted; what was assigned from it remains."""

    program_id: ObjectId
