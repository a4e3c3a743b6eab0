"""What a client recorded, in words and next to what was planned; and values that have to be confirmed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from math import ceil
from typing import Annotated, Any, TypedDict

from coaching_service.core.database.context import Context
from coaching_service.core.errors import InvalidFields, invalid_field
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import CalendarDate, Number, SearchedDate
from coaching_service.people.account import LOAD_UNITS, convert_stored_load
from coaching_service.people.activity import models
from coaching_service.progress.metrics.service import find_far_values
from coaching_service.progress.personal_records import PersonalRecord
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.items import descriptions
from coaching_service.training.workouts.items import models as item_models
from coaching_service.training.workouts.items import service as items
from coaching_service.training.workouts.reports.exercises import LiftResult
from coaching_service.training.workouts.sets import CustomerSet, PlannedSet, RecordKey, unit_of
from coaching_service.web import formatting

_NOT_COMPLETED = "not completed"
# What a set plans of each amount: the lowest and the highest value.
PLANNED_FIELDS: Mapping[str, Sequence[str]] = {
    "reps": ("minPlannedReps", "maxPlannedReps"),
    "seconds": ("minPlannedSeconds", "maxPlannedSeconds"),
    "meters": ("plannedMeters",),
    "load": ("load",),
}


@dataclass(frozen=True)
class SetPair:
    """A planned set, the set that was logged of it, or both; in a circuit with its round and its exercise's place.

    The place of an exercise that was removed from the circuit is the last. `exercise_id` is None for a set of the
    exercise that its item plans.
    """

    label: str
    index: int
    planned: PlannedSet | None
    logged: CustomerSet | None
    exercise_id: ObjectId | None = None
    round: int = 0
    place: int = 0


def describe_results(item: item_models.WorkItem, unit: str) -> dict[str, Any] | None:
    """Describe what was recorded for an item, or return None if nothing was; loads are in `unit`."""
    if not items.is_recorded(item):
        return None
    swap, answers = item.get("swappedFor"), list[tuple[str, str]]()
    pairs: Iterable[SetPair] = ()
    if item["type"] == "FORM" and item["answers"] is not None:
        given = {answer["questionId"]: answer["value"] for answer in item["answers"]}
        answers = [  # pictures are shown with those of the item
            (each["label"], describe_answer(given.get(each["_id"]), "of 10" if each["type"] == "rating" else ""))
            for each in item["form"]["questions"]
            if each["type"] != "photo"
        ]
    elif item["type"] == "METRICS":
        metrics = {metric["_id"]: metric for metric in item["metricsFields"]["metrics"]}
        for recorded in item["values"] or ():
            metric = metrics.get(recorded["metricId"])
            value = descriptions.format_number(recorded["value"], metric["metricUnit"]["shortName"] if metric else "")
            answers.append((metric["name"] if metric else "Removed metric", value))
    elif (item["type"] == "EXERCISE" or item["type"] == "CIRCUIT") and item["customerSets"]:
        # Of a circuit only the logged sets, by round and order of its exercises.
        logged = [each for each in pair_sets(item) if each.logged or item["type"] == "EXERCISE"]
        pairs = sorted(logged, key=lambda each: (each.round, each.place, each.index))
    return {
        "completedAt": item["completedAt"],
        "comment": item["comment"],
        "pain": item.get("pain"),
        "skipped": _describe_choice("", item.get("skipped")),
        "swappedFor": _describe_choice(swap["exercise"]["name"], swap) if swap else None,
        "sets": [describe_pair(each, unit) for each in pairs],
        "answers": answers,
    }


def _describe_choice(name: str, choice: item_models.Skip | item_models.Swap | None) -> str | None:
    """Describe why a client skipped an item, or what the client did in its place; None if the client did not."""
    if choice is None:
        return None
    return ": ".join(filter(None, (name, choice["reason"]))) or "no reason given"


def pair_sets(item: item_models.WorkItem) -> Iterator[SetPair]:
    """Yield the planned and the logged sets of an exercise or circuit; other items have none.

    Those of an exercise are by index; a second one that was logged was not planned. The label of a set that was logged
    of the planned exercise, though another was done, has its name. Those of a circuit are by round and order of the
    exercises, then the logged sets that are no longer planned.
    """
    if item["type"] == "EXERCISE":
        by_index = {each["index"]: each for each in item["exerciseSets"]}
        done_of: dict[int, list[CustomerSet | None]] = {}
        for each in item["customerSets"]:
            done_of.setdefault(each["index"], []).append(each)
        for index in sorted(by_index.keys() | done_of.keys()):
            for position, done in enumerate(done_of.get(index, [None])):
                exercise_id = done["exerciseId"] if done else None
                label = f"{index}: {item['exercise']['name']}" if exercise_id == item["exerciseId"] else str(index)
                yield SetPair(label, index, by_index.get(index) if position == 0 else None, done, exercise_id)
    if item["type"] != "CIRCUIT":
        return
    entries = item["circuitExercises"]
    places: dict[ObjectId | None, int] = {entry["exerciseId"]: place for place, entry in enumerate(entries)}
    logged = {(each["exerciseId"], each["round"] or 1, each["index"]): each for each in item["customerSets"]}
    planned: dict[tuple[ObjectId | None, int, int], PlannedSet] = {
        (entry["exerciseId"], number, each["index"]): each
        for number in range(1, item["rounds"] + 1)
        for entry in entries
        for each in entry["sets"]
    }
    for key in dict.fromkeys([*planned, *logged]):
        exercise_id, number, index = key
        place = places.get(exercise_id, len(entries))
        entry = entries[place] if place < len(entries) else None
        label = f"Round {number}: {entry['exercise']['name'] if entry else 'removed exercise'}"
        if entry is None or len(entry["sets"]) != 1:
            label += f", set {index}"
        yield SetPair(label, index, planned.get(key), logged.get(key), exercise_id, number, place)


def describe_pair(pair: SetPair, unit: str) -> dict[str, Any]:
    """Describe what was planned and done in a set; loads are in `unit`."""
    planned, logged = pair.planned, pair.logged
    efforts = [
        f"{name} {descriptions.format_number(logged[key])}"
        for name, key in (descriptions.EFFORT_FIELDS if logged else ())
        if logged and logged[key] is not None
    ]
    return {
        "label": pair.label,
        "planned": descriptions.describe_set(planned, unit) if planned else "",
        "done": describe_logged_set(logged, unit) if logged else "",
        "effort": ", ".join([*(describe_kind(logged) if logged else ()), *efforts]),
        "isPlanned": planned is not None,
        "isDone": bool(logged and logged["isCompleted"]),
    }


_KINDS = {"drop": "drop set", "failure": "to failure"}


def describe_logged_set(logged: CustomerSet, unit: str) -> str:
    """Describe a logged set, such as `8 x 60 kg` or, if it was not completed, `4 x 60 kg (not completed)`."""
    amounts = descriptions.describe_done(logged, unit)
    if logged["isCompleted"]:
        return amounts or "done"
    return f"{amounts} ({_NOT_COMPLETED})" if amounts else _NOT_COMPLETED


def describe_kind(logged: CustomerSet) -> list[str]:
    """Return what a logged set was, if it was not a normal one."""
    kind = logged.get("setKind", "normal")
    return [*(["warm-up"] if logged.get("isWarmup") else []), *([_KINDS[kind]] if kind in _KINDS else [])]


def describe_answer(value: Any, unit: str = "") -> str:
    """Describe the answer to a question: a text, a number, or a list of options."""
    if value in (None, "", []):
        return "–"
    if isinstance(value, list):
        return ", ".join(value)
    return value if isinstance(value, str) else descriptions.format_number(value, unit)


# --- A client's sets, records and results in an exercise, in words and in the unit that the client has chosen ---------


def show_records(ctx: Context, records: Sequence[PersonalRecord]) -> list[PersonalRecord]:
    """Return personal records, with loads in the client's unit."""
    unit = ctx.caller.load_unit
    return [
        {**each, "value": convert_stored_load(each["value"], each["unit"], unit), "unit": unit}
        if each["unit"] in LOAD_UNITS and each["unit"] != unit
        else each
        for each in records
    ]


