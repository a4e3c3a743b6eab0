"""The paths of a client's workout pages."""

from __future__ import annotations

from coaching_service.core.ids import ObjectId


def workout_path(block_id: ObjectId) -> str:
    """The path of a workout."""
    return f"/train/workouts/{block_id}"


def item_path(block_id: ObjectId, item_id: ObjectId) -> str:
    """The path of an item's place on the page of its workout."""
    return f"{workout_path(block_id)}#item-{item_id}"


def form_path(block_id: ObjectId, item_id: ObjectId) -> str:
    """The path of the page on which a form item is answered."""
    return f"{workout_path(block_id)}/items/{item_id}/form"
