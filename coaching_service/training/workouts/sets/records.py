"""What a set is worth: its estimated one-repetition maximum, the records it may hold, and which set is better."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from coaching_service.people.activity.record_types import (
    ESTIMATED_ONE_REP_MAX,
    FARTHEST_DISTANCE,
    FASTEST,
    HEAVIEST_LOAD,
    LEAST_ASSISTANCE,
    LONGEST_TIME,
    LOWER_IS_BETTER,
    MOST_REPS,
    RECORD_TYPES,
    RecordType,
)
from coaching_service.training.workouts.sets.models import CustomerSet, PlannedSet
from coaching_service.training.workouts.sets.totals_models import Best

EPLEY, EPLEY_RIR, EPLEY_RPE, LOAD = "epley", "epley_rir", "epley_rpe", "load"
_BODY_WEIGHT = "_body_weight"
_OF_LOADS = (EPLEY, EPLEY_RIR, EPLEY_RPE, LOAD)
FORMULAS = (*_OF_LOADS, *(f"{each}{_BODY_WEIGHT}" for each in _OF_LOADS))
COUNT = "count"
_MAX_REPS = 12
_HIGHEST_RPE = 10
_KILOMETER, _COARSE_METERS = 1_000, 100
_AMOUNTS = ("reps", "load", "seconds", "meters")
RECORD_UNITS = ("kg", "lb", COUNT, "s", "m")
_UNITS: dict[RecordType, str] = {MOST_REPS: COUNT, LONGEST_TIME: "s", FARTHEST_DISTANCE: "m", FASTEST: "s"}


class RecordKey(NamedTuple):
    """What a record is of: its type, and for `fastest` the distance in meters."""

    type: RecordType
    meters: float | None = None

    @property
    def order(self) -> tuple[int, float]:
        """The position among the records of an exercise."""
        return RECORD_TYPES.index(self.type), self.meters or 0


class Estimate(NamedTuple):
    """An estimated one-repetition maximum, in the unit of the load, and the formula used."""

    value: float
    formula: str


class LoadMeaning(NamedTuple):
    """What the loads of an exercise mean: help, or added to the body's weight (None: it is not known), or neither."""

    is_assistance: bool = False
    is_added: bool = False
    body_weight: float | None = None


def with_kind(done: CustomerSet) -> CustomerSet:
    """Return a done set with the fields that say what it was, which older sets do not have."""
    return done if "setKind" in done and "isWarmup" in done else {"isWarmup": False, "setKind": "normal", **done}


def plan_of_done(sets: Iterable[CustomerSet]) -> list[PlannedSet]:
    """Return planned sets of the amounts that done sets have."""
    return [_planned(index, with_kind(done)) for index, done in enumerate(sets, start=1)]


def _planned(index: int, done: CustomerSet) -> PlannedSet:
    planned: PlannedSet = {
        "index": index,
        "type": "reps",
        "rest": None,
        "rpe": done["rpe"],
        "rir": done["rir"],
        "tempo": None,
        "isWarmup": done["isWarmup"],
        "setKind": done["setKind"],
    }
    loaded: PlannedSet = {**planned, "load": done["load"], "loadPercent": None}
    has_load = done["load"] is not None
    if done["reps"] is not None or done["seconds"] is None is done["meters"]:
        reps: PlannedSet = {**(loaded if has_load else planned), "type": "reps_load" if has_load else "reps"}
        return {**reps, "minPlannedReps": done["reps"], "maxPlannedReps": done["reps"]}
    if done["meters"] is not None:
        distance: PlannedSet = {
            **(loaded if has_load else planned),
            "type": "distance_load" if has_load else "distance",
        }
        return {**distance, "plannedMeters": done["meters"]}
    timed: PlannedSet = {**(loaded if has_load else planned), "type": "time_load" if has_load else "time"}
    return {**timed, "minPlannedSeconds": done["seconds"], "maxPlannedSeconds": done["seconds"]}


def unit_of(record_type: RecordType) -> str | None:
    """Return the unit of a type of record; None for the company's unit of load."""
    return _UNITS.get(record_type)


