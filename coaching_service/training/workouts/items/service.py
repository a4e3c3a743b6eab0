"""Workout items: the fields of each type, how an item is created, changed, logged and presented, and its totals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import chain, repeat
from typing import Any, NamedTuple, TypedDict, TypeVar, cast

from coaching_service.core import auth
from coaching_service.core.auth import Principal
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.database.documents import now
from coaching_service.core.dates import zone_of
from coaching_service.core.errors import NotFound
from coaching_service.core.fields import names_of, nulls_of
from coaching_service.core.ids import ObjectId
from coaching_service.library import forms, metric_sets
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import ADDED, ASSISTANCE, ExerciseName
from coaching_service.library.forms import Form
from coaching_service.library.metric_sets import MetricSet
from coaching_service.people import account
from coaching_service.people.customers import bulk
from coaching_service.people.customers import service as customers
from coaching_service.training import body_weights, set_media, training_maxes
from coaching_service.training.training_maxes import ReferenceLoads, load_of
from coaching_service.training.workouts import sets
from coaching_service.training.workouts.items import models as item_models
from coaching_service.training.workouts.items.models import CircuitExercise, DatedItem, ItemChange, WorkItem
from coaching_service.training.workouts.sets import PlannedSet, plan_of_done, present_set, with_kind

# --- Training load: totals of completed sets, and the best of them, stored so that reports need not read every set ----


DERIVED_FIELDS = ("exerciseIds", "doneExerciseIds", "tally", "isPendingForm")
TOTALS = ("sets", "reps", "volumeLoad")


class DerivedFields(TypedDict):
    """The fields of a stored item that are derived from its plan and log."""

    exerciseIds: list[ObjectId]
    doneExerciseIds: list[ObjectId]
    tally: sets.ItemTally
    isPendingForm: bool


def derive_fields(item: WorkItem) -> DerivedFields:
    """Return the derived fields of an item.

    `exerciseIds` are the exercises it plans, or that were done or chosen in their place. `doneExerciseIds` are those
    with a working set: a completed set that is not warm-up. `tally` has the totals of its working sets.
    `isPendingForm`: it is a form that is not answered.
    """
    planned = planned_exercise_ids(item)
    totals = _zero_totals()
    by_exercise: dict[ObjectId, sets.ExerciseTotals] = {}
    for exercise_id, done in working_sets(item):
        exercise_totals = by_exercise.setdefault(exercise_id, {"exerciseId": exercise_id, **_zero_totals()})
        for sums in (totals, exercise_totals):
            sums["sets"] += 1
            sums["reps"] += done["reps"] or 0
            sums["volumeLoad"] += 0 if is_assisted(item, exercise_id) else volume_load(done)
    done_ids = list(by_exercise)
    swap = item.get("swappedFor")
    chosen = [swap["exerciseId"]] if swap else []
    return {
        "exerciseIds": list(dict.fromkeys([*planned, *chosen, *done_ids])),
        "doneExerciseIds": done_ids,
        "tally": {**totals, "exercises": list(by_exercise.values())},
        "isPendingForm": item["type"] == "FORM" and not item["isCompleted"],
    }


def planned_exercise_ids(item: WorkItem | ItemChange) -> list[ObjectId]:
    """Return the exercises that an item plans, a circuit's included, without duplicates."""
    exercise_id = item.get("exerciseId")
    ids = [exercise_id] if isinstance(exercise_id, ObjectId) else []
    return list(dict.fromkeys([*ids, *(entry["exerciseId"] for entry in _circuit_exercises(item))]))


def logged_sets(items: Iterable[WorkItem], exercise_id: ObjectId) -> list[sets.CustomerSet]:
    """Return the sets of an exercise that were logged with items, in order, warm-up and incomplete ones included."""
    return [
        logged
        for item in items
        for logged in _customer_sets(item)
        if (logged["exerciseId"] or item.get("exerciseId")) == exercise_id
    ]


def working_sets(item: WorkItem) -> Iterator[tuple[ObjectId, sets.CustomerSet]]:
    """Yield the completed sets of an item that are not warm-up, each with its exercise.

    A set is warm-up if it was logged as such, or if the planned set is; this also holds for a set of the exercise that
    was done in place of the planned one.
    """
    warm_ups = {(exercise_id, planned["index"]) for exercise_id, planned in planned_sets(item) if planned["isWarmup"]}
    for done in _customer_sets(item):
        exercise_id = done["exerciseId"] or (item["exerciseId"] if item["type"] == "EXERCISE" else None)
        if exercise_id is None:
            raise ValueError("a logged set of a circuit must have an exercise")
        planned_id = item["exerciseId"] if item["type"] == "EXERCISE" else exercise_id
        if done["isCompleted"] and not done.get("isWarmup") and (planned_id, done["index"]) not in warm_ups:
            yield exercise_id, done


