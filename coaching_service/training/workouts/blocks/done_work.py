"""Which blocks the operations on a schedule leave alone: with work that has been done, or of check-ins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from coaching_service.training.workouts.blocks.session_fields import SESSION_FIELDS
from coaching_service.training.workouts.items.content import is_recorded
from coaching_service.training.workouts.items.models import WORKOUT_TYPES

B = TypeVar("B", bound=Mapping[str, Any])


def has_nothing_done(block: Mapping[str, Any]) -> bool:
    """Return whether nothing was logged of a block: neither of the session nor of any of its items.

    An empty comment does not count as a log.
    """
    session = (block.get(name) for name in SESSION_FIELDS)
    return all(value in (None, "") for value in session) and not any(is_recorded(item) for item in block["items"])


def is_work(block: Mapping[str, Any]) -> bool:
    """Return whether a block is more than forms, measurements and reminders; one without items yet is."""
    return not block["items"] or any(item["type"] in WORKOUT_TYPES for item in block["items"])


def regular_blocks(blocks: Iterable[B]) -> list[B]:
    """Return the blocks that a coach scheduled, without blocks of recurring check-ins (`checkInId`).

    Copying, clearing, shifting, adjusting and assigning ignore the blocks of check-ins.
    """
    return [block for block in blocks if block.get("checkInId") is None]
