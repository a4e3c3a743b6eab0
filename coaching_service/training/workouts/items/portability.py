"""Items of an import: validated like items of a request, and with what is derived from them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

import orjson
from marshmallow import ValidationError

from coaching_service.core.errors import invalid_field
from coaching_service.core.field_schemas import checks_of
from coaching_service.core.fields import take
from coaching_service.core.validation import Integer, Number
from coaching_service.core.validation_messages import field_errors
from coaching_service.training.workouts.items.content import MAX_ITEMS
from coaching_service.training.workouts.items.inputs import ScheduledTime
from coaching_service.training.workouts.items.models import (
    PlannedCircuitExercise,
    PlannedMetrics,
    PlannedReminder,
    WorkItem,
)
from coaching_service.training.workouts.items.totals import DERIVED_FIELDS, derive_fields, summarize_block
from coaching_service.training.workouts.sets.models import PerformedSet
from coaching_service.training.workouts.sets.schemas import PlannedSets

# What a stored item does not have, or what is computed again.
COMPUTED_ITEM_FIELDS = tuple(f"items.{name}" for name in (*DERIVED_FIELDS, "order", "version"))
# The documents that items refer to, by the path of the identifier.
ITEM_REFERENCES = {
    "items.exerciseId": "exercises",
    "items.circuitExercises.exerciseId": "exercises",
    "items.customerSets.exerciseId": "exercises",
    "items.swappedFor.exerciseId": "exercises",
    "items.assistedExerciseIds": "exercises",
    "items.addedExerciseIds": "exercises",
    "items.metricsFields.metricsSetId": "metricSets",
}
# The summary of what a client's workout was copied from: as its identifiers change, it is equal to no other.
UNKNOWN_COPY = ""
_ADDED_ON_READ = ("exercise", "lastTime", "order", "version")
_ADDED_LATER = ("isAmrap", "perSide", "setKind", "loadPercent")  # absent in older sets
_PLANNED_SETS = PlannedSets(required=True)
_SCHEDULED_TIME = ScheduledTime()
_MAXIMA = {name: each.maximum for name, each in checks_of(PerformedSet).items() if isinstance(each, Integer | Number)}


def complete_block(block: dict[str, Any]) -> dict[str, Any]:
    """Return an imported block with what is derived from its items. Raises InvalidFields."""
    if (block["customerId"] is None) == (block["date"] is not None):
        raise invalid_field("date", "is required for a client's workout, and null in a program")
    if block["customerId"] is None and (block["programId"] is None or block["day"] is None):
        raise invalid_field("programId", "is required with a day, or a customerId with a date")
    block = complete_items(block, is_imported=block.get("source") is not None)
    if block["customerId"] is not None and block["programId"] is not None:
        block["programCopy"] = UNKNOWN_COPY
    return {**block, "done": summarize_block(block["items"])}


def complete_items(document: dict[str, Any], *, is_imported: bool = False) -> dict[str, Any]:
    """Return an imported document with items, with the derived fields of each. Raises InvalidFields.

    `is_imported`: it came from a file before, so that exercises may have no planned sets.
    """
    if len(document["items"]) > MAX_ITEMS:
        raise invalid_field("items", f"must not hold more than {MAX_ITEMS} entries", code="TOO_MANY")
    items = [_complete_item(item, f"items.{number}", is_imported) for number, item in enumerate(document["items"])]
    return {**document, "items": items}


def _complete_item(item: dict[str, Any], path: str, is_imported: bool) -> WorkItem:
    item = {name: value for name, value in item.items() if name not in _ADDED_ON_READ}
    if item["type"] == "EXERCISE" and (item["exerciseSets"] or not is_imported):
        item["exerciseSets"] = _validate_sets(item["exerciseSets"], f"{path}.exerciseSets")
    elif item["type"] == "CIRCUIT":
        item["circuitExercises"] = [
            {
                **take(PlannedCircuitExercise, entry),
                "sets": _validate_sets(entry["sets"], f"{path}.circuitExercises.{number}.sets"),
            }
            for number, entry in enumerate(item["circuitExercises"])
        ]
        if not item["circuitExercises"] or not 1 <= item["rounds"] <= 1000:
            raise invalid_field(path, "must have exercises and 1 to 1000 rounds")
    elif item["type"] == "REMINDER":
        item["reminderFields"] = take(PlannedReminder, item["reminderFields"])
        _validate(_SCHEDULED_TIME, item["reminderFields"]["scheduledTime"], f"{path}.reminderFields.scheduledTime")
    elif item["type"] == "METRICS":
        item["metricsFields"] = take(PlannedMetrics, item["metricsFields"])
    for number, done in enumerate(item.get("customerSets", ())):
        _validate_done(item["type"], done, f"{path}.customerSets.{number}")
    return cast("WorkItem", {**item, **derive_fields(cast("WorkItem", item))})


def _validate_done(item_type: str, done: dict[str, Any], path: str) -> None:
    if item_type == "CIRCUIT" and done["exerciseId"] is None:
        raise invalid_field(f"{path}.exerciseId", "is required", code="REQUIRED")
    for name, maximum in _MAXIMA.items():
        if done[name] is not None and not 0 <= done[name] <= maximum:
            raise invalid_field(f"{path}.{name}", f"must be from 0 to {maximum}", code="OUT_OF_RANGE")


def _validate_sets(sets: list[dict[str, Any]], path: str) -> list[dict[str, Any]]:
    """Return planned sets as a request would store them."""
    text = orjson.dumps([{name: value for name, value in each.items() if name != "variables"} for each in sets])
    try:
        return [dict(each) for each in _load_sets(text)]
    except ValidationError as error:
        first = field_errors(error)[0]
        raise invalid_field(f"{path}.{first['field']}".rstrip("."), first["message"], code=first["code"]) from None


@lru_cache(4096)  # plans repeat the same sets
def _load_sets(text: bytes) -> tuple[dict[str, Any], ...]:
    sent = orjson.loads(text)
    loaded = _PLANNED_SETS.deserialize(sent)
    names = {each.get("index", position): each.keys() for position, each in enumerate(sent, 1)}
    return tuple(
        {name: value for name, value in each.items() if name not in _ADDED_LATER or name in names[each["index"]]}
        for each in loaded
    )


def _validate(check: ScheduledTime, value: str, path: str) -> None:
    try:
        check.deserialize(value)
    except ValidationError as error:
        raise invalid_field(path, str(error.messages[0])) from None