def is_assisted(item: WorkItem, exercise_id: ObjectId) -> bool:
    """Return whether the loads that were logged of an exercise of an item are assistance: less is better."""
    return exercise_id in item.get("assistedExerciseIds", ())


def load_meaning(item: WorkItem, exercise_id: ObjectId) -> sets.LoadMeaning:
    """Return what the loads that were logged of an exercise of an item mean."""
    is_added = exercise_id in item.get("addedExerciseIds", ())
    return sets.LoadMeaning(is_assisted(item, exercise_id), is_added, item.get("bodyWeight") if is_added else None)


def volume_load(done: sets.CustomerSet) -> float:
    """Return reps x load of a set; 0 if either is missing."""
    return (done["reps"] or 0) * (done["load"] or 0)


def volume_of(item: WorkItem, exercise_id: ObjectId) -> float:
    """Return the volume load of an exercise in an item; 0 where its loads are assistance."""
    if is_assisted(item, exercise_id):
        return 0
    return sum(volume_load(done) for trained_id, done in working_sets(item) if trained_id == exercise_id)


def round_total(total: float) -> float:
    """Round a sum of products to 6 decimals, which removes the noise of binary fractions."""
    return round(total, 6)


def summarize_block(items: Sequence[WorkItem]) -> sets.BlockTotals | None:
    """Return the totals of a block's items, with the best sets of each exercise. None if the block is not a session.

    A session has at least one working set, or a completed item of a type without sets.
    """
    trained = (
        bool(each["doneExerciseIds"]) if each["type"] in ("EXERCISE", "CIRCUIT") else each["isCompleted"]
        for each in items
    )
    if not any(trained):
        return None
    block_totals = _zero_totals()
    by_exercise: dict[ObjectId, sets.BlockExerciseTotals] = {}
    for item in items:
        _add_totals(block_totals, item["tally"])
        for exercise in item["tally"]["exercises"]:
            exercise_id = exercise["exerciseId"]
            totals = by_exercise.setdefault(exercise_id, {"exerciseId": exercise_id, **_zero_totals(), "bests": []})
            _add_totals(totals, exercise)
    for exercise_id, bests in best_by_exercise({"date": "", "item": item} for item in items).items():
        stored = by_exercise[exercise_id]["bests"]
        for key, best in bests.items():
            stored.append({"kind": key.type, "value": best["value"], "reps": best["reps"], "witemId": best["witemId"]})
            if key.meters is not None:
                stored[-1]["meters"] = key.meters
    summary: sets.BlockTotals = {**block_totals, "exercises": list(by_exercise.values())}
    return summary


def best_by_exercise(items: Iterable[DatedItem]) -> dict[ObjectId, dict[sets.RecordKey, sets.Best]]:
    """Return the best working set for each exercise and record."""
    bests: dict[ObjectId, dict[sets.RecordKey, sets.Best]] = {}
    for dated in items:
        for exercise_id, done in working_sets(dated["item"]):
            of_exercise = bests.setdefault(exercise_id, {})
            values = sets.record_values(done, load_meaning(dated["item"], exercise_id))
            for key, value in values.items():
                best: sets.Best = {
                    "value": value,
                    "reps": done["reps"],
                    "date": dated["date"],
                    "witemId": dated["item"]["_id"],
                }
                previous = of_exercise.get(key, best)
                of_exercise[key] = min(previous, best, key=partial(sets.rank_best, key.type))
    return bests


def _zero_totals() -> sets.Totals:
    return {"sets": 0, "reps": 0, "volumeLoad": 0}


def _add_totals(totals: sets.Totals, more: sets.Totals) -> None:
    totals["sets"] += more["sets"]
    totals["reps"] += more["reps"]
    totals["volumeLoad"] += more["volumeLoad"]


def _customer_sets(item: WorkItem) -> list[sets.CustomerSet]:
    if item["type"] == "EXERCISE" or item["type"] == "CIRCUIT":
        return [sets.with_kind(done) for done in item["customerSets"]]
    return []


