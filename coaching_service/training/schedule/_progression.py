"""Progression of planned sets: loads and repetitions that rise or fall from one copy to the next."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import cast

from coaching_service.core.ids import ObjectId
from coaching_service.people.account.load_units import convert_entered_load, convert_stored_load
from coaching_service.training.schedule.models import LoadProgression, Progression, ReplacedLoad, SetsProgression
from coaching_service.training.workouts.items.input_models import ItemChange, ItemInput
from coaching_service.training.workouts.items.models import WorkItem
from coaching_service.training.workouts.sets.models import MAX_LOAD, MAX_PERCENT, MAX_REPS, MAX_SETS, PlannedSet
from coaching_service.training.workouts.sets.schemas import STEPS, round_to_step

_REPS = ("minPlannedReps", "maxPlannedReps")


@dataclass(frozen=True)
class SetChange:
    """A progression as it is applied: loads are rounded to multiples of `rounding`, None for exact changes.

    `exercise_ids` None means all. Loads are changed in `load_unit`, and stored in `stored_unit`.
    """

    load: LoadProgression | None
    add_reps: int
    sets: SetsProgression | None
    rounding: Decimal | None
    exercise_ids: Collection[ObjectId] | None
    load_unit: str
    stored_unit: str

    @classmethod
    def of(cls, progression: Progression, stored_unit: str) -> SetChange:
        """Return the change that a progression means for a company with this unit of load (`kg` or `lb`)."""
        load_unit = progression.get("loadUnit", stored_unit)
        reps = progression.get("reps")
        ids = progression.get("exerciseIds")
        rounding = progression.get("rounding", STEPS[load_unit])
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

    def _change_sets(self, planned: Sequence[PlannedSet]) -> list[PlannedSet]:
        changed = [self.change_set(each) for each in planned]
        return changed if self.sets is None else change_set_count(changed, self.sets)

    def change_set(self, planned: PlannedSet) -> PlannedSet:
        """Return a planned set after the change; one without a load remains without."""
        fields = dict(planned)
        load = planned.get("load")
        if self.load is not None and load is not None:
            fields["load"] = self._change_load(load, self.load)
        for name in _REPS:
            reps = planned.get(name)
            if self.add_reps and isinstance(reps, int):
                fields[name] = min(max(reps + self.add_reps, 1), MAX_REPS)
        return cast("PlannedSet", fields)

    def _change_load(self, load: float, change: LoadProgression) -> float:
        if self.load_unit == self.stored_unit:
            return change_load(load, change, self.rounding)
        shown = convert_stored_load(load, self.stored_unit, self.load_unit)
        changed = change_load(shown, change, self.rounding)
        # A load that does not change keeps the decimals that are not shown.
        return load if changed == shown else convert_entered_load(changed, self.load_unit, self.stored_unit)

    def _applies_to(self, exercise_id: ObjectId) -> bool:
        return self.exercise_ids is None or exercise_id in self.exercise_ids


def change_load(load: float, change: LoadProgression, rounding: Decimal | None) -> float:
    """Return a load after a change, rounded half up to the nearest multiple of `rounding`, not below 0.

    A change smaller than `rounding` is exact, so that the load of a dumbbell between two multiples never moves against
    the sign of the change; `rounding` None: every change is exact. Computed with the decimals as they are written, so
    that 0.1 + 0.2 is 0.3.
    """
    exact = Decimal(str(load))
    difference = Decimal(str(change["add"])) if "add" in change else exact * Decimal(str(change["percent"])) / 100
    changed = max(exact + difference, Decimal(0))
    if rounding is not None and abs(difference) >= rounding:
        changed = round_to_step(changed, rounding)
    changed = min(changed, Decimal(MAX_LOAD))
    return int(changed) if changed == changed.to_integral_value() else float(changed)


def replace_loads(sets: Sequence[PlannedSet], load: ReplacedLoad, unit: str, stored: str) -> list[PlannedSet]:
    """Return planned sets for another exercise, with what becomes of their loads; a percentage is of them in `unit`."""
    if load == "keep":
        return [*sets]
    if load == "clear":
        return [cast("PlannedSet", {**each, **_without_loads(each)}) for each in sets]
    percent = cast("dict[str, float]", load)["percent"]
    change = SetChange.of({"load": {"percent": percent - 100}, "loadUnit": unit}, stored)
    changed = [change.change_set(each) for each in sets]
    for each in changed:
        if (of_maximum := each.get("loadPercent")) is not None:
            exact = Decimal(str(of_maximum)) * Decimal(str(percent)) / 100
            each["loadPercent"] = min(int(exact.quantize(Decimal(1), ROUND_HALF_UP)), MAX_PERCENT)
    return changed


def _without_loads(planned: PlannedSet) -> dict[str, None]:
    return {name: None for name in ("load", "loadPercent") if planned.get(name) is not None}


def change_set_count(sets: Sequence[PlannedSet], change: SetsProgression) -> list[PlannedSet]:
    """Return planned sets with more or fewer working sets, numbered again; warm-up sets stay.

    New ones repeat the last working set and follow it; the last ones are removed, but not the first. A percentage is
    rounded half up to whole sets. Without a working set, all stay as they are.
    """
    working = [position for position, planned in enumerate(sets) if not planned["isWarmup"]]
    if not working:
        return [*sets]
    count = len(working)
    wanted = count + change["add"] if "add" in change else _add_percent(count, change["percent"])
    wanted = min(max(wanted, 1), MAX_SETS - (len(sets) - count))
    if wanted == count:
        return [*sets]
    removed = {*working[wanted:]}
    changed = [planned for position, planned in enumerate(sets) if position not in removed]
    if wanted > count:
        after = working[-1] + 1
        changed[after:after] = [sets[working[-1]]] * (wanted - count)
    return [cast("PlannedSet", {**planned, "index": index}) for index, planned in enumerate(changed, 1)]


def _add_percent(count: int, percent: float) -> int:
    exact = Decimal(count) * (100 + Decimal(str(percent))) / 100
    return int(exact.to_integral_value(ROUND_HALF_UP))


def progress_items(items: list[ItemInput | WorkItem], change: SetChange) -> list[ItemInput | WorkItem]:
    """Return the plan of items after a change; whatever was done for them is left as it is."""
    return [cast("WorkItem", {**item, **change.change_item(cast("WorkItem", item))}) for item in items]
