"""The sets of a client's workout as rows of forms: prefilled with the plan, or with what was logged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, NamedTuple

from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.items.descriptions import describe_amounts, describe_details, format_number
from coaching_service.training.workouts.items.models import CircuitExercise, CircuitItem, ExerciseItem
from coaching_service.training.workouts.sets import CustomerSet, PlannedSet, SetType

AmountName = Literal["load", "reps", "seconds", "meters", "rpe", "rir"]
AMOUNTS: tuple[AmountName, ...] = ("load", "reps", "seconds", "meters", "rpe", "rir")
_LABELS: Mapping[AmountName, str] = {
    "load": "load",
    "reps": "reps",
    "seconds": "seconds",
    "meters": "meters",
    "rpe": "RPE",
    "rir": "RIR",
}
_CAPTIONS: Mapping[AmountName, str] = {"reps": "reps", "seconds": "s", "meters": "m", "rpe": "RPE", "rir": "RIR"}
# The amounts of each type of set, and those that a client may add.
_COLUMNS: Mapping[SetType, tuple[AmountName, ...]] = {
    "reps_load": ("load", "reps"),
    "reps": ("reps",),
    "time": ("seconds",),
    "time_load": ("load", "seconds"),
    "distance": ("meters",),
    "distance_load": ("load", "meters"),
}
_ADDITIONAL: Mapping[SetType, tuple[AmountName, ...]] = {
    "reps_load": (),
    "reps": ("load",),
    "time": ("load",),
    "time_load": (),
    "distance": ("seconds", "load"),
    "distance_load": ("seconds",),
}
_EFFORT: tuple[AmountName, ...] = ("rpe", "rir")
_MOST_IN_ONE_LINE = 2
_MAX_ROWS = 300


class Amount(NamedTuple):
    """One field of a row: its name, the caption above it, its whole label, its value, and what is shown without one."""

    name: AmountName
    caption: str
    label: str
    value: str
    hint: str


@dataclass(frozen=True)
class SetRow:
    """One set with its form.

    `label` names it, `number` is its short name. `target` is what is planned, `details` how it is done as far as that
    differs from the other sets, `last` what the client did the last time. `logged_at` is the stored time (UTC) of a set
    that has one. `amounts` are always shown, `more` on demand.
    """

    id: str
    item_id: ObjectId
    exercise_id: ObjectId
    exercise_name: str
    round: int | None
    index: int
    number: str
    label: str
    target: str
    details: Sequence[str]
    last: str
    rest: int | None
    is_done: bool
    is_logged: bool
    logged_at: datetime | None
    amounts: Sequence[Amount]
    more: Sequence[Amount]

    @property
    def is_wide(self) -> bool:
        """Whether there is no room for text in the line of the fields on a phone."""
        return len(self.amounts) > _MOST_IN_ONE_LINE


@dataclass(frozen=True)
class ItemRows:
    """The rows of an exercise or circuit, in order; `facts` apply to every set. `extra` is a set beyond the plan."""

    rows: Sequence[SetRow] = ()
    facts: Sequence[str] = ()
    extra: SetRow | None = None

    @property
    def facts_text(self) -> str:
        """The facts as one phrase."""
        text = ", ".join(self.facts)
        return text[:1].upper() + text[1:]

    @property
    def has_more(self) -> bool:
        """Whether something was logged that is shown on demand only."""
        return any(amount.value for row in self.rows if row.is_logged for amount in row.more)


@dataclass(frozen=True)
class _Series:
    """The sets of one exercise within an item and, in a circuit, a round."""

    item_id: ObjectId
    exercise_id: ObjectId
    name: str
    unit: str
    columns: Sequence[AmountName]
    additional: Sequence[AmountName]
    facts: Sequence[str]
    last: Mapping[int, CustomerSet]
    is_other_exercise: bool = False

    def row(
        self, label: str, planned: PlannedSet | None, logged: CustomerSet | None, index: int, round_number: int | None
    ) -> SetRow:
        exercise_id = (logged["exerciseId"] if logged else None) or self.exercise_id
        amounts = [self._amount(name, label, planned, logged, index) for name in self.columns]
        more = [self._amount(name, label, planned, logged, index) for name in self.additional]
        rest = planned["rest"] if planned else None
        return SetRow(
            id=f"set-{self.item_id}-{exercise_id}-{round_number or 0}-{index}",
            item_id=self.item_id,
            exercise_id=exercise_id,
            exercise_name=self.name,
            round=round_number,
            index=index,
            number=str(index),
            label=label,
            target=self._describe_target(planned),
            details=[each for each in describe_details(planned) if each not in self.facts] if planned else (),
            last=_describe_done(self.last[index], self.unit) if index in self.last else "",
            rest=round(rest) if rest else None,
            is_done=bool(logged and logged["isCompleted"]),
            is_logged=logged is not None,
            logged_at=logged.get("loggedAt") if logged else None,
            amounts=amounts,
            more=more,
        )

    def _describe_target(self, planned: PlannedSet | None) -> str:
        """Return the load before the quantity, as in what was done: the same order in both lines of a row."""
        if planned is None:
            return ""
        planned = self._without_load(planned)
        amounts = describe_amounts(planned, self.unit)
        quantities = describe_amounts({**planned, "load": None, "loadPercent": None}, self.unit)
        return " × ".join([*amounts[len(quantities) :], *quantities])

    def _without_load(self, planned: PlannedSet) -> PlannedSet:
        """Return the plan, without its load if another exercise is done: it was meant for the planned one."""
        return {**planned, "load": None, "loadPercent": None} if self.is_other_exercise else planned

    def _amount(
        self, name: AmountName, label: str, planned: PlannedSet | None, logged: CustomerSet | None, index: int
    ) -> Amount:
        caption = self.unit if name == "load" else _CAPTIONS[name]
        full_label = f"{label}: {_LABELS[name]}" + (f" in {self.unit}" if name == "load" else "")
        hint = ""
        if logged is not None:
            value = logged[name]
        else:
            value = self._planned_value(name, planned)
            if name == "load" and value is None and index in self.last:
                value = self.last[index]["load"]
            if planned and name == "reps" and planned.get("isAmrap"):
                hint = f"{plain(value)}+" if value is not None else "max"
                value = None
        return Amount(name, caption, full_label, plain(value), hint)

    def _planned_value(self, name: AmountName, planned: PlannedSet | None) -> float | None:
        if planned is None:
            return None
        planned = self._without_load(planned)
        if name == "reps":
            return _lower(planned.get("minPlannedReps"), planned.get("maxPlannedReps"))
        if name == "seconds":
            return _lower(planned.get("minPlannedSeconds"), planned.get("maxPlannedSeconds"))
        if name == "meters":
            return planned.get("plannedMeters")
        return planned.get("load") if name == "load" else None


def exercise_rows(item: ExerciseItem, unit: str) -> ItemRows:
    """Return the rows of an exercise, each with the exercise that was or is to be done; loads are in `unit`."""
    swap = item.get("swappedFor")
    performed_id = swap["exerciseId"] if swap else item["exerciseId"]
    name = swap["exercise"]["name"] if swap else item["exercise"]["name"]
    planned = {each["index"]: each for each in item["exerciseSets"]}
    logged = _logged_by_index(item, performed_id)
    last_time = item.get("lastTime") if swap is None else None
    columns, additional = _columns(item["exerciseSets"], item["customerSets"])
    facts = _common_details(item["exerciseSets"])
    last = _first_by_index(last_time["sets"]) if last_time else {}
    series = _Series(item["_id"], performed_id, name, unit, columns, additional, facts, last, swap is not None)
    indexes = sorted(planned.keys() | logged.keys())[:_MAX_ROWS]
    rows = [series.row(f"{name}, set {index}", planned.get(index), logged.get(index), index, None) for index in indexes]
    return ItemRows(rows, facts, _extra_row(series, rows))


def circuit_rows(item: CircuitItem, unit: str) -> ItemRows:
    """Return the rows of a circuit by round, then in the order of its exercises; loads are in `unit`."""
    rows = []
    series = [_circuit_series(item, entry, unit) for entry in item["circuitExercises"]]
    logged = {(each["exerciseId"], each["round"] or 1, each["index"]): each for each in item["customerSets"]}
    for round_number in range(1, item["rounds"] + 1):
        for entry, of_entry in zip(item["circuitExercises"], series, strict=True):
            for planned in entry["sets"]:
                index = planned["index"]
                label = f"{of_entry.name}, round {round_number}"
                if len(entry["sets"]) > 1:
                    label += f", set {index}"
                done = logged.get((entry["exerciseId"], round_number, index))
                rows.append(of_entry.row(label, planned, done, index, round_number))
    return ItemRows(rows[:_MAX_ROWS])


def count_sets(rows: Iterable[SetRow]) -> tuple[int, int]:
    """Return how many sets are done, and how many there are."""
    done = [row.is_done for row in rows]
    return sum(done), len(done)


def plain(value: float | None) -> str:
    """Return a number as it is typed into a field, with at most three decimals; empty for None."""
    return "" if value is None else f"{value:.3f}".rstrip("0").rstrip(".")


def _circuit_series(item: CircuitItem, entry: CircuitExercise, unit: str) -> _Series:
    exercise_id = entry["exerciseId"]
    logged = [each for each in item["customerSets"] if each["exerciseId"] == exercise_id]
    columns, additional = _columns(entry["sets"], logged)
    return _Series(item["_id"], exercise_id, entry["exercise"]["name"], unit, columns, additional, (), {})


def _extra_row(series: _Series, rows: Sequence[SetRow]) -> SetRow:
    """Return the row of a set beyond the last one, with the values of that one."""
    previous = rows[-1]
    index = previous.index + 1
    label = f"{series.name}, set {index}"
    row = series.row(label, None, None, index, None)
    values = {amount.name: amount for amount in previous.amounts}
    amounts = [amount._replace(value=values[amount.name].value) for amount in row.amounts]
    return replace(row, amounts=amounts, rest=previous.rest)


def _logged_by_index(item: ExerciseItem, performed_id: ObjectId) -> dict[int, CustomerSet]:
    """Return the logged sets by index: a completed one of any exercise, else one of the exercise done now."""
    by_index: dict[int, CustomerSet] = {}
    for logged in item["customerSets"]:
        is_of_performed = (logged["exerciseId"] or item["exerciseId"]) == performed_id
        known = by_index.get(logged["index"])
        if logged["isCompleted"] and (known is None or not known["isCompleted"] or is_of_performed):
            by_index[logged["index"]] = {**logged, "exerciseId": logged["exerciseId"] or item["exerciseId"]}
        elif is_of_performed and known is None:
            by_index[logged["index"]] = logged
    return by_index


def _first_by_index(sets: Iterable[CustomerSet]) -> dict[int, CustomerSet]:
    first: dict[int, CustomerSet] = {}
    for logged in sets:
        if logged["isCompleted"]:
            first.setdefault(logged["index"], logged)
    return first


def _columns(
    planned: Sequence[PlannedSet], logged: Sequence[CustomerSet]
) -> tuple[Sequence[AmountName], Sequence[AmountName]]:
    """Return the amounts that every row of an exercise shows, and what it shows on demand."""
    shown: set[AmountName] = {name for each in planned for name in _COLUMNS[each["type"]]}
    if any(each["rpe"] is not None for each in planned):
        shown.add("rpe")
    if any(each["rir"] is not None for each in planned):
        shown.add("rir")
    shown |= {name for name in AMOUNTS if name not in _EFFORT and any(each[name] is not None for each in logged)}
    additional = {name for each in planned for name in _ADDITIONAL[each["type"]]} | set(_EFFORT)
    return [name for name in AMOUNTS if name in shown], [name for name in AMOUNTS if name in additional - shown]


def _common_details(sets: Sequence[PlannedSet]) -> list[str]:
    """Return what applies to every planned set, such as `rest 90 s`."""
    first, *others = [describe_details(planned) for planned in sets] or [[]]
    return [detail for detail in first if all(detail in other for other in others)]


def _lower(minimum: float | None, maximum: float | None) -> float | None:
    return maximum if minimum is None else minimum


def _describe_done(logged: CustomerSet, unit: str) -> str:
    """Describe a set that was done, such as `60 kg` by `8`."""
    amounts = (
        format_number(logged["load"], unit),
        format_number(logged["reps"]),
        format_number(logged["seconds"], "s"),
        format_number(logged["meters"], "m"),
    )
    return " × ".join(amount for amount in amounts if amount)
