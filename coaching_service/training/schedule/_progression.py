"""Progression of planned sets: loads and repetitions that rise or fall from one copy to the next."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import cast

from coaching_service.core.ids import ObjectId
from coaching_service.people.account.load_units import convert_entered_load, convert_stored_load
from coaching_service.training.schedule._set_counts import change_set_count
from coaching_service.training.schedule.models import LoadProgression, Progression, SetsProgression
from coaching_service.training.workouts.items.input_models import ItemChange, ItemInput
from coaching_service.training.workouts.items.models import WorkItem
from coaching_service.training.workouts.sets.models import MAX_LOAD, MAX_REPS, PlannedSet

# The smallest steps of common plates, by unit of load.
DEFAULT_ROUNDING = {"kg": 2.5, "lb": 5}
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
        rounding = progression.get("rounding", DEFAULT_ROUNDING[load_unit])
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
            units = self.load_unit, self.stored_unit
            fields["load"] = _change_load(load, self.load.get("add"), self.load.get("percent"), self.rounding, *units)
        for name in _REPS:
            reps = planned.get(name)
            if self.add_reps and isinstance(reps, int):
                fields[name] = min(max(reps + self.add_reps, 1), MAX_REPS)
        return cast("PlannedSet", fields)

    def _applies_to(self, exercise_id: ObjectId) -> bool:
        return self.exercise_ids is None or exercise_id in self.exercise_ids


def _change_load(
    load: float, add: float | None, percent: float | None, rounding: Decimal | None, load_unit: str, stored_unit: str
) -> float:
    change: LoadProgression = {"percent": percent or 0} if add is None else {"add": add}
    if load_unit == stored_unit:
        return change_load(load, change, rounding)
    shown = convert_stored_load(load, stored_unit, load_unit)
    changed = change_load(shown, change, rounding)
    # A load that does not change keeps the decimals that are not shown.
    return load if changed == shown else convert_entered_load(changed, load_unit, stored_unit)


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
        changed = (changed / rounding).to_integral_value(ROUND_HALF_UP) * rounding
    changed = min(changed, Decimal(MAX_LOAD))
    return int(changed) if changed == changed.to_integral_value() else float(changed)


def progress_items(items: list[ItemInput | WorkItem], change: SetChange) -> list[ItemInput | WorkItem]:
    """Return the plan of items after a change; whatever was done for them is left as it is."""
    return [cast("WorkItem", {**item, **change.change_item(cast("WorkItem", item))}) for item in items]
