"""Operations on many days of a schedule at once.

Each is one transaction, never touches work that has been done, and ignores the blocks of recurring check-ins. With
`dry_run` it decides the same and writes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from itertools import cycle
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar, cast

from coaching_service.core.database.context import Context, transactional
from coaching_service.core.database.worker_thread import on_worker_thread
from coaching_service.core.dates import name_days
from coaching_service.core.errors import NotFound, invalid_field
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import typed
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import LOAD
from coaching_service.people.account import convert_entered_load, convert_stored_load
from coaching_service.training import programs
from coaching_service.training.programs import LAST_DAY, Program, ProgramPlan
from coaching_service.training.schedule import models as schedule_models
from coaching_service.training.schedule.models import SetsProgression, SkippedBlock
from coaching_service.training.workouts import sets as workout_sets
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks import models as block_models
from coaching_service.training.workouts.blocks import service as blocks
from coaching_service.training.workouts.blocks.batches import Batch
from coaching_service.training.workouts.blocks.models import BlockPlan, DayBlock, StoredBlock
from coaching_service.training.workouts.blocks.service import (
    ClientCalendar,
    ScheduleOwner,
    has_nothing_done,
    regular_blocks,
    shift_date,
)
from coaching_service.training.workouts.items import service as items
from coaching_service.training.workouts.items.models import ItemChange, ItemInput, WorkItem
from coaching_service.training.workouts.sets import PlannedSet

# --- Progression of planned sets: loads and repetitions that rise or fall from one copy to the next -------------------


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


# --- Target days that have blocks: what an operation does on them, and which blocks are there -------------------------


_NAMED_DAYS, _NAMED_BLOCKS = 7, 3
OUTCOMES = {"add": "the new ones follow them", "skip": "left as they are", "replace": "replaced where nothing is done"}


def resolve_conflicts(
    owner: ScheduleOwner, plans: Sequence[BlockPlan], days: Sequence[DayBlock], on_conflict: schedule_models.OnConflict
) -> Batch:
    """Return what to create and remove when the target range has the blocks `days`."""
    regular = regular_blocks(days)
    if on_conflict == "skip":
        taken = {block[owner.day_field] for block in regular}
        return Batch(created=[plan for plan in plans if plan[owner.day_field] not in taken])
    if on_conflict == "replace":
        return Batch(created=plans, removed=[block["_id"] for block in regular if has_nothing_done(block)])
    return Batch(created=plans)


def find_conflicts(
    owner: ScheduleOwner, plans: Sequence[BlockPlan], days: Sequence[DayBlock], on_conflict: schedule_models.OnConflict
) -> list[schedule_models.ScheduleConflict]:
    """Return the blocks among `days` that are on days of the plans; with `replace`, on every day of the range."""
    targets = {plan[owner.day_field] for plan in plans}
    return [
        cast(
            "schedule_models.ScheduleConflict",
            {owner.day_field: block[owner.day_field], "wblockId": block["_id"], "name": block["name"]},
        )
        for block in regular_blocks(days)
        if on_conflict == "replace" or block[owner.day_field] in targets
    ]


def describe_conflicts(
    conflicts: Sequence[schedule_models.ScheduleConflict], on_conflict: schedule_models.OnConflict, today: str
) -> str:
    """Return the blocks that target days of a calendar had, for the sentence of a tool; empty without any."""
    if not conflicts:
        return ""
    by_day: dict[str, list[str]] = {}
    for conflict in conflicts:
        by_day.setdefault(day_name(conflict), []).append(typed(conflict["name"]))
    days = [f"{name_days([day], today)} {join_some(names, _NAMED_BLOCKS)}" for day, names in by_day.items()]
    return f"; these days had workouts, {OUTCOMES[on_conflict]}: {join_some(days, _NAMED_DAYS)}"


def day_name(conflict: schedule_models.ScheduleConflict) -> str:
    """Return the date of a conflict, or the day of the program."""
    return conflict["date"] if "date" in conflict else f"day {conflict['day']}"


def join_some(texts: Sequence[str], limit: int) -> str:
    """Return the first of some texts, and how many more there are."""
    more = f" and {len(texts) - limit} more" if len(texts) > limit else ""
    return f"{', '.join(texts[:limit])}{more}"


# --- The days of a schedule: dates of a calendar, or numbers of a program ---------------------------------------------


def days_between(first: schedule_models.Day, last: schedule_models.Day) -> int:
    """Return how many days `last` is after `first`."""
    if isinstance(first, int) or isinstance(last, int):
        return int(last) - int(first)
    return (date.fromisoformat(last) - date.fromisoformat(first)).days


def add_days(day: schedule_models.Day, count: int, field: str) -> schedule_models.Day:
    """Return the day that is `count` later. Raises InvalidFields, naming `field`, if there is no such day."""
    if isinstance(day, str):
        return shift_date(day, count, field)
    if day + count > LAST_DAY:
        raise invalid_field(field, f"leaves the program, whose last day is {LAST_DAY}", code="OUT_OF_RANGE")
    return day + count


def last_day_of(first: schedule_models.Day, length: int) -> schedule_models.Day:
    """Return the last of `length` days from `first` on, or the last day there is."""
    if isinstance(first, int):
        return min(first + length - 1, LAST_DAY)
    return str(date.fromordinal(min(date.fromisoformat(first).toordinal() + length - 1, date.max.toordinal())))


MAX_BLOCKS = 500
# Blocks of check-ins do not count in MAX_BLOCKS, but are read to know the order of a day.
_MAX_READ = 10 * MAX_BLOCKS

T = TypeVar("T")
R = TypeVar("R", bound=schedule_models.ScheduleResult)
ReplacedSets: TypeAlias = tuple[Sequence[PlannedSet], Sequence[PlannedSet]]


class Outcome(NamedTuple, Generic[R]):
    """The result of an operation, the blocks that it created, changed or removed, and those that it left alone.

    `rep_changes`: the repetitions that a progression has changed. `replaced`: the planned sets of each
    exercise that was replaced, before and after.
    """

    result: R
    affected: list[schedule_models.PlacedBlock]
    skipped: list[SkippedBlock]
    rep_changes: Sequence[RepChange] = ()
    replaced: Sequence[ReplacedSets] = ()


@transactional
async def create_blocks(
    ctx: Context, owner: ScheduleOwner, blocks: Sequence[block_models.NewBlock], *, dry_run: bool = False
) -> schedule_models.ScheduleResult:
    """Create blocks with items: all or nothing.

    Raises NotFound and Forbidden for the owner, and NotFound for documents that items refer to, naming the entry.
    """
    change = await batches.create_blocks(ctx, owner, blocks, dry_run=dry_run)
    return {"dryRun": dry_run, "changeId": None if dry_run else ctx.change_id, **change}


@on_worker_thread
@transactional
async def copy_days(
    ctx: Context, owner: ScheduleOwner, request: schedule_models.CopyRequest, *, dry_run: bool = False
) -> Outcome[schedule_models.CopiedSchedule]:
    """Copy days of a schedule, with items of every type, rest days and order, and nothing done.

    Copy k (from 1) applies the progression k times. Raises NotFound, Forbidden, and InvalidFields if there are more
    than 500 blocks, or if a copy would leave the calendar.
    """
    await owner.require_access(ctx)
    change: SetChange | None = None
    if request.progression:
        await require_exercises(ctx, request.progression)
        change = SetChange.of(request.progression, ctx.caller.company.load_unit)
    source: list[StoredBlock] = [
        {**block, "items": [items.with_planned_sets(item) for item in block["items"]]}
        for block in await get_regular_blocks(ctx, owner, request.first, request.last)
    ]
    length = days_between(request.first, request.last) + 1
    plans: list[BlockPlan] = []
    planned_items: list[list[ItemInput | WorkItem]] = [list(block["items"]) for block in source]
    for number in range(request.repeat):
        if change is not None:
            planned_items = [
                [cast("WorkItem", {**item, **change.change_item(cast("WorkItem", item))}) for item in each]
                for each in planned_items
            ]
        for block, block_items in zip(source, planned_items, strict=True):
            offset = number * length + days_between(request.first, cast("schedule_models.Day", block[owner.day_field]))
            day = add_days(request.target, offset, "targetDate" if owner.day_field == "date" else "targetDay")
            plan = {**block_models.plan_of(block, block_items), owner.day_field: day}
            plans.append(cast("BlockPlan", plan))
    if len(plans) > MAX_BLOCKS:
        raise invalid_field("repeat", f"would create more than {MAX_BLOCKS} blocks", code="TOO_MANY")
    last_target = last_day_of(request.target, length * request.repeat)
    days = await get_target_days(ctx, owner, request.target, last_target)
    batch = replace(resolve_conflicts(owner, plans, days, request.on_conflict), is_copy=True)
    result = await _apply(ctx, owner, batch, days, dry_run)
    created_days = {plan[owner.day_field] for plan in batch.created}
    pairs = [
        pair
        for block, plan in zip(cycle(source), plans, strict=False)
        if plan[owner.day_field] in created_days
        for pair in zip(block["items"], plan["items"], strict=True)
    ]
    copied: schedule_models.CopiedSchedule = {
        **result,
        "conflicts": find_conflicts(owner, plans, days, request.on_conflict),
        **await list_changes(ctx, pairs),
    }
    left_out = {
        block["_id"]: block
        for block, plan in zip(cycle(source), plans, strict=False)
        if plan[owner.day_field] not in created_days
    }
    skipped = [_skip(owner, block, "DAY_TAKEN") for block in left_out.values()]
    if request.on_conflict == "replace":
        skipped += [_skip(owner, day, "DONE") for day in regular_blocks(days) if not has_nothing_done(day)]
    removed = set(batch.removed)
    affected = _place(owner, [day for day in days if day["_id"] in removed]) + _place(owner, batch.created)
    return Outcome(copied, affected, skipped, list_rep_changes(pairs))


@transactional
async def adjust(
    ctx: Context,
    owner: ScheduleOwner,
    first: schedule_models.Day,
    last: schedule_models.Day,
    progression: schedule_models.Progression,
    *,
    dry_run: bool = False,
) -> Outcome[schedule_models.AdjustedSchedule]:
    """Apply a progression to the items with nothing done.

    Raises NotFound, Forbidden, and InvalidFields if there are more than 500 blocks.
    """
    await owner.require_access(ctx)
    await require_exercises(ctx, progression)
    change = SetChange.of(progression, ctx.caller.company.load_unit)
    blocks = await get_regular_blocks(ctx, owner, first, last)
    result, changed, skipped = await _change_items(ctx, owner, blocks, change.change_item, dry_run=dry_run)
    pairs = [pair for block, new_items in changed for pair in zip(block["items"], new_items, strict=True)]
    adjusted: schedule_models.AdjustedSchedule = {**result, **await list_changes(ctx, pairs)}
    return Outcome(adjusted, _place(owner, [block for block, _ in changed]), skipped, list_rep_changes(pairs))


async def replace_exercise(
    ctx: Context,
    owner: ScheduleOwner,
    exercise_id: ObjectId,
    with_exercise_id: ObjectId,
    first: schedule_models.Day,
    last: schedule_models.Day | None = None,
    *,
    load: schedule_models.ReplacedLoad | None = "keep",
    dry_run: bool = False,
) -> Outcome[schedule_models.ReplacedExercise]:
    """Replace an exercise with another in the items and circuits with nothing done; the sets stay.

    `load` says what becomes of planned loads; None: kept if both exercises have the same movement and equipment, else
    cleared. `last` None means every block from `first` on. Raises NotFound, Forbidden, and InvalidFields if more than
    500 blocks have the exercise, or for the same exercise.
    """
    await owner.require_access(ctx)
    await exercises.require_known(ctx, exercise_id)
    days, ids = (first, last), (exercise_id, with_exercise_id)
    outcome = await replace_accessible(ctx, owner, *ids, *days, load, dry_run=dry_run)
    found = await exercises.get_names(ctx, ids)
    named: list[schedule_models.NamedExercise] = [{"_id": each, "name": found[each]["name"]} for each in ids]
    result: schedule_models.ReplacedExercise = {**outcome.result, "exercise": named[0], "withExercise": named[1]}
    return Outcome(result, outcome.affected, outcome.skipped, replaced=outcome.replaced)


async def choose_load(ctx: Context, exercise_id: ObjectId, with_exercise_id: ObjectId) -> schedule_models.ReplacedLoad:
    """Return what becomes of loads by default: kept only if both exercises have the same movement and equipment."""
    kinds = {await exercises.find_movement(ctx, each) for each in (exercise_id, with_exercise_id)}
    return "keep" if len(kinds) == 1 and None not in kinds else "clear"


@transactional
async def replace_accessible(
    ctx: Context,
    owner: ScheduleOwner,
    exercise_id: ObjectId,
    with_exercise_id: ObjectId,
    first: schedule_models.Day,
    last: schedule_models.Day | None,
    load: schedule_models.ReplacedLoad | None,
    *,
    dry_run: bool,
) -> Outcome[schedule_models.ChangedItems]:
    """Replace an exercise on the schedule of an owner whose access has been checked; see `replace_exercise`."""
    _require_another(exercise_id, with_exercise_id)
    await exercises.require(ctx, [with_exercise_id])
    if load is None:
        load = await choose_load(ctx, exercise_id, with_exercise_id)
    change_sets = partial(replace_loads, load=load, unit=ctx.caller.load_unit, stored=ctx.caller.company.load_unit)

    def put_in(item: WorkItem) -> ItemChange:
        if item["type"] == "EXERCISE" and item["exerciseId"] == exercise_id:
            return {"exerciseId": with_exercise_id, "exerciseSets": change_sets(item["exerciseSets"])}
        if item["type"] == "CIRCUIT" and any(each["exerciseId"] == exercise_id for each in item["circuitExercises"]):
            entries = [
                {**entry, "exerciseId": with_exercise_id, "sets": change_sets(entry["sets"])}
                if entry["exerciseId"] == exercise_id
                else entry
                for entry in item["circuitExercises"]
            ]
            return cast("ItemChange", {"circuitExercises": entries})
        return {}

    blocks = await batches.read_with_exercise(ctx, owner, exercise_id, first, last, MAX_BLOCKS + 1)
    blocks = regular_blocks(_require_few(blocks, "startDate"))
    result, changed, skipped = await _change_items(ctx, owner, blocks, put_in, dry_run=dry_run)
    replaced = [
        (before, change_sets(before))
        for block, _ in changed
        for item in block["items"]
        if not items.is_recorded(item)
        for each, before in sets_by_exercise(item)
        if each == exercise_id
    ]
    return Outcome(result, _place(owner, [block for block, _ in changed]), skipped, replaced=replaced)


async def _change_items(
    ctx: Context,
    owner: ScheduleOwner,
    blocks: Sequence[StoredBlock],
    change: Callable[[WorkItem], ItemChange],
    *,
    dry_run: bool,
) -> tuple[schedule_models.ChangedItems, list[tuple[StoredBlock, list[WorkItem]]], list[SkippedBlock]]:
    """Change items with nothing done; `change` returns the new fields of an item, or none.

    Returns the result, the blocks with items that change, with their new items, and those in which what was done stays
    as it is.
    """
    changed: list[tuple[StoredBlock, list[WorkItem]]] = []
    skipped: list[SkippedBlock] = []
    count = 0
    for block in blocks:
        new_items = [
            item if items.is_recorded(item) else items.change_item(item, change(item)) for item in block["items"]
        ]
        different = sum(new is not item for new, item in zip(new_items, block["items"], strict=True))
        count += different
        if different:
            changed.append((block, new_items))
        if any(items.is_recorded(item) and change(item) for item in block["items"]):
            skipped.append(_skip(owner, block, "PARTLY_DONE" if different else "DONE"))
    dates = {block[owner.day_field] for block, _ in changed}
    days = await batches.read_days(ctx, owner, {"$in": list(dates)}) if dates else []
    return {**await _apply(ctx, owner, Batch(changed=changed), days, dry_run), "items": count}, changed, skipped


async def _apply(
    ctx: Context, owner: ScheduleOwner, batch: Batch, days: Sequence[DayBlock], dry_run: bool
) -> schedule_models.ScheduleResult:
    change = await batches.apply(ctx, owner, batch, days, dry_run=dry_run)
    return {"dryRun": dry_run, "changeId": None if dry_run else ctx.change_id, **change}


@transactional
async def clear(
    ctx: Context,
    owner: ScheduleOwner,
    first: schedule_models.Day,
    last: schedule_models.Day,
    *,
    dry_run: bool = False,
    field: str = "endDate",
) -> Outcome[schedule_models.ClearedSchedule]:
    """Remove the blocks with nothing done.

    Raises NotFound, Forbidden, and InvalidFields, naming `field`, if there are more than 500 blocks.
    """
    await owner.require_access(ctx)
    days = await get_target_days(ctx, owner, first, last, field)
    blocks = regular_blocks(days)
    removed = [block for block in blocks if has_nothing_done(block)]
    result = await _apply(ctx, owner, Batch(removed=[block["_id"] for block in removed]), days, dry_run)
    cleared: schedule_models.ClearedSchedule = {**result, "kept": len(blocks) - len(removed)}
    skipped = [_skip(owner, block, "DONE") for block in blocks if not has_nothing_done(block)]
    return Outcome(cleared, _place(owner, removed), skipped)


@transactional
async def create_program(ctx: Context, customer_id: ObjectId, first: str, last: str, name: str) -> Program:
    """Create a program with what is planned on a client's calendar from `first`, which is day 1, to `last`.

    Raises NotFound, Forbidden, and InvalidFields if there are more than 500 blocks.
    """
    calendar = ClientCalendar(customer_id)
    await calendar.require_access(ctx)
    source = await get_regular_blocks(ctx, calendar, first, last)
    program = await programs.create(ctx, {"name": name, "description": None, "tags": []})
    owner = ProgramPlan(program["_id"])
    plans: list[BlockPlan] = [
        {**block_models.plan_of(block, block["items"]), "day": days_between(first, str(block["date"])) + 1}
        for block in source
    ]
    await batches.write(ctx, owner, Batch(created=plans, is_copy=True), [])
    return await programs.get(ctx, program["_id"])


# --- Parts that assigning a program also uses ------------------------------------------------------------------------


async def get_regular_blocks(
    ctx: Context, owner: ScheduleOwner, first: schedule_models.Day, last: schedule_models.Day, field: str = ""
) -> list[StoredBlock]:
    """Return the blocks of days, without check-ins, of an owner whose access has been checked, in order.

    Raises InvalidFields, naming `field`, if there are more than 500; by default the field of the last day.
    """
    blocks = await batches.read_between(ctx, owner, first, last, MAX_BLOCKS + 1)
    return _require_few(blocks, field or ("endDate" if owner.day_field == "date" else "endDay"))


async def get_target_days(
    ctx: Context, owner: ScheduleOwner, first: schedule_models.Day, last: schedule_models.Day, field: str = ""
) -> list[DayBlock]:
    """Return the blocks on the days that an operation writes to, of an owner whose access has been checked, in order.

    Raises InvalidFields, naming `field`, if there are more than 500 without check-ins; by default the field of the
    target day.
    """
    days = await batches.read_days(ctx, owner, {"$gte": first, "$lte": last}, _MAX_READ)
    counted = regular_blocks(days) if len(days) < _MAX_READ else days
    _require_few(counted, field or ("targetDate" if owner.day_field == "date" else "targetDay"))
    return days


async def require_exercises(ctx: Context, progression: schedule_models.Progression) -> None:
    """Raise NotFound, naming the entry, for an unknown exercise of a progression."""
    ids = progression.get("exerciseIds") or []
    known = await exercises.get_names(ctx, ids)
    for index, exercise_id in enumerate(ids):
        if exercise_id not in known:
            raise NotFound("exercise", f"progression.exerciseIds.{index}: Exercise not found")


def _place(
    owner: ScheduleOwner, blocks: Sequence[StoredBlock | DayBlock | BlockPlan]
) -> list[schedule_models.PlacedBlock]:
    return [{"day": cast("schedule_models.Day", block[owner.day_field]), "name": block["name"]} for block in blocks]


def _skip(owner: ScheduleOwner, block: StoredBlock | DayBlock, code: schedule_models.SkipReason) -> SkippedBlock:
    """Return a block that an operation leaves alone, or in which it leaves what was done alone."""
    return {
        "wblockId": block["_id"],
        "day": cast("schedule_models.Day", block[owner.day_field]),
        "name": block["name"],
        "code": code,
    }


def _require_another(exercise_id: ObjectId, with_exercise_id: ObjectId) -> None:
    if exercise_id == with_exercise_id:
        raise invalid_field("withExerciseId", "must be another exercise", code="SAME_EXERCISE")


def _require_few(blocks: list[T], field: str) -> list[T]:
    if len(blocks) > MAX_BLOCKS:
        message = f"has more than {MAX_BLOCKS} blocks to work on: choose fewer days"
        raise invalid_field(field, message, code="TOO_MANY")
    return blocks


# --- One operation on the calendar of a client among many: what it changes, what it leaves alone, and why -------------
# The access of the caller to the client has been checked. `fields` are those of the operation on one client.


Operation = Literal["adjust", "replace-exercise", "clear", "shift", "copy"]
Fields = Mapping[str, Any]


async def apply(
    ctx: Context, operation: Operation, customer_id: ObjectId, fields: Fields, *, dry_run: bool = False
) -> Outcome[Any]:
    """Do an operation, or with `dry_run` decide the same and write nothing. Raises as the operation on one client.

    A shift has the result None.
    """
    calendar = ClientCalendar(customer_id)
    if operation == "shift":
        moved, stay = await blocks.shift_accessible(ctx, calendar, fields["from"], fields["days"], dry_run=dry_run)
        return Outcome(cast("Any", None), _place(calendar, moved), [_skip(calendar, block, "DONE") for block in stay])
    days = fields["startDate"], fields["endDate"]
    if operation == "adjust":
        return await adjust(ctx, calendar, *days, fields["progression"], dry_run=dry_run)
    if operation == "copy":
        options = fields["repeat"], fields["progression"], fields["onConflict"]
        request = schedule_models.CopyRequest(*days, fields["targetDate"], *options)
        return await copy_days(ctx, calendar, request, dry_run=dry_run)
    if operation == "replace-exercise":
        swap, load = (fields["exerciseId"], fields["withExerciseId"]), fields.get("load", "keep")
        return await replace_accessible(ctx, calendar, *swap, *days, load, dry_run=dry_run)
    return await clear(ctx, calendar, *days, dry_run=dry_run)


async def check(ctx: Context, operation: Operation, fields: Fields) -> None:
    """Raise NotFound for exercises in `fields` that the company does not have."""
    if operation == "replace-exercise":
        await exercises.require_known(ctx, fields["exerciseId"])
        await exercises.require(ctx, [fields["withExerciseId"]])
        _require_another(fields["exerciseId"], fields["withExerciseId"])
    if progression := fields.get("progression"):
        await require_exercises(ctx, progression)
