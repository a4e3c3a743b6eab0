"""Which items, or fields of an item, a block has already, except for generated identifiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, cast

from coaching_service.training.workouts.items.content import PLANNED_FIELDS
from coaching_service.training.workouts.items.input_models import ItemChange, ItemInput
from coaching_service.training.workouts.items.models import WorkItem


def match_items(stored: Sequence[WorkItem], sent: Sequence[ItemInput]) -> list[WorkItem | None]:
    """Return, for each item that is sent, the stored one at the same place if that has the same plan."""
    pairs = zip_longest(stored, sent)
    return [item if item and _has_plan(item, details) else None for item, details in pairs if details]


def find_differences(item: WorkItem, change: ItemChange) -> ItemChange:
    """Return the fields of a change that the item does not have already."""
    fields: Mapping[str, Any] = item
    different = {
        name: value for name, value in change.items() if _comparable(name, fields.get(name)) != _comparable(name, value)
    }
    return cast("ItemChange", different)


def _has_plan(item: WorkItem, details: ItemInput) -> bool:
    names = PLANNED_FIELDS[details["type"]]
    return item["type"] == details["type"] and all(
        _comparable(name, item.get(name)) == _comparable(name, details.get(name)) for name in names
    )


def _comparable(name: str, value: Any) -> Any:
    """Return a field without generated identifiers, and a form of the library only by its identifier."""
    if name == "form" and (form_id := value.get("formId")) is not None:
        return form_id
    return _without_identifiers({"formId": None, **value} if name == "form" else value)


def _without_identifiers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_identifiers(each) for name, each in value.items() if name != "_id"}
    return [_without_identifiers(each) for each in value] if isinstance(value, list) else value
