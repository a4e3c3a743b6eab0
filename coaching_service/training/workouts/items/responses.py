"""Workout items in responses, by type; in requests see schemas.py."""

from __future__ import annotations

from collections.abc import Mapping

from coaching_service.core.field_schemas import output_of
from coaching_service.core.schemas_by_type import Variant
from coaching_service.training.workouts.items import models

_ITEM = output_of(models.ItemBase, first=("_id", "order", "isCompleted", "completedAt"))
# The first fields of items of each type, in the order of earlier API documents.
_MODELS: Mapping[str, tuple[type, tuple[str, ...]]] = {
    "EXERCISE": (
        models.ExerciseItem,
        ("type", "exerciseId", "exercise", "exerciseSets", "exerciseInstructions", "customerSets"),
    ),
    "CIRCUIT": (models.CircuitItem, ("type", "circuitName", "circuitExercises", "rounds")),
    "TASK": (models.TaskItem, ("type",)),
    "FORM": (models.FormItem, ("type",)),
    "METRICS": (models.MetricsItem, ("type",)),
    "REMINDER": (models.ReminderItem, ("type",)),
}
_ITEMS = {item_type: output_of(model, _ITEM, first=first) for item_type, (model, first) in _MODELS.items()}


def item_response() -> Variant:
    """Return the field of a workout item in a response."""
    return Variant(_ITEMS)