def show_results(ctx: Context, results: Sequence[LiftResult]) -> list[LiftResult]:
    """Return what was done of an exercise in workouts, with its loads in the client's unit."""
    unit, shown_unit = ctx.caller.company.load_unit, ctx.caller.load_unit
    if unit == shown_unit:
        return list(results)
    return [
        {
            **result,
            "volumeLoad": convert_stored_load(result["volumeLoad"], unit, shown_unit),
            "bests": [
                {**best, "value": convert_stored_load(best["value"], unit, shown_unit)}
                if unit_of(best["kind"]) is None
                else best
                for best in result["bests"]
            ],
        }
        for result in results
    ]


_FASTEST_SHOWN = 3
_WITH_REPS = (models.HEAVIEST_LOAD, models.LEAST_ASSISTANCE)
# The types of values that say most about an exercise, the one to prefer first.
_MAIN_TYPES: tuple[models.RecordType, ...] = (
    models.ESTIMATED_ONE_REP_MAX,
    models.HEAVIEST_LOAD,
    models.LEAST_ASSISTANCE,
    models.MOST_REPS,
    models.FARTHEST_DISTANCE,
    models.LONGEST_TIME,
)

Point = tuple[str, float]


def describe_set(done: CustomerSet, unit: str) -> dict[str, Any]:
    """Describe a set that was logged, such as `8 x 60 kg`; loads are in `unit`."""
    effort = [
        *describe_kind(done),
        *([f"RPE {formatting.format_number(done['rpe'])}"] if done["rpe"] is not None else []),
        *([f"{formatting.format_number(done['rir'])} in reserve"] if done["rir"] is not None else []),
    ]
    amount = descriptions.describe_done(done, unit) or ("Done" if done["isCompleted"] else "Not done")
    if done["reps"] is not None and amount == descriptions.format_number(done["reps"]):
        amount = formatting.quantity(done["reps"], "rep")
    return {"amount": amount, "effort": ", ".join(effort), "isCompleted": done["isCompleted"]}


