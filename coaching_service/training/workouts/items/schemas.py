"""Workout items in requests, by type."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema

from coaching_service.core.field_schemas import input_of, output_of
from coaching_service.core.schemas_by_type import ChangeByStoredType, Variant
from coaching_service.core.validation import Choice, patch_of
from coaching_service.training.workouts.items import models
from coaching_service.training.workouts.items.models import PLANNED, WORKOUT_TYPES


def _new_item(item_type: str, group: Any) -> type[Schema]:
    """Return the schema of a new item: what is planned and its type."""
    name = f"New{item_type.capitalize()}Item"
    built: type[Schema] = type(name, (input_of(group),), {"type": Choice(item_type, required=True)})
    return built


_NEW_ITEMS: dict[str, type[Schema]] = {item_type: _new_item(item_type, group) for item_type, group in PLANNED.items()}
NEW_ITEM = Variant(_NEW_ITEMS)
NEW_WORKOUT_ITEM = Variant({item_type: _NEW_ITEMS[item_type] for item_type in WORKOUT_TYPES})
ITEM_CHANGE = ChangeByStoredType(
    {
        item_type: patch_of(input_of(group), name=f"{item_type.capitalize()}ItemChange")
        for item_type, group in PLANNED.items()
    }
)


_ITEM = output_of(models.ItemBase, first=("_id", "order", "isCompleted", "completedAt"))
# In responses: the first fields of items of each type are in the order of earlier API documents.
_EXERCISE = ("type", "exerciseId", "exercise", "exerciseSets", "exerciseInstructions", "customerSets")
_CIRCUIT = ("type", "circuitName", "circuitExercises", "rounds")
ITEM_RESPONSE = Variant(
    {
        "EXERCISE": output_of(models.ExerciseItem, _ITEM, first=_EXERCISE),
        "CIRCUIT": output_of(models.CircuitItem, _ITEM, first=_CIRCUIT),
        "TASK": output_of(models.TaskItem, _ITEM, first=("type",)),
        "FORM": output_of(models.FormItem, _ITEM, first=("type",)),
        "METRICS": output_of(models.MetricsItem, _ITEM, first=("type",)),
        "REMINDER": output_of(models.ReminderItem, _ITEM, first=("type",)),
    }
)
