"""What a change does to the plan of a client, and which of its loads and amounts are unusual."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from datetime import timedelta
from itertools import zip_longest
from typing import Any, Final, NamedTuple, TypeAlias

from coaching_service.core.changes import history
from coaching_service.core.changes.models import DocumentPatch
from coaching_service.core.database.context import Context
from coaching_service.core.fields import names_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import typed
from coaching_service.library.exercises import service as exercises
from coaching_service.people.account import convert_stored_load
from coaching_service.training import training_maxes
from coaching_service.training.workouts import store
from coaching_service.training.workouts.blocks.models import SESSION_FIELDS, PlannedBlock
from coaching_service.training.workouts.blocks.service import has_nothing_done
from coaching_service.training.workouts.items.models import PLANNED, WorkItem
from coaching_service.training.workouts.items.service import (
    RECORDED_FIELDS,
    PercentBase,
    is_recorded,
    load_percent_bases,
    planned_sets,
)

Workout = Mapping[str, Any]
# An item, None for those of one version only; an exercise; a unit; and whether the sets are warm-up sets.
_Place: TypeAlias = tuple[ObjectId | None, ObjectId, str, bool]
_PLANNED_FIELDS = ("date", *names_of(PlannedBlock), "position")


class LoadChange(NamedTuple):
    """A planned load of an exercise before and after a change.

    `unit` is `load`, in the company's unit, or `percent` of the training maximum.
    """

    exercise_id: ObjectId
    unit: str
    before: float
    after: float


class DayLoads(NamedTuple):
    """The planned loads of an exercise, of each set, on the date of a workout; `unit` as in LoadChange."""

    exercise_id: ObjectId
    unit: str
    date: str
    loads: list[float]


def is_plan_changed(before: Workout, after: Workout) -> bool:
    """Return whether two versions of a workout differ in what is planned; what was done of it does not count."""
    return _plan_of(before) != _plan_of(after)


def _plan_of(workout: Workout) -> list[object]:
    items: list[WorkItem] = workout["items"]
    planned = [[item["_id"], *(item.get(name) for name in names_of(PLANNED[item["type"]]))] for item in items]
    return [planned, *(workout.get(name) for name in _PLANNED_FIELDS)]


def is_done_work_changed(before: Workout, after: Workout | None) -> bool:
    """Return whether something done of a workout is changed, removed, or moved to another day."""
    if has_nothing_done(before):
        return False
    if after is None or before.get("date") != after.get("date"):
        return True
    items = {item["_id"]: item for item in after["items"]}
    recorded = [item for item in before["items"] if is_recorded(item)]
    return any(before.get(name) not in (None, "", after.get(name)) for name in SESSION_FIELDS) or any(
        item["_id"] not in items or any(item.get(name) != items[item["_id"]].get(name) for name in RECORDED_FIELDS)
        for item in recorded
    )


def list_load_changes(before: Workout, after: Workout) -> list[LoadChange]:
    """Return the planned loads that differ between two versions of a workout.

    The sets of an exercise of an item are compared in their order, warm-up sets with warm-up sets; one without a
    counterpart is compared with the highest load of the version before. A new item is compared with removed ones.
    """
    common = {item["_id"] for item in before["items"]} & {item["_id"] for item in after["items"]}
    old, new = _places_of(before, common), _places_of(after, common)
    changes: list[LoadChange] = []
    for key, loads in new.items():
        if not (known := old.get(key)):
            continue
        _, exercise_id, unit, _ = key
        for was, becomes in zip_longest(known, loads):
            if becomes is not None and (compared := max(known) if was is None else was) != becomes:
                changes.append(LoadChange(exercise_id, unit, compared, becomes))
    return changes


def list_moved_loads(before: Workout | None, after: Workout | None) -> tuple[list[DayLoads], list[DayLoads]]:
    """Return the planned loads of exercises that are removed from a workout, and those that are added to it.

    `before` or `after` is None where the workout does not exist. A workout that is moved keeps its loads.
    """
    ids = [{item["_id"] for item in workout["items"]} if workout else set() for workout in (before, after)]
    common = ids[0] & ids[1]
    old, new = (_places_of(workout, common) if workout else {} for workout in (before, after))
    return _of_day(before, old, new), _of_day(after, new, old)


def _of_day(
    workout: Workout | None, loads: Mapping[_Place, list[float]], others: Mapping[_Place, list[float]]
) -> list[DayLoads]:
    """Return the loads of a workout that the other version does not have."""
    return [
        DayLoads(exercise_id, unit, workout["date"], sorted(values))
        for (item_id, exercise_id, unit, is_warmup), values in loads.items()
        if workout is not None and (item_id is None or (item_id, exercise_id, unit, is_warmup) not in others)
    ]


def _places_of(workout: Workout, common: Set[ObjectId]) -> dict[_Place, list[float]]:
    loads: defaultdict[_Place, list[float]] = defaultdict(list)
    items: list[WorkItem] = workout["items"]
    for item in items:
        item_id = item["_id"] if item["_id"] in common else None
        for exercise_id, planned in planned_sets(item):
            for unit, value in (("load", planned.get("load")), ("percent", planned.get("loadPercent"))):
                if value is not None:
                    loads[item_id, exercise_id, unit, planned["isWarmup"]].append(value)
    return loads


# --- Loads and amounts that are unusual for a client ------------------------------------------------------------------


MAX_RATIO: Final = 1.5
MAX_RAISE_KG: Final = 10
MAX_FIRST_KG: Final = 60  # where nothing was done or planned before
MAX_SETS: Final = 20  # of an item
MAX_REPS: Final = 100  # of a set
MAX_SECONDS: Final = 3_600  # of a set
# Of all workouts of a day, planned or done.
_MOST_OF_DAY: Final = {"sets": (100, "sets"), "reps": (2_000, "repetitions"), "seconds": (21_600, "seconds of sets")}
MAX_PERCENT: Final = 110  # of a training maximum that is not known yet
_MOST_OF_ANYONE = {"kg": 500, "lb": 1_100}  # where there is no client to compare with
_PERIOD = timedelta(days=365)
_FIELDS = (
    "date",
    *(f"items.{name}" for name in ("_id", "type", "exerciseId", "exerciseSets", "circuitExercises", "customerSets")),
)
# Planned, done or percent of the maximum; of an exercise.
_Load: TypeAlias = tuple[str, ObjectId, float]


async def find_unusual(
    ctx: Context,
    customer_id: ObjectId,
    changes: Sequence[tuple[Workout | None, Workout | None]],
    new_maxes: Mapping[ObjectId, float],
) -> list[str]:
    """Return a sentence for each load, number of sets or repetitions, and time that is unusual for a client.

    `changes`: workouts that the transaction has changed, before and after; what they had before is not unusual.
    `new_maxes`: training maximums that it has set, by exercise. Loads are shown in the caller's unit.
    """
    loads: dict[ObjectId, float] = dict(new_maxes)
    days = sorted({str(after["date"]) for _, after in changes if after is not None})
    written = [each["_id"] for change in changes for each in change if each is not None]
    where = {"customerId": customer_id, "date": {"$in": days}, "_id": {"$nin": written}}
    others = await store.blocks.find(ctx, where, fields=_FIELDS, hint=store.BY_DATE) if days else []
    sentences = dict.fromkeys(list_excesses(changes, others=list(others)))
    new = [
        load
        for before, item in _list_items(changes)
        for load in {*_loads_of(item)} - {*(_loads_of(before) if before is not None else ())}
    ]
    percents = {exercise_id for kind, exercise_id, _ in new if kind == "percent"}
    bases = await load_percent_bases(ctx, customer_id, percents) if percents else {}
    of_unknown: dict[ObjectId, float] = {}
    for kind, exercise_id, value in new:
        if kind == "percent" and exercise_id not in bases and value > MAX_PERCENT:
            of_unknown[exercise_id] = max(value, of_unknown.get(exercise_id, 0))
        base = bases.get(exercise_id, PercentBase(0, 0))
        load = base.load_of(value) if kind == "percent" else value
        loads[exercise_id] = max(load, loads.get(exercise_id, 0))
    for exercise_id, named in (await exercises.get_names(ctx, of_unknown)).items() if of_unknown else ():
        sentences[f"{typed(named['name'])} {of_unknown[exercise_id]:.10g} % of a maximum that is not known"] = None
    unit = ctx.caller.company.load_unit
    if not any(load > find_limit(0, unit) for load in loads.values()):  # whatever was done
        return list(sentences)
    heaviest = await find_heaviest(ctx, customer_id, loads, changes, new_maxes)
    names = await exercises.get_names(ctx, loads)
    for exercise_id, load in loads.items():
        if load > find_limit(heaviest.get(exercise_id), unit):
            sentences[f"{typed(names[exercise_id]['name'])} {describe_far(ctx, load, heaviest.get(exercise_id))}"] = (
                None
            )
    return list(sentences)


def find_limit(heaviest: float | None, unit: str) -> float:
    """Return the highest load that is not unusual, in the company's unit: 60 kg if there was none before."""
    if heaviest is None:
        return convert_stored_load(MAX_FIRST_KG, unit="kg", target=unit)
    return max(heaviest + convert_stored_load(MAX_RAISE_KG, unit="kg", target=unit), MAX_RATIO * heaviest)