def planned_sets(item: WorkItem) -> Iterator[tuple[ObjectId, PlannedSet]]:
    """Yield the planned sets of an item, of a circuit in one round, each with its exercise."""
    if item["type"] == "EXERCISE":
        for planned in item["exerciseSets"]:
            yield item["exerciseId"], planned
    for entry in _circuit_exercises(item):
        for planned in entry["sets"]:
            yield entry["exerciseId"], planned


def _circuit_exercises(item: WorkItem | ItemChange) -> list[CircuitExercise]:
    # mypy knows `get` of a union of TypedDicts only as an object.
    return cast("list[CircuitExercise]", item.get("circuitExercises") or [])


# --- Items ------------------------------------------------------------------------------------------------------------


_FIRST_YEAR, _LAST_YEAR = 1, 9999  # of a `datetime`: elsewhere it may be in a year that does not exist
MAX_ITEMS = 100
# The fields that a coach plans for each type, and those that a log adds: lists.
PLANNED_FIELDS: Mapping[str, tuple[str, ...]] = {
    item_type: names_of(group) for item_type, group in item_models.PLANNED.items()
}
LOGGED_FIELDS: Mapping[str, tuple[str, ...]] = {
    item_type: names_of(group) for item_type, group in item_models.LOGGED.items()
}
# The areas that the logs of items belong to; logs of other types lie under the client.
LOG_AREAS: Mapping[str, auth.Area] = {"FORM": auth.FORMS, "METRICS": auth.METRICS}

_ABSENT = tuple(nulls_of(item_models.ItemReport))  # in items that are older than these fields
_NOT_SHOWN = (*DERIVED_FIELDS, "assistedExerciseIds", "addedExerciseIds", "bodyWeight", "clientTexts")
# The fields of an item, of whatever type, that a log sets: an item of which all are empty has nothing done.
RECORDED_FIELDS = names_of(item_models.ItemReport, *item_models.LOGGED.values())


@dataclass(frozen=True)
class References:
    """What items refer to: library documents, and what the client's percentages refer to, by exercise.

    `body_weights`: the client's on the dates of the items, which percentages of added loads include; in the
    company's unit, as all loads. `timezone` is the client's, if the time of a reminder depends on it. `media_counts`:
    how many videos and pictures the items have, without those that have none.
    """

    exercises: Mapping[ObjectId, ExerciseName] = field(default_factory=dict)
    metric_sets: Mapping[ObjectId, MetricSet] = field(default_factory=dict)
    training_maxes: Mapping[ObjectId, ReferenceLoads] = field(default_factory=dict)
    body_weights: Mapping[str, float] = field(default_factory=dict)
    timezone: str | None = None
    media_counts: Mapping[ObjectId, int] = field(default_factory=dict)


def list_contacts(workout: Mapping[str, Any]) -> Iterator[str]:
    """Yield what of a workout reaches the client: reminders, and on a client's calendar the forms to answer.

    Of what a recurring check-in has scheduled: its name and its task.
    """
    if workout.get("checkInId") is not None:
        tasks = [item["taskFields"]["title"] for item in workout["items"] if item["type"] == "TASK"]
        yield " ".join(["check-in", str(workout["checkInId"]), workout["name"], *tasks])
        return
    for item in workout["items"]:
        if item["type"] == "REMINDER":
            yield str(item["reminderFields"])
        elif item["type"] == "FORM" and workout.get("customerId") is not None:
            yield f"form {item['form']['name']}"


def create_item(details: item_models.ItemInput | WorkItem) -> WorkItem:
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


def log_item(item: WorkItem, log: item_models.ItemLog) -> WorkItem:
    """Return `item` with a log in place of its previous one."""
    at = now()
    logged = {name: log.get(name) or empty for name, empty in _empty_log(item["type"]).items()}
    fields = {
        **item,
        **logged,
        **{name: log.get(name) for name in names_of(item_models.ItemReport)},
        "completedAt": (item["completedAt"] or at) if log["isCompleted"] else None,
        "clientTexts": log.get("clientTexts", []),
        "updatedAt": at,
    }
    return _with_derived_fields(fields)


def has_log(item: WorkItem, log: item_models.ItemLog) -> bool:
    """Return whether a log is stored with an item already."""
    stored, logged = (cast("Mapping[str, object]", each) for each in (item, log_item(item, log)))
    return all(stored.get(name) == logged.get(name) for name in (*RECORDED_FIELDS, "clientTexts") if name in logged)


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