def estimate_one_rep_max(
    reps: int | None, load: float | None, *, rir: float | None = None, rpe: float | None = None
) -> Estimate | None:
    """Return the estimated one-repetition maximum of a set.

    Repetitions in reserve (`rir`, else 10 - `rpe`) are added to the repetitions first. Then Epley (1985), load x (1 +
    repetitions / 30), up to 12 repetitions (`epley`; `epley_rir` and `epley_rpe` with repetitions in reserve), and the
    load itself for 1 (`load`). None without a load or above 12 repetitions, where the estimate is unreliable.
    """
    if not reps or not load:
        return None
    reserve = rir if rir is not None else _HIGHEST_RPE - rpe if rpe is not None else 0
    possible = reps + reserve
    if possible > _MAX_REPS:
        return None
    if possible == 1:
        return Estimate(load, LOAD)
    formula = EPLEY_RIR if rir is not None else EPLEY_RPE if rpe is not None else EPLEY
    return Estimate(load * (1 + possible / 30), formula)


def estimate_of_set(done: CustomerSet, meaning: LoadMeaning) -> Estimate | None:
    """Return the estimated one-repetition maximum of a logged set; none where the load is assistance.

    Where the load is added to the body's weight it is of the whole, and none if the body weight is not known.
    """
    if meaning.is_assistance:
        return None
    if not meaning.is_added:
        return estimate_one_rep_max(done["reps"], done["load"], rir=done["rir"], rpe=done["rpe"])
    if meaning.body_weight is None:
        return None
    whole = meaning.body_weight + (done["load"] or 0)
    estimate = estimate_one_rep_max(done["reps"], whole, rir=done["rir"], rpe=done["rpe"])
    return estimate and Estimate(estimate.value, f"{estimate.formula}{_BODY_WEIGHT}")


def best_set(sets: Iterable[tuple[CustomerSet, LoadMeaning]]) -> tuple[CustomerSet, LoadMeaning] | None:
    """Return the set with the highest estimated one-repetition maximum, else the highest load, else the most reps.

    Each set comes with what its load means. Then the farthest distance, in the shortest time, and the longest time
    without a distance. Where the load is assistance, the lowest load is the best. The first of equal sets; None if no
    set has any of these amounts.
    """

    def value(each: tuple[CustomerSet, LoadMeaning]) -> tuple[float, ...]:
        done, meaning = each
        estimate = estimate_of_set(done, meaning)
        load, seconds, meters = done["load"], done["seconds"], done["meters"] or 0
        if meaning.is_assistance:
            load = float("-inf") if load is None else -load
        time = -(seconds or float("inf")) if meters else seconds or 0
        return (estimate.value if estimate else 0, load or 0, done["reps"] or 0, meters, time)

    return max((each for each in sets if any(each[0][name] for name in _AMOUNTS)), key=value, default=None)  # type: ignore[literal-required]  # names of amounts


def record_values(done: CustomerSet, meaning: LoadMeaning) -> dict[RecordKey, float]:
    """Return the value of a set for each record that it may hold.

    A load counts with repetitions, a time or a distance. The longest time is the time of a set without repetitions (or
    one) and without a distance, as a distance is covered in the shortest time.
    """
    reps, load, seconds, meters = done["reps"], done["load"], done["seconds"], done["meters"]
    values: dict[RecordKey, float] = {}
    if load is not None and (reps or seconds or meters):
        if meaning.is_assistance:
            values[RecordKey(LEAST_ASSISTANCE)] = load
        elif load:
            values[RecordKey(HEAVIEST_LOAD)] = load
    if reps:
        values[RecordKey(MOST_REPS)] = reps
    if estimate := estimate_of_set(done, meaning):
        values[RecordKey(ESTIMATED_ONE_REP_MAX)] = round(estimate.value, 2)
    if seconds and not meters and (reps or 0) <= 1:
        values[RecordKey(LONGEST_TIME)] = seconds
    if meters:
        values[RecordKey(FARTHEST_DISTANCE)] = meters
        if seconds:
            values[RecordKey(FASTEST, record_distance(meters))] = seconds
    return values


def record_distance(meters: float) -> float:
    """Return the distance over which a set may have the fastest time: at most what was covered.

    From a kilometer on in steps of 100 m, so that 5,013 m and 5,048 m as a watch measures them compare as 5,000 m.
    """
    return meters if meters < _KILOMETER else meters // _COARSE_METERS * _COARSE_METERS


def is_better(record_type: RecordType, value: float, than: float) -> bool:
    """Return whether a value is a better record of a type than another."""
    return value < than if record_type in LOWER_IS_BETTER else value > than


def rank_best(record_type: RecordType, best: Best) -> tuple[Any, ...]:
    """Return a sort key of best sets of a type, best first: better value, earlier date, more reps, a stable order."""
    value = best["value"] if record_type in LOWER_IS_BETTER else -best["value"]
    return (value, best["date"], -(best["reps"] or 0), best["witemId"])
