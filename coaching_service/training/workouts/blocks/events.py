"""Events about clients' schedules and workouts, for the features that build on them."""

from __future__ import annotations

from dataclasses import dataclass

from coaching_service.core.events import DomainEvent
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.blocks.models import StoredBlock
from coaching_service.training.workouts.items.models import WorkItem


@dataclass(frozen=True)
class ScheduleChanged(DomainEvent):
    """A client's schedule changed: blocks or items were added, changed, moved, copied, shifted, assigned or removed."""

    customer_id: ObjectId


@dataclass(frozen=True)
class ScheduleShifted(DomainEvent):
    """Blocks of these assignments were moved by a number of days, with all others from the date `first` on."""

    customer_id: ObjectId
    assignment_ids: list[ObjectId]
    first: str
    days: int


@dataclass(frozen=True)
class CompletedWorkChanged(DomainEvent):
    """What a client has done in exercises changed.

    `items` are the stored items that were added, removed, changed (before and after) or moved to another date.
    `block` is the block that holds all of them, as it is now, if there is only one.
    """

    customer_id: ObjectId
    items: list[WorkItem]
    block: StoredBlock | None = None


@dataclass(frozen=True)
class RecordedItemsRescheduled(DomainEvent):
    """Items with recorded results moved to another date (`YYYY-MM-DD`)."""

    customer_id: ObjectId
    item_ids: list[ObjectId]
    date: str