def match_items(stored: Sequence[WorkItem], sent: Sequence[item_models.ItemInput]) -> list[WorkItem | None]:
    """Return, for each item that is sent, the stored one at the same place if that has the same plan."""
    matched: list[WorkItem | None] = []
    for item, details in zip(chain(stored, repeat(None)), sent, strict=False):
        is_same = item is not None and item["type"] == details["type"]
        plan = {name: details.get(name) for name in PLANNED_FIELDS[details["type"]]}
        has_plan = is_same and not find_differences(cast("WorkItem", item), cast("ItemChange", plan))
        matched.append(item if has_plan else None)
    return matched


def find_differences(item: WorkItem, change: ItemChange) -> ItemChange:
    """Return the fields of a change that the item does not have already."""
    fields: Mapping[str, Any] = item
    different = {
        name: value for name, value in change.items() if _comparable(name, fields.get(name)) != _comparable(name, value)
    }
    return cast("ItemChange", different)


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
    fields = (cast("item_models.MetricsFields | None", item.get("metricsFields")) for item in items)
    return {each["metricsSetId"] for each in fields if each}


def has_load(item: WorkItem | ItemChange) -> bool:
    """Return whether an item plans or records a load."""
    sets: list[Any] = [*_list_of(item, "exerciseSets"), *_list_of(item, "customerSets")]
    for entry in _list_of(item, "circuitExercises"):
        sets += entry["sets"]
    return any(each.get("load") is not None for each in sets)


async def fix_load_unit(
    ctx: Context, changed: Sequence[WorkItem | ItemChange], client_id: ObjectId | None = None
) -> None:
    """Fix the company's unit of load if any of the items to be stored has a load.

    `client_id`: of items on a client's calendar; None for programs and templates. Raises Conflict if the unit has
    changed since the request began.
    """
    if not any(has_load(item) for item in changed):
        return
    await account.lock_load_unit(ctx, again=client_id is None)
    if client_id is not None:
        await customers.lock_and_mark_figures(ctx, client_id)


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
    fields["mediaCount"] = references.media_counts.get(item["_id"], 0)
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
            {
                **entry,
                "exercise": references.exercises[entry["exerciseId"]],
                "sets": _present_sets(entry["sets"], entry["exerciseId"], references, load_unit, date),
                "plannedSetsTotal": len(entry["sets"]) * item["rounds"],
            }
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
    return auth.areas_of(reader).allows(area=LOG_AREAS.get(item["type"]))


def require_visible_log(reader: Principal, item: WorkItem) -> None:
    """Raise Forbidden if `reader` may not see the answers or values of an item, and would replace them."""
    if not may_see_log(reader, item):
        auth.require_permission(reader, LOG_AREAS[item["type"]].VIEW)


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


def _present_sets(
    sets: Sequence[PlannedSet], exercise_id: ObjectId, references: References, load_unit: str, date: str | None
) -> list[PlannedSet]:
    if (loads := references.training_maxes.get(exercise_id)) is None:
        return [present_set(planned, load_unit) for planned in sets]
    maximum, body_weight = load_of(loads), 0.0
    if loads["trainingMax"] is None and references.exercises[exercise_id].get("loadType") == ADDED:
        known = None if date is None else references.body_weights.get(date)
        maximum, body_weight = (None, 0.0) if known is None else (maximum, known)
    return [present_set(planned, load_unit, maximum, body_weight) for planned in sets]


def _empty_log(item_type: str) -> dict[str, list[Any]]:
    return {name: [] for name in LOGGED_FIELDS.get(item_type, ())}


def _plan_of_done(details: item_models.ItemInput | WorkItem) -> dict[str, list[PlannedSet]]:
    """Return the planned sets of a copy of an item that was imported without any: what was done in it."""
    done = _list_of(details, "customerSets") if details["type"] == "EXERCISE" else []
    return {} if details.get("exerciseSets") or not done else {"exerciseSets": plan_of_done(done)}


def _with_derived_fields(fields: Mapping[str, Any]) -> WorkItem:
    return cast("WorkItem", {**fields, **derive_fields(cast("WorkItem", fields))})


def _list_of(item: WorkItem | ItemChange, name: str) -> list[Any]:
    return cast("list[Any]", item.get(name) or [])


# --- The library documents that items refer to: required to exist on write, looked up on read -------------------------


Details = TypeVar("Details", item_models.ItemInput, ItemChange)


