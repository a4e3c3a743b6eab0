"""Which blocks are workouts to a client, and the paths of their pages."""

from __future__ import annotations

from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.blocks.models import Block


def is_session(block: Block) -> bool:
    """Return whether a block is a workout to a client: neither rest, nor only something to answer or to measure."""
    if block["isRest"] or block.get("checkInId") is not None:
        return False
    return not block["items"] or any(item["type"] not in ("FORM", "METRICS") for item in block["items"])


def workout_path(block_id: ObjectId) -> str:
    """Return the path of a workout."""
    return f"/train/workouts/{block_id}"


def calendar_path(day: str) -> str:
    """Return the path of a day in its week of the calendar."""
    return f"/train/calendar?week={day}#day-{day}"


def item_path(block_id: ObjectId, item_id: ObjectId) -> str:
    """Return the path of an item's place on the page of its workout."""
    return f"{workout_path(block_id)}#item-{item_id}"


def form_path(block_id: ObjectId, item_id: ObjectId) -> str:
    """Return the path of the page on which a form item is answered."""
    return f"{workout_path(block_id)}/items/{item_id}/form"
