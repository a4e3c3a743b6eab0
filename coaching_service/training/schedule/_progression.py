"""Progression of planned sets: loads and repetitions that rise or fall from one copy to the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple, cast

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import LOAD
from coaching_service.people.account import convert_entered_load, convert_stored_load
from coaching_service.training.schedule import models as schedule_models
from coaching_service.training.schedule.models import SetsProgression
from coaching_service.training.workouts import sets as workout_sets
from coaching_service.training.workouts.items.models import ItemChange, ItemInput, WorkItem

_REPS = ("minPlannedReps", "maxPlannedReps")


@dataclass(frozen=True)
class SetChange:
    """A progression as it is applied: loads are rounded to multiples of `rounding`, None for exact changes.

    `exercise_ids` None means all. Loads are changed in `load_unit`, and stored in `stored_unit`.
    """

    load: schedule_models.LoadProgression | None
    add_reps: int
    sets: SetsProgression | None
    rounding: Decimal | None
    exercise_ids: Collection[ObjectId] | None
    load_unit: str
    stored_unit: str

    @classmethod
    def of(cls, progression: schedule_models.Progression, stored_unit: str) -> SetChange:
        """Return the change that a progression means for a company with this unit of load (`kg` or `lb`)."""
        load_unit = progression.get("loadUnit", stored_unit)
        reps = progression.get("reps")
        ids = progression.get("exerciseIds")
        rounding = progression.get("rounding", workout_sets.STEPS[load_unit])
        return cls(
            progression.get("load"),
            reps["add"] if reps else 0,
            progression.get("sets"),
            None if rounding is None else Decimal(str(rounding)),
            None if ids is None else frozenset(ids),
            load_unit,
            stored_unit,
        )

    def change_item(self, item: WorkItem) -> ItemChange:
        """Return the planned fields of an item after the change; empty if none is different."""
        if item["type"] == "EXERCISE" and self._applies_to(item["exerciseId"]):
            sets = self._change_sets(item["exerciseSets"])
            return {"exerciseSets": sets} if sets != item["exerciseSets"] else {}
        if item["type"] == "CIRCUIT":
            entries = [
                {**entry, "sets": self._change_sets(entry["sets"])} if self._applies_to(entry["exerciseId"]) else entry
                for entry in item["circuitExercises"]
            ]
            return cast("ItemChange", {"circuitExercises": entries} if entries != item["circuitExercises"] else {})
        return {}

    def _change_sets(self, planned: Sequence[workout_sets.PlannedSet]) -> list[workout_sets.PlannedSet]:
        changed = [self.change_set(each) for each in planned]
        return changed if self.sets is None else change_set_count(changed, self.sets)

    def change_set(self, planned: workout_sets.PlannedSet) -> workout_sets.PlannedSet:
        """Return a planned set after the change; one without a load remains without."""
        fields = dict(planned)
        load = planned.get("load")
        if self.load is not None and load is not None:
            if self.load_unit == self.stored_unit:
                fields["load"] = change_load(load, self.load, self.rounding)
            else:
                shown = convert_stored_load(load, self.stored_unit, self.load_unit)
                changed = change_load(shown, self.load, self.rounding)
                if changed != shown:  # a load that does not change keeps the decimals that are not shown
                    fields["load"] = convert_entered_load(changed, self.load_unit, self.stored_unit)
        for name in _REPS:
            reps = planned.get(name)
            if self.add_reps and isinstance(reps, int):
                fields[name] = min(max(reps + self.add_reps, 1), workout_sets.MAX_REPS)
        return cast("workout_sets.PlannedSet", fields)

    def _applies_to(self, exercise_id: ObjectId) -> bool:
        return self.exercise_ids is None or exercise_id in self.exercise_ids


def change_load(load: float, change: schedule_models.LoadProgression, rounding: Decimal | None) -> float:
    """Return a load after a change, rounded half up to the nearest multiple of `rounding`, not below 0.

    A change smaller than `rounding` is exact, so that the load of a dumbbell between two multiples never moves against
    the sign of the change; `rounding` None: every change is exact. Computed with the decimals as they are written, so
    that 0.1 + 0.2 is 0.3.
    """
    exact = Decimal(str(load))
    difference = Decimal(str(change["add"])) if "add" in change else exact * Decimal(str(change["percent"])) / 100
    changed = max(exact + difference, Decimal(0))
    if rounding is not None and abs(difference) >= rounding:
        changed = workout_sets.round_to_step(changed, rounding)
    changed = min(changed, Decimal(workout_sets.MAX_LOAD))
    return int(changed) if changed == changed.to_integral_value() else float(changed)


def replace_loads(
    sets: Sequence[workout_sets.PlannedSet], load: schedule_models.ReplacedLoad, unit: str, stored: str
) -> list[workout_sets.PlannedSet]:
    """Return planned sets for another exercise, with what becomes of their loads; a percentage is of them in `unit`."""
    if load == "keep":
        return [*sets]
    if load == "clear":
        loads = ("load", "loadPercent")
        return [
            cast("workout_sets.PlannedSet", {name: None if name in loads else value for name, value in each.items()})
            for each in sets
        ]
    percent = cast("dict[str, float]", load)["percent"]
    change = SetChange.of({"load": {"percent": percent - 100}, "loadUnit": unit}, stored)
    changed = [change.change_set(each) for each in sets]
    for each in changed:
        if (of_maximum := each.get("loadPercent")) is not None:
            exact = Decimal(str(of_maximum)) * Decimal(str(percent)) / 100
            each["loadPercent"] = min(int(exact.quantize(Decimal(1), ROUND_HALF_UP)), workout_sets.MAX_PERCENT)
    return changed


def change_set_count(sets: Sequence[workout_sets.PlannedSet], change: SetsProgression) -> list[workout_sets.PlannedSet]:
    """Return planned sets with more or fewer working sets, numbered again; warm-up sets stay.

    New ones repeat the last working set and follow it; the last ones are removed, but not the first. A percentage is
    rounded half up to whole sets. Without a working set, all stay as they are.
    """
    if not (working := [position for position, planned in enumerate(sets) if not planned["isWarmup"]]):
        return [*sets]
    count = len(working)
    if "add" in change:
        wanted = count + change["add"]
    else:
        exact = Decimal(count) * (100 + Decimal(str(change["percent"]))) / 100
        wanted = int(exact.to_integral_value(ROUND_HALF_UP))
    if (wanted := min(max(wanted, 1), workout_sets.MAX_SETS - (len(sets) - count))) == count:
        return [*sets]
    removed = {*working[wanted:]}
    changed = [planned for position, planned in enumerate(sets) if position not in removed]
    if wanted > count:
        after = working[-1] + 1
        changed[after:after] = [sets[working[-1]]] * (wanted - count)
    return [cast("workout_sets.PlannedSet", {**planned, "index": index}) for index, planned in enumerate(changed, 1)]


# --- What a progression has changed of planned sets, before and after: loads, repetitions, and numbers of sets --------


Item = ItemInput | WorkItem


class RepChange(NamedTuple):
    """The planned repetitions of sets of an exercise before and after, such as `8-10` and `9-11`."""

    exercise_id: ObjectId
    before: str
    after: str


async def list_changes(ctx: Context, pairs: Iterable[tuple[Item, Item]]) -> schedule_models.ProgressionChanges:
    """Return how loads and numbers of sets have changed, by exercise; `pairs` are items before and after."""
    compared = list(_compare_exercises(pairs))
    loads = Counter(  # added and removed sets have none
        (exercise_id, before, after)
        for exercise_id, old_sets, new_sets in compared
        for old, new in _compare_sets(old_sets, new_sets)
        if (before := old.get("load")) is not None and (after := new.get("load")) is not None and before != after
    )
    counts = Counter((each, len(old), len(new)) for each, old, new in compared if len(old) != len(new))
    names = await exercises.get_names(ctx, {exercise_id for exercise_id, _, _ in (*loads, *counts)})
    load_changes: list[schedule_models.LoadChange] = [
        {
            "exerciseId": each,
            "exerciseName": names[each]["name"],
            "loadType": names[each].get("loadType", LOAD),
            "before": before,
            "after": after,
            "sets": count,
        }
        for (each, before, after), count in loads.items()
    ]
    set_changes: list[schedule_models.SetCountChange] = [
        {"exerciseId": each, "exerciseName": names[each]["name"], "before": before, "after": after, "items": count}
        for (each, before, after), count in counts.items()
    ]
    return {
        "loadChanges": sorted(load_changes, key=lambda each: (each["exerciseName"], each["before"], each["after"])),
        "setChanges": sorted(set_changes, key=lambda each: (each["exerciseName"], each["before"], each["after"])),
    }


def list_rep_changes(pairs: Iterable[tuple[Item, Item]]) -> list[RepChange]:
    """Return the repetitions that differ, each once; `pairs` are items before and after."""
    changes = [
        RepChange(exercise_id, _describe_reps(old), _describe_reps(new))
        for exercise_id, old_sets, new_sets in _compare_exercises(pairs)
        for old, new in _compare_sets(old_sets, new_sets)
    ]
    return list(dict.fromkeys(change for change in changes if change.before != change.after))


def _describe_reps(planned: workout_sets.PlannedSet) -> str:
    ends = (planned.get("minPlannedReps"), planned.get("maxPlannedReps"))
    return "-".join(dict.fromkeys(str(reps) for reps in ends if reps is not None))


def _compare_exercises(
    pairs: Iterable[tuple[Item, Item]],
) -> Iterator[tuple[ObjectId, list[workout_sets.PlannedSet], list[workout_sets.PlannedSet]]]:
    """Yield the exercises of items with their planned sets before and after."""
    for before, after in pairs:
        for (exercise_id, old), (_, new) in zip(sets_by_exercise(before), sets_by_exercise(after), strict=True):
            yield exercise_id, old, new


def sets_by_exercise(item: Item) -> list[tuple[ObjectId, list[workout_sets.PlannedSet]]]:
    """Return the planned sets of an item for each of its exercises in order, of a circuit in one round."""
    if item["type"] == "EXERCISE":
        return [(item["exerciseId"], item["exerciseSets"])]
    if item["type"] == "CIRCUIT":
        return [(entry["exerciseId"], entry["sets"]) for entry in item["circuitExercises"]]
    return []


def _compare_sets(
    old_sets: Sequence[workout_sets.PlannedSet], new_sets: Sequence[workout_sets.PlannedSet]
) -> Iterator[tuple[workout_sets.PlannedSet, workout_sets.PlannedSet]]:
    """Yield sets before and after with those of their kind, since working sets may be added before warm-up sets."""
    for is_warmup in (True, False):
        old, new = ([each for each in sets if each["isWarmup"] is is_warmup] for sets in (old_sets, new_sets))
        yield from zip(old, new, strict=False)
