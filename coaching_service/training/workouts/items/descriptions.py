"""Short text descriptions of workout items and their planned sets, for calendars, programs and workout pages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from itertools import groupby
from typing import Any, Literal, TypedDict, cast

import orjson
from marshmallow import ValidationError

from coaching_service.core.errors import invalid_field
from coaching_service.core.fields import checks_of, take
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Integer, Number, field_errors
from coaching_service.training.workouts.items import models as item_models
from coaching_service.training.workouts.items.models import WorkItem
from coaching_service.training.workouts.items.service import DERIVED_FIELDS, MAX_ITEMS, derive_fields, summarize_block
from coaching_service.training.workouts.sets import PerformedSet, PlannedSet, PlannedSets

EFFORT_FIELDS: tuple[tuple[str, Literal["rpe", "rir"]], ...] = (("RPE", "rpe"), ("RIR", "rir"))


_FIRST_IN_MINUTES = 100  # seconds
_KINDS = {"drop": "drop set", "failure": "to failure"}


class ItemDescription(TypedDict):
    """A workout item in words: `lines` are its planned sets or other details."""

    _id: ObjectId
    type: str
    title: str
    lines: list[str]
    isCompleted: bool


class ListedItem(ItemDescription):
    """An item of a workout; `label` is its place in a superset, such as A1, `bracket` the classes of its bracket."""

    label: str
    bracket: str


def describe_items(items: Sequence[WorkItem], unit: str) -> list[ListedItem]:
    """Describe the items of a workout in their order; loads are in `unit`."""
    labels, brackets = label_supersets(items)
    listed = []
    for item in items:
        described, label = describe_item(item, unit), labels[item["_id"]]
        lines = described["lines"][:-1] if label else described["lines"]  # without the superset
        listed.append(ListedItem(**{**described, "lines": lines, "label": label, "bracket": brackets[item["_id"]]}))
    return listed


def label_supersets(items: Sequence[WorkItem]) -> tuple[dict[ObjectId, str], dict[ObjectId, str]]:
    """Return the label of each item in its superset, such as A1, and the classes of its part of a bracket.

    Both are empty outside of supersets.
    """
    supersets = [item["supersetId"] or "" if item["type"] == "EXERCISE" else "" for item in items]
    labels: dict[ObjectId, str] = {}
    brackets: dict[ObjectId, str] = {}
    for at, (item, superset) in enumerate(zip(items, supersets, strict=True)):
        labels[item["_id"]] = f"{superset}{supersets[: at + 1].count(superset)}" if superset else ""
        starts, ends = supersets[at - 1 : at] != [superset], supersets[at + 1 : at + 2] != [superset]
        parts = ["in-superset", "starts" if starts else "", "ends" if ends else "continued"] if superset else []
        brackets[item["_id"]] = " ".join(part for part in parts if part)
    return labels, brackets


def describe_item(item: WorkItem, unit: str) -> ItemDescription:
    """Describe an item as returned by the workout service; loads are in `unit`."""
    title, lines = "", list[str]()
    if item["type"] == "EXERCISE":
        superset = [f"Superset {item['supersetId']}"] if item["supersetId"] else []
        title, lines = item["exercise"]["name"], [*describe_sets(item["exerciseSets"], unit), *superset]
    elif item["type"] == "CIRCUIT":
        rounds = f", {item['rounds']} round{'' if item['rounds'] == 1 else 's'}" if item["rounds"] else ""
        title = item["circuitName"] + rounds
        sets = [(each["exercise"]["name"], describe_sets(each["sets"], unit)) for each in item["circuitExercises"]]
        lines = [f"{name}: {'; '.join(described)}" for name, described in sets]
    elif item["type"] == "TASK":
        title, lines = item["taskFields"]["title"], [item["taskFields"]["description"] or ""]
    elif item["type"] == "FORM":
        title = f"Form: {item['form']['name']}"
    elif item["type"] == "METRICS":
        metrics = item["metricsFields"]
        title, lines = f"Measure: {metrics['name']}", [", ".join(metric["name"] for metric in metrics["metrics"])]
    else:
        title, lines = item["reminderFields"]["message"], [item["reminderFields"]["scheduledTime"]]
        if len(lines[0]) > len("08:30"):  # an ISO date-time, as `09:00 (Thu 19 Nov 2026, 08:00 UTC)`
            sent = datetime.fromisoformat(lines[0])
            exactly = f"{sent:%a} {sent.day} {sent:%b %Y, %H:%M %Z}".rstrip()
            lines = [f"{item['reminderFields']['time']} ({exactly})"]
    known = {"_id": item["_id"], "type": item["type"], "isCompleted": item["isCompleted"]}
    return cast("ItemDescription", {**known, "title": title, "lines": lines})


def describe_sets(sets: Sequence[PlannedSet], unit: str) -> list[str]:
    """Describe planned sets, equal consecutive sets on one line with their count; loads are in `unit`."""
    lines = []
    for text, equal_sets in groupby(describe_set(planned, unit) for planned in sets):
        count = len(list(equal_sets))
        lines.append(f"{count} × {text}" if text else f"{count} {'set' if count == 1 else 'sets'}")
    return lines


def describe_set(planned: PlannedSet, unit: str) -> str:
    """Describe a planned set, such as `8 x 60 kg, RPE 8`; empty if it plans no value."""
    return ", ".join(part for part in (" × ".join(describe_amounts(planned, unit)), *describe_details(planned)) if part)


def describe_done(done: PerformedSet, unit: str) -> str:
    """Describe how much was done in a set, such as `8 x 60 kg` or `27:00`; empty if it has no value."""
    parts = (
        format_number(done["reps"]),
        format_seconds(done["seconds"]),
        format_number(done["meters"], "m"),
        format_number(done["load"] or None, unit),
    )
    return " × ".join(part for part in parts if part)


def describe_amounts(planned: PlannedSet, unit: str) -> list[str]:
    """Describe how much a planned set is: its repetitions, time, distance and load, each if it is planned."""
    minimum, maximum = planned.get("minPlannedReps"), planned.get("maxPlannedReps")
    reps = _format_range(minimum, maximum, "")
    if planned.get("isAmrap"):  # such as `AMRAP, at least 8`
        lowest = format_number(maximum if minimum is None else minimum)
        reps = f"AMRAP, at least {lowest}" if lowest else "AMRAP"
    shortest, longest = planned.get("minPlannedSeconds"), planned.get("maxPlannedSeconds")
    bounds = [each for each in dict.fromkeys((shortest, longest)) if each is not None]
    time = _format_range(shortest, longest, "\N{NO-BREAK SPACE}s")
    if bounds and bounds[-1] >= _FIRST_IN_MINUTES:
        time = "–".join(map(format_clock, bounds))
    load, percent = format_number(planned.get("load"), unit), format_number(planned.get("loadPercent"), "%")
    if percent:  # such as `75 % (105 kg)`, or `75 %` if the load is not known
        load = f"{percent} ({load})" if load else percent
    return [part for part in (reps, time, format_number(planned.get("plannedMeters"), "m"), load) if part]


def describe_details(planned: PlannedSet) -> list[str]:
    """Describe how a planned set is done: effort, tempo, rest, and what kind of set it is, each if it is planned."""
    parts = [
        *(f"{name} {format_number(planned[key])}" for name, key in EFFORT_FIELDS if planned[key] is not None),
        f"tempo {planned['tempo']}" if planned["tempo"] else "",
        f"rest {format_seconds(planned['rest'])}" if planned["rest"] else "",
        "per side" if planned.get("perSide") else "",
        "warm-up" if planned["isWarmup"] else "",
        _KINDS.get(planned.get("setKind", "normal"), ""),
    ]
    return [part for part in parts if part]


def format_number(value: float | None, unit: str = "") -> str:
    """Format a number with at most three decimals, thousands separators and its unit, on one line; empty for None."""
    if value is None:
        return ""
    text = f"{value:,.3f}".rstrip("0").rstrip(".")
    return f"{text}\N{NO-BREAK SPACE}{unit}" if unit else text


def format_seconds(value: float | None) -> str:
    """Format a time: `45 s` up to 99 s, then `27:00` or `1:05:00`; empty for None."""
    if value is None:
        return ""
    return format_clock(value) if round(value, 3) >= _FIRST_IN_MINUTES else format_number(value, "s")


def write_seconds(value: float | None) -> str:
    """Return a time as a person types it into a field: `45`, `27:00`; empty for None."""
    return format_seconds(value).removesuffix("\N{NO-BREAK SPACE}s")


def format_clock(value: float) -> str:
    """Format a time in minutes and seconds, such as `0:45` or `27:00`, with hours if there are any."""
    minutes, rest = divmod(round(value * 1000), 60_000)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{rest // 1000:02}" + f"{rest % 1000 / 1000:.3f}"[1:].rstrip("0").rstrip(".")
    return f"{hours}:{minutes:02}:{seconds}" if hours else f"{minutes}:{seconds}"


def _format_range(minimum: float | None, maximum: float | None, unit: str) -> str:
    bounds = [format_number(bound) for bound in dict.fromkeys((minimum, maximum)) if bound is not None]
    return "–".join(bounds) + unit if bounds else ""


# --- Items of an import: validated like items of a request, and with what is derived from them ------------------------


# What a stored item does not have, or what is computed again.
COMPUTED_ITEM_FIELDS = tuple(f"items.{name}" for name in (*DERIVED_FIELDS, "order", "version", "mediaCount"))
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
_ADDED_ON_READ = ("exercise", "lastTime", "order", "version", "mediaCount")
_ADDED_LATER = ("isAmrap", "perSide", "setKind", "loadPercent")  # absent in older sets
_PLANNED_SETS = PlannedSets(required=True)
_SCHEDULED_TIME = item_models.ScheduledTime()
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
                **take(item_models.PlannedCircuitExercise, entry),
                "sets": _validate_sets(entry["sets"], f"{path}.circuitExercises.{number}.sets"),
            }
            for number, entry in enumerate(item["circuitExercises"])
        ]
        if not item["circuitExercises"] or not 1 <= item["rounds"] <= 1000:
            raise invalid_field(path, "must have exercises and 1 to 1000 rounds")
    elif item["type"] == "REMINDER":
        item["reminderFields"] = take(item_models.PlannedReminder, item["reminderFields"])
        try:
            _SCHEDULED_TIME.deserialize(item["reminderFields"]["scheduledTime"])
        except ValidationError as error:
            raise invalid_field(f"{path}.reminderFields.scheduledTime", str(error.messages[0])) from None
    elif item["type"] == "METRICS":
        item["metricsFields"] = take(item_models.PlannedMetrics, item["metricsFields"])
    for number, done in enumerate(item.get("customerSets", ())):
        of_set = f"{path}.customerSets.{number}"
        if item["type"] == "CIRCUIT" and done["exerciseId"] is None:
            raise invalid_field(f"{of_set}.exerciseId", "is required", code="REQUIRED")
        for name, maximum in _MAXIMA.items():
            if done[name] is not None and not 0 <= done[name] <= maximum:
                raise invalid_field(f"{of_set}.{name}", f"must be from 0 to {maximum}", code="OUT_OF_RANGE")
    return cast("WorkItem", {**item, **derive_fields(cast("WorkItem", item))})


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
