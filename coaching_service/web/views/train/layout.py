"""What all pages for clients share: days in words, which blocks are workouts, and paths."""

from __future__ import annotations

from datetime import date

from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.blocks.models import Block

_NEAR = {-1: "Yesterday", 0: "Today", 1: "Tomorrow"}


def label_day(day: str | date, today: date, *, within: bool = False) -> str:
    """Return a date as `Today`, `Yesterday`, `Tomorrow`, `Mon 2 Mar`, or of another year `Mon 2 Mar 2025`.

    `within`: the date is not the first word of its sentence, so `today` is in small letters.
    """
    each = date.fromisoformat(day) if isinstance(day, str) else day
    near = _NEAR.get((each - today).days)
    year = "" if each.year == today.year else f" {each.year}"
    if near:
        return near.lower() if within else near
    return f"{each:%a} {each.day} {each:%b}{year}"


def label_month(month: str) -> str:
    """Return a month (`YYYY-MM`) as `March 2026`."""
    first = date.fromisoformat(f"{month}-01")
    return f"{first:%B} {first.year}"


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