def describe_records(records: Iterable[PersonalRecord]) -> list[dict[str, Any]]:
    """Describe the best record of each type of one exercise; most reps only if no load was lifted.

    Of the fastest times over a distance, the latest three.
    """
    best = formatting.best_records(records)
    fastest = sorted(
        (each for each in best if each["type"] == models.FASTEST), key=lambda each: each["date"], reverse=True
    )
    left_out = [each["_id"] for each in fastest[_FASTEST_SHOWN:]]
    if any(each["type"] in _WITH_REPS for each in best):
        left_out += [each["_id"] for each in best if each["type"] == models.MOST_REPS]
    described = []
    for each in best:
        with_reps = each["type"] in _WITH_REPS and each["reps"]
        value = formatting.record_value(each) + (f" × {each['reps']}" if with_reps else "")
        if each["type"] == models.MOST_REPS:
            value = formatting.quantity(int(each["value"]), "rep")
        name = "Heaviest" if each["type"] == models.HEAVIEST_LOAD else formatting.record_name(each)
        if each["_id"] not in left_out:
            described.append({"name": name, "value": value, "date": each["date"]})
    return described


def best_points(results: Iterable[LiftResult], key: RecordKey) -> list[Point]:
    """Return the best value for a record of each workout that has one, by date."""
    return [
        (result["date"], best["value"])
        for result in results
        for best in result["bests"]
        if (best["kind"], best.get("meters")) == key
    ]


def main_points(results: Sequence[LiftResult]) -> tuple[models.RecordType, list[Point]]:
    """Return the type of value that says most about an exercise, with its points: none if it has no such values."""
    for record_type in _MAIN_TYPES:
        if points := best_points(results, RecordKey(record_type)):
            return record_type, points
    return models.MOST_REPS, []


# --- A session in words: how it felt, how long it took, and the personal records set in it ----------------------------


FEELINGS = ((1, "Bad"), (2, "Poor"), (3, "Okay"), (4, "Good"), (5, "Great"))
_LONGEST = 360  # minutes; sets that are further apart were not logged while training
_NAMES: dict[models.RecordType, str] = {
    models.HEAVIEST_LOAD: "heaviest set",
    models.ESTIMATED_ONE_REP_MAX: "best estimated one-rep max",
}


