"""Short forms of the identifiers of a workout's items: their last characters, which tell them apart in the workout."""

from __future__ import annotations

from collections.abc import Sequence

from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.items.models import WorkItem

# The last 6 characters of an identifier count the documents that a process creates.
_SHORTEST = 6
_FULL = 24


def shorten_ids(items: Sequence[WorkItem]) -> dict[ObjectId, str]:
    """Return the short form of each item's identifier; all have the same length."""
    ids = [str(item["_id"]) for item in items]
    length = next(size for size in range(_SHORTEST, _FULL + 1) if len({each[-size:] for each in ids}) == len(set(ids)))
    return {item["_id"]: str(item["_id"])[-length:] for item in items}


def find_item(items: Sequence[WorkItem], short_id: str) -> WorkItem | None:
    """Return the item whose identifier ends with `short_id` (6 to 24 characters); None if none or several do."""
    wanted = short_id.lower().removeprefix("#")
    matching = [item for item in items if len(wanted) >= _SHORTEST and str(item["_id"]).endswith(wanted)]
    return matching[0] if len(matching) == 1 else None
