"""A client's own workout as rows, an exercise with equal sets in each: in its form, and to repeat past ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any, Literal, TypedDict, cast

from coaching_service.core.database.context import Context
from coaching_service.core.errors import FieldError, InvalidFields
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Integer, Number, Text, read_clock
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import Exercise
from coaching_service.people.account import convert_entered_load
from coaching_service.progress import own_today
from coaching_service.training.workouts.blocks.load_conversion import show_loads
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.items.descriptions import write_seconds
from coaching_service.training.workouts.items.models import NEW_WORKOUT_ITEM, ItemInput, WorkItem
from coaching_service.training.workouts.sets import MAX_LOAD, MAX_METERS, MAX_REPS, MAX_SECONDS, MAX_SETS, SetType
from coaching_service.web.views.workout.editing import set_type_of

Measure = Literal["reps", "time", "distance"]
MEASURES: tuple[tuple[Measure, str], ...] = (("reps", "Reps"), ("time", "Time"), ("distance", "Metres"))
_LATEST = 30  # workouts from which exercises and their sets are proposed
_MAX_AMOUNT: Mapping[Measure, int] = {"reps": MAX_REPS, "time": MAX_SECONDS, "distance": MAX_METERS}
_PROPOSED: Mapping[str, tuple[str, Measure, str]] = {"reps": ("3", "reps", "8"), "time": ("3", "time", "30")}
_CARDIO: tuple[str, Measure, str] = ("1", "time", "20:00")


class OwnRow(TypedDict):
    """An exercise in the form: equal sets, of whose `amount` the `measure` says what it is. `name` is shown again."""

    exerciseId: ObjectId
    name: Annotated[str, Text(max_length=500, allow_blank=True), Default("")]
    sets: Annotated[int, Integer(minimum=1, maximum=MAX_SETS)]
    measure: Annotated[Measure, Default("reps")]
    amount: Annotated[str, Text(max_length=20, allow_blank=True), Default("")]
    load: Annotated[float | None, Number(minimum=0, maximum=MAX_LOAD)]


class ShownRow(TypedDict):
    """A row with the texts in its fields."""

    exerciseId: str
    name: str
    sets: str
    measure: Measure
    amount: str
    load: str


async def list_latest(ctx: Context) -> list[Block]:
    """Return the latest workouts that the caller, a client, has done, with loads in their unit."""
    latest = await own_today.list_latest_done(ctx, _LATEST)
    return show_loads(latest, ctx, ctx.caller.load_unit)


async def to_rows(ctx: Context, items: Iterable[WorkItem]) -> list[ShownRow]:
    """Return the exercises of a workout as rows, as they were done, or else are planned; loads as they are."""
    parts = [part for item in items for part in _parts_of(item)]
    names = await exercises.get_usable_names(ctx, [exercise_id for exercise_id, _ in parts])
    return [
        {**row, "name": names[exercise_id]["name"]}
        for exercise_id, values in parts
        if exercise_id in names
        for row in _group(exercise_id, values)
    ]


def last_plans(latest: Sequence[Block]) -> dict[ObjectId, ShownRow]:
    """Return what a client did of each exercise in the latest workout with it, as one row."""
    plans: dict[ObjectId, ShownRow] = {}
    for block in latest:
        for exercise_id, values in [part for item in block["items"] for part in _parts_of(item)]:
            if rows := _group(exercise_id, values):
                plans.setdefault(exercise_id, {**rows[0], "sets": str(len(values))})
    return plans


def propose(exercise: Exercise, last: ShownRow | None) -> Mapping[str, str]:
    """Return the fields to begin a row of an exercise with: those of the last time, else usual ones."""
    if last is not None:
        return {"sets": last["sets"], "measure": last["measure"], "amount": last["amount"], "load": last["load"]}
    sets, measure, amount = _CARDIO if exercise["type"] == "cardio" else _PROPOSED[set_type_of(exercise)]
    return {"sets": sets, "measure": measure, "amount": amount, "load": ""}


def to_items(ctx: Context, rows: Sequence[OwnRow]) -> list[ItemInput]:
    """Return the exercises that rows describe; rows of one exercise after each other are one. Raises InvalidFields."""
    errors: list[FieldError] = []
    sets = [_planned_sets(ctx, row, f"rows.{at}.amount", errors) for at, row in enumerate(rows)]
    if errors:
        raise InvalidFields(errors)
    items = []
    for exercise_id, group in groupby(zip(rows, sets, strict=True), key=lambda each: each[0]["exerciseId"]):
        planned = [each for _, of_row in group for each in of_row]
        items.append({"type": "EXERCISE", "exerciseId": str(exercise_id), "exerciseSets": planned[:MAX_SETS]})
    return [cast("ItemInput", NEW_WORKOUT_ITEM.load(item)) for item in items]


def _planned_sets(ctx: Context, row: OwnRow, path: str, errors: list[FieldError]) -> list[dict[str, Any]]:
    measure, text = row["measure"], row["amount"].strip()
    amount = _read_amount(measure, text) if text else None
    if text and (amount is None or not 0 <= amount <= _MAX_AMOUNT[measure]):
        example = {"reps": "a whole number", "time": "a time such as 27:00, or seconds", "distance": "metres"}[measure]
        errors.append({"field": path, "code": "INVALID", "message": f"must be {example}"})
    load = row["load"]
    if load is not None:
        load = convert_entered_load(load, ctx.caller.load_unit, ctx.caller.company.load_unit)
    fields: dict[str, Any] = {
        "reps": {"minPlannedReps": amount, "maxPlannedReps": amount},
        "time": {"minPlannedSeconds": amount, "maxPlannedSeconds": amount},
        "distance": {"plannedMeters": amount},
    }[measure]
    set_type: SetType = measure if load is None else f"{measure}_load"  # type: ignore[assignment]  # each is a type
    planned = {"type": set_type, **fields} | ({} if load is None else {"load": load})
    return [planned] * row["sets"]


def _read_amount(measure: Measure, text: str) -> float | None:
    if measure == "time" and (seconds := read_clock(text)) is not None:
        return seconds
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        return None
    if measure == "reps":
        return int(value) if value.is_integer() else None
    return value


_Values = tuple[Measure, str, str]


def _parts_of(item: WorkItem) -> Iterator[tuple[ObjectId, list[_Values]]]:
    """Yield the exercises of an item with the values of each set: as done, or as planned if nothing is."""
    if item["type"] == "EXERCISE":
        swap = item.get("swappedFor")
        yield (
            swap["exerciseId"] if swap else item["exerciseId"],
            [_done(each) for each in item.get("customerSets", ()) if each["isCompleted"]]
            or [_planned(each) for each in item["exerciseSets"]],
        )
    elif item["type"] == "CIRCUIT":
        for entry in item["circuitExercises"]:
            done = [each for each in item.get("customerSets", ()) if each["exerciseId"] == entry["exerciseId"]]
            yield (
                entry["exerciseId"],
                [_done(each) for each in done if each["isCompleted"]]
                or [_planned(each) for each in entry["sets"]] * item["rounds"],
            )


def _done(done: Mapping[str, Any]) -> _Values:
    return _values(done["reps"], done["seconds"], done["meters"], done["load"])


def _planned(planned: Mapping[str, Any]) -> _Values:
    reps, seconds = (
        planned.get(f"min{name}") if planned.get(f"min{name}") is not None else planned.get(f"max{name}")
        for name in ("PlannedReps", "PlannedSeconds")
    )
    return _values(reps, seconds, planned.get("plannedMeters"), planned.get("load"))


def _values(reps: float | None, seconds: float | None, meters: float | None, load: float | None) -> _Values:
    shown_load = _plain(load or None)
    if reps is None and meters is not None:
        return "distance", _plain(meters), shown_load
    if reps is None and seconds is not None:
        return "time", write_seconds(seconds), shown_load
    return "reps", _plain(reps), shown_load


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


def _group(exercise_id: ObjectId, values: Sequence[_Values]) -> list[ShownRow]:
    return [
        {
            "exerciseId": str(exercise_id),
            "name": "",
            "sets": str(len(list(group))),
            "measure": measure,
            "amount": amount,
            "load": load,
        }
        for (measure, amount, load), group in groupby(values)
    ]
