"""Workout items: the fields of each type, and how an item is created, changed, logged and presented."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from typing import Any, cast

from coaching_service.core.auth.permissions import FORMS, METRICS, Area
from coaching_service.core.auth.principal import Principal
from coaching_service.core.auth.visibility import areas_of
from coaching_service.core.database.documents import now
from coaching_service.core.dates import zone_of
from coaching_service.core.errors import NotFound
from coaching_service.core.fields import names_of, nulls_of
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises.models import ADDED, ASSISTANCE, ExerciseName
from coaching_service.library.metric_sets.models import MetricSet
from coaching_service.training.training_maxes.models import ReferenceLoads, load_of
from coaching_service.training.workouts.items.input_models import ItemChange, ItemInput, ItemLog
from coaching_service.training.workouts.items.models import (
    LOGGED,
    PLANNED,
    CircuitExercise,
    ItemReport,
    MetricsFields,
    WorkItem,
)
from coaching_service.training.workouts.items.totals import (
    DERIVED_FIELDS,
    derive_fields,
    planned_exercise_ids,
    planned_sets,
)
from coaching_service.training.workouts.sets.models import PlannedSet
from coaching_service.training.workouts.sets.records import plan_of_done, with_kind
from coaching_service.training.workouts.sets.schemas import present_set

_FIRST_YEAR, _LAST_YEAR = 1, 9999  # of a `datetime`: elsewhere it may be in a year that does not exist
MAX_ITEMS = 100
# The fields that a coach plans for each type, and those that a log adds: lists.
PLANNED_FIELDS: Mapping[str, tuple[str, ...]] = {item_type: names_of(group) for item_type, group in PLANNED.items()}
LOGGED_FIELDS: Mapping[str, tuple[str, ...]] = {item_type: names_of(group) for item_type, group in LOGGED.items()}
# The areas that the logs of items belong to; logs of other types lie under the client.
LOG_AREAS: Mapping[str, Area] = {"FORM": FORMS, "METRICS": METRICS}

_ABSENT = tuple(nulls_of(ItemReport))  # in items that are older than these fields
_NOT_SHOWN = (*DERIVED_FIELDS, "assistedExerciseIds", "addedExerciseIds", "bodyWeight", "clientTexts")
# The fields of an item, of whatever type, that a log sets: an item of which all are empty has nothing done.
RECORDED_FIELDS = names_of(ItemReport, *LOGGED.values())


@dataclass(frozen=True)
class References:
    """What items refer to: library documents, and what the client's percentages refer to, by exercise.

    `body_weights`: the client's on the dates of the items, which percentages of added loads include; in the
    company's unit, as all loads. `timezone` is the client's, if the time of a reminder depends on it.
    """

    exercises: Mapping[ObjectId, ExerciseName] = field(default_factory=dict)
    metric_sets: Mapping[ObjectId, MetricSet] = field(default_factory=dict)
    training_maxes: Mapping[ObjectId, ReferenceLoads] = field(default_factory=dict)
    body_weights: Mapping[str, float] = field(default_factory=dict)
    timezone: str | None = None


def list_contacts(workout: Mapping[str, Any]) -> Iterator[str]:
    """Yield what of a workout reaches the client: reminders, and on a client's calendar the forms to answer.

    What recurring check-ins schedule is a contact of the check-in.
    """
    if workout.get("checkInId") is not None:
        return
    for item in workout["items"]:
        if item["type"] == "REMINDER":
            yield str(item["reminderFields"])
        elif item["type"] == "FORM" and workout.get("customerId") is not None:
            yield f"form {item['form']['name']}"


def create_item(details: ItemInput | WorkItem) -> WorkItem:
    """Return a new item with the planned fields of `details` and nothing done."""
    item_type, at = details["type"], now()
    fields = {
        "_id": ObjectId(),
        "type": item_type,
        "isCompleted": False,
        "completedAt": None,
        "comment": None,
        "pain": None,
        **{name: details.get(name) for name in PLANNED_FIELDS[item_type]},
        **_plan_of_done(details),
        **_empty_log(item_type),
        "createdAt": at,
        "updatedAt": at,
    }
    return _with_derived_fields(fields)


def with_planned_sets(item: WorkItem) -> WorkItem:
    """Return an item as a copy of it is planned: one imported without planned sets has those that were done."""
    return cast("WorkItem", {**item, **_plan_of_done(item)})


def log_item(item: WorkItem, log: ItemLog) -> WorkItem:
    """Return `item` with a log in place of its previous one."""
    at = now()
    logged = {name: log.get(name) or empty for name, empty in _empty_log(item["type"]).items()}
    fields = {
        **item,
        **logged,
        **{name: log.get(name) for name in names_of(ItemReport)},
        "completedAt": (item["completedAt"] or at) if log["isCompleted"] else None,
        "clientTexts": log.get("clientTexts", []),
        "updatedAt": at,
    }
    return _with_derived_fields(fields)


def with_load_types(item: WorkItem, exercises: Mapping[ObjectId, ExerciseName]) -> WorkItem:
    """Return an item whose figures follow what the loads of its exercises mean: assistance is no volume.

    `exercises` were done.
    """
    types = {each: exercises[each].get("loadType") for each in item["doneExerciseIds"]}
    assisted = [each for each, load_type in types.items() if load_type == ASSISTANCE]
    added = [each for each, load_type in types.items() if load_type == ADDED]
    if assisted == item.get("assistedExerciseIds", []) and added == item.get("addedExerciseIds", []):
        return item
    return _with_derived_fields({**item, "assistedExerciseIds": assisted, "addedExerciseIds": added})


def with_body_weight(item: WorkItem, body_weight: float | None) -> WorkItem:
    """Return an item with the body weight to which loads were added in it; without one if none were."""
    body_weight = body_weight if has_added_loads(item) else None
    # mypy knows `{**item}` of a union of TypedDicts only as an object.
    return item if item.get("bodyWeight") == body_weight else cast("WorkItem", {**item, "bodyWeight": body_weight})


def has_added_loads(item: WorkItem) -> bool:
    """Return whether exercises were done in an item whose loads are added to the body's weight."""
    return bool(item.get("addedExerciseIds"))