class PercentBase(NamedTuple):
    """What percentages of an exercise refer to, with the body weight that it includes: 0 if it includes none."""

    maximum: float
    body_weight: float

    def load_of(self, percent: float) -> float:
        """Return the load of a percentage, not rounded: what is added, where the body weight is included."""
        return max(self.maximum * percent / 100 - self.body_weight, 0)


async def resolve(ctx: Context, details: Details, previous: WorkItem | None = None) -> tuple[Details, References]:
    """Return what a coach sent of an item with its form copied into it, and the other documents it refers to.

    A form is copied as it is now, so that later changes do not affect scheduled items. Raises NotFound if a document
    does not exist; those that `previous` already referred to may have been deleted since.
    """
    if (form := details.get("form")) is not None:
        form_id = form.get("formId")
        library_forms = {form_id: await forms.get(ctx, form_id)} if form_id is not None else {}
        details = {**details, "form": copy_form(form, library_forms)}
    known: Sequence[WorkItem] = [previous] if previous else []
    new_exercises = exercise_ids([details]) - exercise_ids(known)
    new_sets = metric_set_ids([details]) - metric_set_ids(known)
    found_sets: dict[ObjectId, MetricSet] = {set_id: await metric_sets.get(ctx, set_id) for set_id in new_sets}
    return details, References(await exercises.require(ctx, new_exercises), found_sets)


async def load_references(
    ctx: Context,
    items: Sequence[WorkItem],
    customer_id: ObjectId | None = None,
    known: Mapping[ObjectId, ExerciseName] | None = None,
    dates: Collection[str | None] = (),
) -> References:
    """Return what stored items refer to: documents of the libraries, deleted ones included, and what is the client's.

    `customer_id` is the client whose items they are; None for items of a program or template. `known`: their exercises,
    if they have been read. `dates`: those of their blocks.
    """
    percents = {
        exercise_id
        for item in items
        for exercise_id, planned in planned_sets(item)
        if planned.get("loadPercent") is not None
    }
    names, sets, maxes, timezone, media_counts = await gather_reads(
        ctx,
        load_exercises(ctx, items if known is None else []),
        metric_sets.get_by_id(ctx, metric_set_ids(items)),
        training_maxes.load_reference_loads(ctx, customer_id, percents),
        _load_timezone(ctx, items, customer_id),
        set_media.count_by_item(ctx, customer_id, [item["_id"] for item in items]),
    )
    names = names if known is None else known
    added = any(names[each].get("loadType") == ADDED for each, loads in maxes.items() if loads["trainingMax"] is None)
    weights: dict[str, float] = {}
    if customer_id is not None and added:
        # On the dates of blocks that are planned; after today at least what is known today.
        days, today = {day for day in dates if day is not None}, str(ctx.caller.today())
        weighed = await body_weights.find_on_dates(ctx, customer_id, {*days, today}, ctx.caller.company.load_unit)
        weights = {day: weighed[today] for day in days if day > today and today in weighed} | weighed
    return References(names, sets, maxes, weights, timezone, media_counts)


async def load_exercises(ctx: Context, items: Iterable[WorkItem]) -> dict[ObjectId, ExerciseName]:
    """Return the exercises that items plan, or that were done or chosen in their place, deleted ones included."""
    return await exercises.get_names(ctx, {exercise_id for item in items for exercise_id in item["exerciseIds"]})


async def load_percent_bases(
    ctx: Context, customer_id: ObjectId, exercise_ids: Iterable[ObjectId]
) -> dict[ObjectId, PercentBase]:
    """Return what percentages of exercises refer to today; exercises without it are left out."""
    loads = await training_maxes.load_reference_loads(ctx, customer_id, exercise_ids)
    names, today = await exercises.get_names(ctx, loads), str(ctx.caller.today())
    whole = {each for each in loads if loads[each]["trainingMax"] is None and names[each].get("loadType") == ADDED}
    weights = await body_weights.find_on_dates(ctx, customer_id, [today] if whole else [], ctx.caller.company.load_unit)
    bases: dict[ObjectId, PercentBase] = {}
    for each, of_exercise in loads.items():
        maximum, body_weight = load_of(of_exercise), weights.get(today) if each in whole else 0
        if maximum is not None and body_weight is not None:
            bases[each] = PercentBase(maximum, body_weight)
    return bases