def describe_far(ctx: Context, load: float, heaviest: float | None) -> str:
    """Return in words what an unusual load was compared with, in the unit of the caller."""
    shown, *compared = (
        f"{convert_stored_load(each, ctx.caller.company.load_unit, ctx.caller.load_unit):.10g} {ctx.caller.load_unit}"
        for each in (load, *([] if heaviest is None else [heaviest]))
    )
    before = f"the heaviest in 12 months was {compared[0]}" if compared else "no load to compare with in 12 months"
    return f"{shown}: {before}"


async def find_heaviest(
    ctx: Context,
    customer_id: ObjectId,
    exercise_ids: Collection[ObjectId],
    changes: Sequence[tuple[Workout | None, Workout | None]] = (),
    new_maxes: Collection[ObjectId] = (),
) -> dict[ObjectId, float]:
    """Return the heaviest load of exercises that a client has done or had planned since a year ago, in any workout.

    What assistants have planned or logged without an approval is left out, and taken as it was before. So are the
    `changes` of the running transaction; of training maximums that it has set, nothing is known.
    """
    if not exercise_ids:
        return {}
    since, ids = str(ctx.caller.today() - _PERIOD), list(exercise_ids)
    written = [each["_id"] for change in changes for each in change if each is not None]
    days: dict[str, Any] = {"date": {"$gte": since}, "_id": {"$nin": written}}
    where = {"customerId": customer_id, "items.exerciseIds": {"$in": ids}, **days}
    workouts: list[Workout] = list(await store.blocks.find(ctx, where, fields=_FIELDS))
    workouts += [before for before, _ in changes if before is not None and str(before["date"]) >= since]
    set_maxes = await training_maxes.find_set_maxes(ctx, customer_id, [each for each in ids if each not in new_maxes])
    documents = [each["_id"] for each in (*workouts, *set_maxes)]
    by_assistants = await _list_by_assistants(ctx, customer_id, documents)
    maxes = {each["exerciseId"]: each["value"] or 0 for each in set_maxes if (each["_id"], None) not in by_assistants}
    loads = {("maximum", exercise_id, value) for exercise_id, value in maxes.items()}
    for workout in workouts:
        for item in workout["items"]:
            if (workout["_id"], None) not in by_assistants:
                before, after = by_assistants.get((workout["_id"], item["_id"]), (set(), set()))
                loads |= {*_loads_of(item)} - after
    for before, _ in by_assistants.values():
        loads |= before
    heaviest: dict[ObjectId, float] = {}
    for kind, exercise_id, value in loads:
        load = value / 100 * maxes.get(exercise_id, 0) if kind == "percent" else value
        if exercise_id in exercise_ids and load:
            heaviest[exercise_id] = max(load, heaviest.get(exercise_id, 0))
    return heaviest