def derive_again(item: WorkItem, exercises: Mapping[ObjectId, ExerciseName]) -> WorkItem:
    """Return an item with its derived fields computed again, for the exercises that it refers to as they are now."""
    return with_load_types(_with_derived_fields(item), exercises)


def change_item(item: WorkItem, change: ItemChange) -> WorkItem:
    """Return `item` with the planned fields of its type that are in `change`, or `item` itself if there are none."""
    fields = {name: value for name, value in change.items() if name in PLANNED_FIELDS[item["type"]]}
    return _with_derived_fields({**item, **fields, "updatedAt": now()}) if fields else item


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


def find_index(items: Sequence[WorkItem], item_id: ObjectId) -> int:
    """Return the position of an item in its block. Raises NotFound."""
    for index, item in enumerate(items):
        if item["_id"] == item_id:
            return index
    raise NotFound("workout item")


def exercise_ids(items: Iterable[WorkItem | ItemChange]) -> set[ObjectId]:
    """Return the exercises that items plan, circuits included."""
    return {exercise_id for item in items for exercise_id in planned_exercise_ids(item)}


def metric_set_ids(items: Iterable[WorkItem | ItemChange]) -> set[ObjectId]:
    """Return the metric sets that items refer to."""
    fields = (cast("MetricsFields | None", item.get("metricsFields")) for item in items)
    return {each["metricsSetId"] for each in fields if each}


def has_load(item: WorkItem | ItemChange) -> bool:
    """Return whether an item plans or records a load."""
    sets: list[Any] = [*_list_of(item, "exerciseSets"), *_list_of(item, "customerSets")]
    for entry in _list_of(item, "circuitExercises"):
        sets += entry["sets"]
    return any(each.get("load") is not None for each in sets)


def percent_exercise_ids(items: Iterable[WorkItem]) -> set[ObjectId]:
    """Return the exercises with a set that is planned as a percentage of the client's training maximum."""
    return {
        exercise_id
        for item in items
        for exercise_id, planned in planned_sets(item)
        if planned.get("loadPercent") is not None
    }


def is_recorded(item: Mapping[str, Any]) -> bool:
    """Return whether anything of an item was logged, even if it is not completed."""
    return any(item.get(name) for name in RECORDED_FIELDS)


def present_items(
    items: Sequence[WorkItem], version: int, references: References, reader: Principal, date: str | None = None
) -> list[WorkItem]:
    """Return the items of a block of this `version` and `date`, if any, as they are read, in order."""
    return [present_item(item, order, version, references, reader, date) for order, item in enumerate(items)]