async def _load_timezone(ctx: Context, items: Iterable[WorkItem], customer_id: ObjectId | None) -> str | None:
    """Return the time zone of the client, if the time of a reminder depends on it."""
    times = [item["reminderFields"]["scheduledTime"] for item in items if item["type"] == "REMINDER"]
    has_instant = any(datetime.fromisoformat(time).tzinfo is not None for time in times if len(time) != len("HH:MM"))
    return await bulk.get_timezone(ctx, customer_id) if has_instant and customer_id is not None else None


def copy_form(
    form: item_models.ItemForm | item_models.ItemFormInput, library_forms: Mapping[ObjectId, Form]
) -> item_models.ItemForm:
    """Return the form of an item: a copy of one of the library, given by identifier, or one made for this item."""
    if (form_id := form.get("formId")) is not None:
        library_form = library_forms[form_id]
        return {"formId": form_id, "name": library_form["name"], "questions": library_form["questions"]}
    return {"formId": None, "name": form["name"], "questions": forms.assign_question_ids(form["questions"])}


# --- New items from what coaches send, many at once: each library is read once, and an error names the entry ----------


T = TypeVar("T")
# Where a reference is in the request, such as `items.2.exerciseId`, and the identifier.
Reference = tuple[str, ObjectId]


async def create_items(
    ctx: Context, details: Mapping[int, item_models.ItemInput], previous: Sequence[WorkItem] = ()
) -> list[WorkItem]:
    """Return new items, by their position in the field `items`, to be stored by the caller in place of `previous` ones.

    Raises as `resolve_items`; exercises and metric sets of `previous` items may have been deleted since.
    """
    entries = {f"items.{index}": item for index, item in details.items()}
    return [create_item(item) for item in await _resolve(ctx, entries, previous)]


async def resolve_items(
    ctx: Context, lists: Mapping[str, Sequence[item_models.ItemInput]]
) -> list[list[item_models.ItemInput]]:
    """Return lists of items, by the path of their field in the request, with their forms copied into them.

    Raises NotFound, naming the entry (`items.2.exerciseId`), if a document that an item refers to does not exist.
    """
    entries = {f"{path}.{index}": item for path, items in lists.items() for index, item in enumerate(items)}
    resolved = iter(await _resolve(ctx, entries))
    return [[next(resolved) for _ in items] for items in lists.values()]


async def _resolve(
    ctx: Context, entries: Mapping[str, item_models.ItemInput], previous: Sequence[WorkItem] = ()
) -> list[item_models.ItemInput]:
    known = exercise_ids(previous) | metric_set_ids(previous)
    of_exercises, of_sets, of_forms = list[Reference](), list[Reference](), list[Reference]()
    for path, item in entries.items():
        if exercise_id := item.get("exerciseId"):
            of_exercises.append((f"{path}.exerciseId", exercise_id))
        for index, entry in enumerate(item.get("circuitExercises", ())):
            of_exercises.append((f"{path}.circuitExercises.{index}.exerciseId", entry["exerciseId"]))
        if fields := item.get("metricsFields"):
            of_sets.append((f"{path}.metricsFields.metricsSetId", fields["metricsSetId"]))
        if (form := item.get("form")) is not None and (form_id := form.get("formId")):
            of_forms.append((f"{path}.form.formId", form_id))
    new_ids = {exercise_id for _, exercise_id in of_exercises} - known
    usable = await exercises.get_names(ctx, new_ids, only_usable=True)
    for path, exercise_id in of_exercises:
        if exercise_id in new_ids and exercise_id not in usable:
            raise _named(NotFound("exercise"), path)
    await _read_each(ctx, [each for each in of_sets if each[1] not in known], metric_sets.get)
    library_forms = await _read_each(ctx, of_forms, forms.get)
    forms_of = [(item, item.get("form")) for item in entries.values()]
    return [item if form is None else {**item, "form": copy_form(form, library_forms)} for item, form in forms_of]


async def _read_each(
    ctx: Context, references: Sequence[Reference], read: Callable[[Context, ObjectId], Awaitable[T]]
) -> dict[ObjectId, T]:
    documents: dict[ObjectId, T] = {}
    for path, identifier in references:
        if identifier not in documents:
            try:
                documents[identifier] = await read(ctx, identifier)
            except NotFound as error:
                raise _named(error, path) from None
    return documents


def _named(error: NotFound, path: str) -> NotFound:
    return NotFound(error.details["resource"], f"{path}: {error.message}", field=path)