async def _list_by_assistants(
    ctx: Context, customer_id: ObjectId, document_ids: Sequence[ObjectId]
) -> dict[tuple[ObjectId, ObjectId | None], tuple[set[_Load], set[_Load]]]:
    """Return the items that assistants have written without an approval: loads before the first change, after the last.

    By document and item; without the item for a training maximum, and for a document whose values are not known.
    """
    written: dict[tuple[ObjectId, ObjectId | None], tuple[set[_Load], set[_Load]]] = {}
    for change in await history.list_unapproved(ctx, customer_id, document_ids, _PERIOD):
        patches = {each["_id"]: each for each in change.get("patch", ())}
        for document_id in {each["_id"] for each in change["documents"]}.intersection(document_ids):
            if (patch := patches.get(document_id)) is None or _writes(patch, "value"):
                written[document_id, None] = set(), set()
            if patch is None or not _writes(patch, "items"):
                continue
            of_items: Mapping[str, Any] = (
                {"after": patch["after"]["items"]}
                if patch["after"] is not None
                else next(each for each in patch["fields"] if each["path"] == "items")
            )
            before, after = (
                {each["_id"]: {*_loads_of(each)} for each in of_items.get(side, ())} for side in ("before", "after")
            )
            for item_id in {*before, *after}:
                first, _ = written.get((document_id, item_id), (before.get(item_id, set()), None))
                written[document_id, item_id] = first, after.get(item_id, set())
    return written


def _writes(patch: DocumentPatch, field: str) -> bool:
    return field in (patch["after"] or {each["path"] for each in patch["fields"]})


def _loads_of(item: Any) -> Iterator[tuple[str, ObjectId, float]]:
    """Yield the loads of an item, each with its kind and exercise: planned, done, or percent of the maximum."""
    for exercise_id, planned in planned_sets(item):
        for kind, value in (("planned", planned.get("load")), ("percent", planned.get("loadPercent"))):
            if value is not None and (kind == "percent" or planned.get("loadPercent") is None):
                yield kind, exercise_id, value
    if item["type"] == "EXERCISE" or item["type"] == "CIRCUIT":
        for done in item["customerSets"]:
            exercise_id = done["exerciseId"] or item.get("exerciseId")
            if done["load"] is not None and isinstance(exercise_id, ObjectId):
                yield "done", exercise_id, done["load"]