def present_item(
    item: WorkItem, order: int, version: int, references: References, reader: Principal, date: str | None
) -> WorkItem:
    """Return an item as it is read: with `order`, the block's `version`, names of what it refers to, and variables.

    Loads planned in percent are those of the block's `date`. Answers and values of an area that `reader` may not see
    are None.
    """
    load_unit = reader.company.load_unit
    # Any: the fields depend on the type of the item. A copy alone is faster than one with other fields.
    fields: dict[str, Any] = {**item}
    fields["order"], fields["version"] = order, version
    for name in _ABSENT:
        fields.setdefault(name, None)
    if (swap := fields["swappedFor"]) is not None:
        fields["swappedFor"] = {**swap, "exercise": references.exercises[swap["exerciseId"]]}
    for name in _NOT_SHOWN:
        fields.pop(name, None)
    if not may_see_log(reader, item):
        fields.update(dict.fromkeys(LOGGED_FIELDS[item["type"]]))
    if item["type"] == "EXERCISE":
        fields["exercise"] = references.exercises[item["exerciseId"]]
        fields["exerciseSets"] = _present_sets(item["exerciseSets"], item["exerciseId"], references, load_unit, date)
        fields["customerSets"] = [with_kind(done) for done in item["customerSets"]]
    elif item["type"] == "CIRCUIT":
        fields["customerSets"] = [with_kind(done) for done in item["customerSets"]]
        fields["circuitExercises"] = [
            _present_circuit_exercise(entry, item["rounds"], references, load_unit, date)
            for entry in item["circuitExercises"]
        ]
    elif item["type"] == "METRICS":
        metric_set = references.metric_sets[item["metricsFields"]["metricsSetId"]]
        fields["metricsFields"] = {
            "metricsSetId": metric_set["_id"],
            "name": metric_set["name"],
            "metrics": metric_set["metrics"],
        }
    elif item["type"] == "REMINDER":
        reminder = item["reminderFields"]
        fields["reminderFields"] = {**reminder, "time": time_of_day(reminder["scheduledTime"], references.timezone)}
    return cast("WorkItem", fields)


def may_see_log(reader: Principal, item: WorkItem) -> bool:
    """Return whether `reader`, who may see the workout, may see the answers or values of an item."""
    return areas_of(reader).allows(area=LOG_AREAS.get(item["type"]))


def has_instant(item: WorkItem) -> bool:
    """Return whether an item is a reminder whose date-time names an offset from UTC."""
    if item["type"] != "REMINDER" or len(item["reminderFields"]["scheduledTime"]) == len("HH:MM"):
        return False
    return datetime.fromisoformat(item["reminderFields"]["scheduledTime"]).tzinfo is not None


def time_of_day(scheduled_time: str, timezone: str | None) -> str:
    """Return the time (`HH:MM`) of a reminder that is scheduled for a time of day or an ISO date-time.

    An offset from UTC is converted to the client's `timezone`; without a client the time is as it was written.
    """
    if len(scheduled_time) == len("HH:MM"):
        return scheduled_time
    moment = datetime.fromisoformat(scheduled_time)
    if moment.tzinfo is not None and timezone is not None and _FIRST_YEAR < moment.year < _LAST_YEAR:
        moment = moment.astimezone(zone_of(timezone))
    return moment.strftime("%H:%M")


def _present_circuit_exercise(
    entry: CircuitExercise, rounds: int, references: References, load_unit: str, date: str | None
) -> CircuitExercise:
    return {
        **entry,
        "exercise": references.exercises[entry["exerciseId"]],
        "sets": _present_sets(entry["sets"], entry["exerciseId"], references, load_unit, date),
        "plannedSetsTotal": len(entry["sets"]) * rounds,
    }


def _present_sets(
    sets: Sequence[PlannedSet], exercise_id: ObjectId, references: References, load_unit: str, date: str | None
) -> list[PlannedSet]:
    loads = references.training_maxes.get(exercise_id)
    if loads is None:
        return [present_set(planned, load_unit) for planned in sets]
    maximum, body_weight = load_of(loads), 0.0
    if loads["trainingMax"] is None and references.exercises[exercise_id].get("loadType") == ADDED:
        known = None if date is None else references.body_weights.get(date)
        maximum, body_weight = (None, 0.0) if known is None else (maximum, known)
    return [present_set(planned, load_unit, maximum, body_weight) for planned in sets]


def _empty_log(item_type: str) -> dict[str, list[Any]]:
    return {name: [] for name in LOGGED_FIELDS.get(item_type, ())}


def _plan_of_done(details: ItemInput | WorkItem) -> dict[str, list[PlannedSet]]:
    """Return the planned sets of a copy of an item that was imported without any: what was done in it."""
    done = _list_of(details, "customerSets") if details["type"] == "EXERCISE" else []
    return {} if details.get("exerciseSets") or not done else {"exerciseSets": plan_of_done(done)}


def _with_derived_fields(fields: Mapping[str, Any]) -> WorkItem:
    item = cast("WorkItem", fields)
    return cast("WorkItem", {**fields, **derive_fields(item)})


def _list_of(item: WorkItem | ItemChange, name: str) -> list[Any]:
    return cast("list[Any]", item.get(name) or [])
