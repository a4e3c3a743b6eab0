"""Domain events about imports."""

from __future__ import annotations

from dataclasses import dataclass

from coaching_service.core.events import DomainEvent
from coaching_service.core.ids import ObjectId


@dataclass(frozen=True)
class ImportUndoRequested(DomainEvent):
    """An import is to be undone, by a job with this identifier."""

    import_id: ObjectId
    job_id: ObjectId