def list_excesses(
    changes: Sequence[tuple[Workout | None, Workout | None]], unit: str = "", others: Sequence[Workout] = ()
) -> list[str]:
    """Return a sentence for what items, and days, have more of than is usual, whatever a client has done.

    What they had is not unusual. With `unit` also for loads, of workouts without a client. `others`: the workouts of
    the same days that do not change.
    """
    sentences: dict[str, None] = {}
    for before, item in _list_items(changes):
        counts, had = count_most(item), count_most(before)
        for name, (most, words) in _MOST.items():
            if counts[name] > max(most, had[name]):
                sentences[f"{counts[name]:,.10g} {words}: more than {most:,}"] = None
        new = {*_loads_of(item)} - {*(_loads_of(before) if before is not None else ())} if unit else ()
        for load in sorted(value for kind, _, value in new if kind == "planned" and value > _MOST_OF_ANYONE[unit]):
            sentences[f"{load:,.10g} {unit}: more than {_MOST_OF_ANYONE[unit]:,} {unit}"] = None
    was, becomes = (_count_days([change[side] for change in changes]) for side in (0, 1))
    unchanged = _count_days(others)
    for day, amounts in becomes.items() if not sentences else ():
        where = f"on {day}" if isinstance(day, str) else "of a workout"
        for name, (most, words) in _MOST_OF_DAY.items():
            if amounts[name] > was[day][name] and (total := amounts[name] + unchanged[day][name]) > most:
                sentences[f"{total:,.10g} {words} {where}: more than {most:,}"] = None
    return list(sentences)


def _count_days(workouts: Sequence[Workout | None]) -> defaultdict[str | ObjectId, Counter[str]]:
    """Return how much workouts have, by date; by identifier where they have none."""
    days: defaultdict[str | ObjectId, Counter[str]] = defaultdict(Counter)
    for workout in [each for each in workouts if each is not None]:
        for item in workout["items"]:
            # The sets, repetitions and seconds of an item in all its rounds: planned, or done if more.
            planned, done = [each for _, each in planned_sets(item)], item.get("customerSets") or ()
            rounds = item.get("rounds") or 1
            counts = {"sets": max(len(planned) * rounds, len(done))}
            for name, fields in _AMOUNT_FIELDS.items():
                of_planned, of_done = (sum(_most_of(each, fields) for each in some) for some in (planned, done))
                counts[name] = int(max(of_planned * rounds, of_done))
            days[workout.get("date") or workout["_id"]].update(counts)
    return days


def _most_of(planned: Any, fields: Sequence[str]) -> float:
    return max(planned.get(field) or 0 for field in fields)


def _list_items(changes: Sequence[tuple[Workout | None, Workout | None]]) -> Iterator[tuple[Any, Any]]:
    """Yield the items of workouts as they were before, None if they are new, and afterwards."""
    for before, after in changes:
        old = {item["_id"]: item for item in before["items"]} if before is not None else {}
        for item in after["items"] if after is not None else ():
            yield old.get(item["_id"]), item


_AMOUNT_FIELDS = {
    "reps": ("minPlannedReps", "maxPlannedReps", "reps"),
    "seconds": ("minPlannedSeconds", "maxPlannedSeconds", "seconds"),
}
_MOST = {"sets": (MAX_SETS, "sets"), "reps": (MAX_REPS, "repetitions"), "seconds": (MAX_SECONDS, "seconds of a set")}


def count_most(item: Workout | None) -> dict[str, float]:
    """Return the number of sets of an item in all its rounds, and the most repetitions and seconds of one of them.

    Planned or done; of a circuit, the sets of the exercise that has most of them. `load` is the highest that is
    planned, or percentage.
    """
    counts: dict[str, float] = dict.fromkeys((*_MOST, "load"), 0)
    if item is None:
        return counts
    planned = [item.get("exerciseSets") or (), *(each["sets"] for each in item.get("circuitExercises") or ())]
    done = item.get("customerSets") or ()
    done_sets = Counter(each.get("exerciseId") for each in done)
    counts["sets"] = max([max(map(len, planned)) * (item.get("rounds") or 1), *done_sets.values()])
    counts["load"] = max([_most_of(each, ("load", "loadPercent")) for sets in planned for each in sets], default=0)
    for each in (*(each for sets in planned for each in sets), *done):
        for name, fields in _AMOUNT_FIELDS.items():
            counts[name] = max(counts[name], _most_of(each, fields))
    return counts
