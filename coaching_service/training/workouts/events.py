"""What happens to a client's workouts, for features that build on them."""

from __future__ import annotations

from dataclasses import dataclass

from coaching_service.core.database.documents import Document
from coaching_service.core.events import DomainEvent
from coaching_service.core.ids import ObjectId


@dataclass(frozen=True)
class CompletedWorkChanged(DomainEvent):
    """What a client has done of exercises changed.

    `items` are the stored items that were added, removed, changed (before and after) or moved to another date.
    """

    customer_id: ObjectId
    items: list[Document]


@dataclass(frozen=True)
class RecordedItemsRescheduled(DomainEvent):
    """Items with recorded results moved to another date (`YYYY-MM-DD`)."""

    customer_id: ObjectId
    item_ids: list[ObjectId]
    date: str