def describe_new_records(records: Sequence[PersonalRecord]) -> list[dict[str, Any]]:
    """Return the exercise of each record, and what was reached in words, such as `heaviest set: 100 kg for 5 reps`."""
    described = []
    for each in records:
        name = _NAMES.get(each["type"], formatting.record_name(each).lower())
        with_reps = each["reps"] and each["type"] in _WITH_REPS
        reps = f" for {formatting.quantity(each['reps'] or 0, 'rep')}" if with_reps else ""
        text = f"{name}: {formatting.record_value(each)}{reps}"
        if each["type"] == models.MOST_REPS:
            text = f"most reps in a set: {descriptions.format_number(each['value'])}"
        described.append({"exercise": each["exerciseName"], "text": text})
    return described


def measure_minutes(block: Block) -> int | None:
    """Return the minutes from the first to the last logged set; None with fewer than two, or if it is too long."""
    times: list[datetime] = [
        logged["loggedAt"]
        for item in block["items"]
        if item["type"] == "EXERCISE" or item["type"] == "CIRCUIT"
        for logged in item["customerSets"]
        if logged["isCompleted"] and "loggedAt" in logged
    ]
    if len(times) < 2:
        return None
    minutes = ceil((max(times) - min(times)).total_seconds() / 60)
    return minutes if 0 < minutes <= _LONGEST else None


# --- Measured values far from the last, which the user has to confirm; forms.py asks about loads --------------------


class Confirmation(TypedDict):
    """Whether the user has confirmed values, loads and amounts that are far from the last ones."""

    confirmed: Annotated[bool, Default(False)]


class ValueRow(TypedDict):
    """The value of a metric, if one was entered."""

    metricId: ObjectId
    value: Annotated[float | None, Number(minimum=-1e12)]


class ValuesForm(Confirmation):
    """The values of the metrics of an item."""

    values: Annotated[list[ValueRow], Default(list)]


class ValueDate(TypedDict):
    """The date of the value to delete."""

    date: Annotated[str, SearchedDate()]


async def require_confirmed_rows(ctx: Context, customer_id: ObjectId, block_id: ObjectId, form: ValuesForm) -> None:
    """Check the rows `values` of the log of an item, in a workout of a client, as `require_confirmed_values` does.

    Raises what it raises, and NotFound if the client has no such workout.
    """
    date = await workouts.get_date(ctx, workouts.ClientCalendar(customer_id), block_id)
    values = entered_values(form["values"])
    await require_confirmed_values(ctx, customer_id, str(date), values, confirmed=form["confirmed"])


def entered_values(rows: Iterable[ValueRow]) -> dict[str, tuple[ObjectId, float]]:
    """Return the metrics of the rows `values` with the values that were entered, by field."""
    return {
        f"values.{index}.value": (row["metricId"], row["value"])
        for index, row in enumerate(rows)
        if row["value"] is not None
    }


def given_values(form: ValuesForm) -> list[item_models.MetricValue]:
    """Return the values that were entered."""
    return [{"metricId": row["metricId"], "value": row["value"]} for row in form["values"] if row["value"] is not None]


async def require_confirmed_values(
    ctx: Context,
    customer_id: ObjectId,
    date: str,
    values: Mapping[str, tuple[ObjectId, float]],
    *,
    confirmed: bool,
) -> None:
    """Raise InvalidFields for the fields whose values are far from the last, unless the user has confirmed them.

    `values`: metrics with their new values, by field. The template shows `ui.confirm_values` then.
    """
    if confirmed:
        return
    far = await find_far_values(ctx, customer_id, date, dict(values.values()))
    errors = [
        (
            field,
            f"is far from the {'last' if last['date'] <= date else 'next'} value: "
            f"{formatting.format_number(last['value'])} on {formatting.format_date(last['date'])}",
        )
        for field, (metric_id, _) in values.items()
        if (last := far.get(metric_id))
    ]
    if errors:
        errors.append(("confirmed", "has to be ticked if the value is right"))
        raise InvalidFields([{"field": field, "code": "FAR_FROM_LAST", "message": text} for field, text in errors])


def require_past_date(field: str, date: str, today: date, *, or_tomorrow: bool = False) -> None:
    """Raise InvalidFields for `field` unless a date is from 1950 on and not after the client's `today`, or tomorrow."""
    last, word = (today + timedelta(days=1), "tomorrow") if or_tomorrow else (today, "today")
    if not CalendarDate.first <= date <= str(last):
        raise invalid_field(field, f"must be a date from {CalendarDate.first[:4]} on and not after {word}")
