"""Properties that hold for any input and any sequence of operations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import date
from functools import partial
from typing import Any, TypeVar, cast

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from marshmallow import ValidationError

from coaching_service.core.errors import BadRequest
from coaching_service.progress.notes import sanitise
from coaching_service.training.workouts.blocks.service import shift_date
from coaching_service.training.workouts.sets import PlannedSets, present_set
from tests.support.client import MONDAY, SUNDAY, TUESDAY, CoachClient
from tests.support.sampled import MORE
from tests.support.schedules import FIRST_DAY, LAST_DAY
from tests.support.training import Json, block_with, feed_types, form_of, log, move, path_of, reminder, task

T = TypeVar("T")
quick_settings = settings(max_examples=60)

# --- sets and their variables ------------------------------------------------------------------------------------

_AMOUNTS: dict[str, st.SearchStrategy[Any]] = {
    "minPlannedReps": st.integers(0, 100),
    "maxPlannedReps": st.integers(0, 100),
    "minPlannedSeconds": st.integers(0, 600) | st.floats(0, 600),
    "maxPlannedSeconds": st.integers(0, 600) | st.floats(0, 600),
    "load": st.integers(0, 500) | st.floats(0, 500),
    "plannedMeters": st.integers(0, 50_000) | st.floats(0, 50_000),
    "rest": st.integers(0, 600),
    "rir": st.integers(0, 100) | st.floats(0, 100),
    "rpe": st.integers(1, 10) | st.floats(1, 10),
}
_FIELDS = {
    "reps_load": ("minPlannedReps", "maxPlannedReps", "load"),
    "reps": ("minPlannedReps", "maxPlannedReps"),
    "time": ("minPlannedSeconds", "maxPlannedSeconds"),
    "time_load": ("minPlannedSeconds", "maxPlannedSeconds", "load"),
    "distance": ("plannedMeters",),
}
_EVERY_SET = ("rest", "rir", "rpe")
_VARIABLES = {
    "reps": ("count", "minPlannedReps", "maxPlannedReps"),
    "load": ("unit", "load", "load"),
    "time": ("s", "minPlannedSeconds", "maxPlannedSeconds"),
    "distance": ("m", "plannedMeters", "plannedMeters"),
    "rest": ("s", "rest", "rest"),
    "rir": ("count", "rir", "rir"),
    "rpe": ("rpe", "rpe", "rpe"),
}


@st.composite
def planned_sets(draw: st.DrawFn) -> Json:
    """A planned set of any type: some fields null, some missing, some belonging to other types."""
    set_type = draw(st.sampled_from(sorted(_FIELDS)))
    fields = draw(st.fixed_dictionaries({}, optional={name: st.none() | each for name, each in _AMOUNTS.items()}))
    return {"type": set_type, **fields}


def bounds_are_ordered(planned: Json) -> bool:
    fields = (("minPlannedReps", "maxPlannedReps"), ("minPlannedSeconds", "maxPlannedSeconds"))
    bounds = [(planned.get(low), planned.get(high)) for low, high in fields if low in _FIELDS[planned["type"]]]
    return all(low is None or high is None or low <= high for low, high in bounds)


@quick_settings
@given(planned_sets(), st.sampled_from(["kg", "lb"]))
def test_variables_are_derived_from_the_planned_fields(sent: Json, unit: str) -> None:
    """Contract 5: `{type: "exact", value}` or `{type: "range", min, max}`; exact when min equals max or only one is
    given. min above max is 400."""
    if not bounds_are_ordered(sent):
        with pytest.raises(ValidationError, match="greater"):
            PlannedSets().deserialize([sent])
        return
    [planned] = PlannedSets().deserialize([sent])

    presented = present_set(planned, unit)

    expected = {}
    for key, (fixed_unit, low, high) in _VARIABLES.items():
        fields = (*_FIELDS[sent["type"]], *_EVERY_SET)
        bounds = [sent[name] for name in (low, high) if name in fields and sent.get(name) is not None]
        if bounds:
            exact = {"type": "exact", "value": bounds[0]}
            interval = {"type": "range", "min": bounds[0], "max": bounds[-1]}
            value = exact if bounds[0] == bounds[-1] else interval
            expected[key] = {"key": key, "unit": unit if fixed_unit == "unit" else fixed_unit, "value": value}
    assert {variable["key"]: variable for variable in presented["variables"]} == expected
    assert len(presented["variables"]) == len(expected)
    defaults = {"isAmrap": False, "perSide": False, "setKind": "normal"}
    added = {"variables", "loadPercent"} - planned.keys()
    assert {name: value for name, value in presented.items() if name not in added} == defaults | planned


@quick_settings
@given(st.lists(st.none() | st.integers(1, 12), min_size=1, max_size=8))
def test_set_indexes_are_unique_and_default_to_the_position(indexes: list[int | None]) -> None:
    """Contract 5: all take `index` (from 1, each once)."""
    sent = [{"type": "reps"} | ({} if index is None else {"index": index}) for index in indexes]
    numbers = [at if index is None else index for at, index in enumerate(indexes, 1)]
    if len(set(numbers)) < len(numbers):
        with pytest.raises(ValidationError, match="only once"):
            PlannedSets().deserialize(sent)
    else:
        assert [each["index"] for each in PlannedSets().deserialize(sent)] == sorted(numbers)


@quick_settings
@given(st.dates(date.fromisoformat(FIRST_DAY), date.fromisoformat(LAST_DAY)), st.integers(-3_660, 3_660))
def test_shifting_a_date_back_restores_it(day: Any, days: int) -> None:
    try:
        shifted = shift_date(str(day), days, "days")
    except BadRequest:
        reject()
    assert shift_date(shifted, -days, "days") == str(day)
    assert (shifted > str(day)) == (days > 0), "dates sort as text"


@quick_settings
@given(
    st.lists(st.sampled_from(["<b>", "</b>", "<script>", "</", "<a href=javascript:x>", "&lt;", '"', ">", "a", "<"]))
)
def test_sanitising_html_is_idempotent(pieces: list[str]) -> None:
    try:
        clean = sanitise("a" + "".join(pieces))
    except BadRequest:
        reject()
    assert sanitise(clean) == clean
    assert "<script" not in clean


# --- random sequences of operations on a calendar -----------------------------------------------------------------------------

DATES = st.sampled_from([MONDAY, TUESDAY, SUNDAY])
ITEMS = st.sampled_from([task(), reminder(), form_of({"label": "Well?"})])
WHICH = st.integers(0, 99)


def has_items(machine: CalendarWork) -> bool:
    return any(machine.plan.values())


class CalendarWork(RuleBasedStateMachine):
    """Create, copy, reschedule, move, log and delete blocks and items, compared with a simple model."""

    def __init__(self, coach: CoachClient, run: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        super().__init__()
        self.coach, self.run = coach, run
        self.ana = run(coach.create_customer())
        self.plan: dict[str, list[str]] = {}  # item identifiers in order, by block in order of creation or rescheduling
        self.dates: dict[str, str] = {}
        self.done: set[str] = set()
        self.forms: set[str] = set()
        self.all_ids: list[str] = []
        self.deleted: list[str] = []

    def remember(self, block: Json) -> None:
        self.forms |= {item["_id"] for item in block["items"] if item["type"] == "FORM"}
        self.plan[block["_id"]] = [item["_id"] for item in block["items"]]
        self.dates[block["_id"]] = block["date"]
        self.all_ids += [block["_id"], *self.plan[block["_id"]]]

    def block(self, which: int) -> Json:
        """A block of the model."""
        return {"_id": list(self.plan)[which % len(self.plan)], "customerId": self.ana["_id"]}

    def item(self, which: int) -> tuple[Json, Json]:
        """An item of the model, and its block."""
        items = [(block, item) for block, block_items in self.plan.items() for item in block_items]
        block, item = items[which % len(items)]
        return {"_id": item}, {"_id": block, "customerId": self.ana["_id"]}

    @initialize()
    def begin(self) -> None:
        self.create(MONDAY, 3)
        self.create(TUESDAY, 2)

    @rule(date=DATES, count=st.integers(0, 2))
    def create(self, date: str, count: int) -> None:
        self.remember(self.run(block_with(self.coach, self.ana, *[task()] * count, date=date)))

    @precondition(lambda self: self.plan)
    @rule(which=WHICH, date=DATES)
    def copy(self, which: int, date: str) -> None:
        block = self.block(which)
        created = self.run(self.coach.post(f"{path_of(block)}/copy", {"date": date})).ok(201)
        assert len(created["items"]) == len(self.plan[block["_id"]])
        self.remember(created)

    @precondition(lambda self: self.plan)
    @rule(which=WHICH, date=DATES)
    def reschedule(self, which: int, date: str) -> None:
        block = self.block(which)
        self.run(self.coach.patch(path_of(block), {"date": date})).ok()
        if date != self.dates[block["_id"]]:
            self.dates[block["_id"]] = date
            self.plan[block["_id"]] = self.plan.pop(block["_id"])

    @precondition(lambda self: self.plan)
    @rule(which=WHICH, item=ITEMS)
    def add(self, which: int, item: Json) -> None:
        block = self.block(which)
        added = self.run(self.coach.post(f"{path_of(block)}/witems", item)).ok(201)
        assert added["order"] == len(self.plan[block["_id"]])
        self.plan[block["_id"]].append(added["_id"])
        self.all_ids.append(added["_id"])
        if item["type"] == "FORM":
            self.forms.add(added["_id"])

    @precondition(has_items)
    @rule(which=WHICH, to=WHICH, index=st.integers(0, 4))
    def move(self, which: int, to: int, index: int) -> None:
        (item, source), target = self.item(which), self.block(to)
        target_block = self.run(move(self.coach, item, source, target, index)).ok()
        self.plan[source["_id"]].remove(item["_id"])
        self.plan[target["_id"]].insert(index, item["_id"])
        assert [each["_id"] for each in target_block["items"]] == self.plan[target["_id"]]

    @precondition(has_items)
    @rule(which=WHICH, source=WHICH, to=WHICH)
    def move_from_another_block(self, which: int, source: int, to: int) -> None:
        (item, own_block), other_block = self.item(which), self.block(source)
        if other_block != own_block:
            self.run(move(self.coach, item, other_block, self.block(to), 0)).refused(409)

    @precondition(has_items)
    @rule(which=WHICH, done=st.booleans())
    def log(self, which: int, done: bool) -> None:
        item, block = self.item(which)
        self.run(log(self.coach, block, item, isCompleted=done)).ok()
        (self.done.add if done else self.done.discard)(item["_id"])

    @precondition(has_items)
    @rule(which=WHICH)
    def delete_item(self, which: int) -> None:
        item, block = self.item(which)
        self.run(self.coach.delete(f"{path_of(block)}/witems/{item['_id']}")).ok(204)
        self.plan[block["_id"]].remove(item["_id"])
        self.deleted.append(item["_id"])

    @precondition(lambda self: len(self.plan) > 1)
    @rule(which=WHICH)
    def delete_block(self, which: int) -> None:
        block = self.block(which)
        self.run(self.coach.delete(path_of(block))).ok(204)
        self.deleted += [block["_id"], *self.plan.pop(block["_id"])]

    @precondition(lambda self: self.plan and self.deleted)
    @rule(which=WHICH, to=WHICH)
    def deleted_documents_are_not_found(self, which: int, to: int) -> None:
        block, deleted = self.block(to), {"_id": self.deleted[which % len(self.deleted)], "customerId": self.ana["_id"]}
        for request in (
            log(self.coach, block, deleted),
            move(self.coach, deleted, block, block, 0),
            move(self.coach, deleted, deleted, block, 0),
            self.coach.delete(path_of(deleted)),
        ):
            self.run(request).refused(404)

    @invariant()
    def the_calendar_equals_the_model(self) -> None:
        """Order numbers are dense, identifiers unique, counts right."""
        calendar = self.run(self.coach.calendar(self.ana))
        expected = sorted(self.plan, key=lambda block: self.dates[block])
        assert [block["_id"] for block in calendar] == expected
        for block in calendar:
            assert [item["_id"] for item in block["items"]] == self.plan[block["_id"]]
            assert [item["order"] for item in block["items"]] == list(range(len(block["items"])))
            done = [item["_id"] in self.done for item in block["items"]]
            assert [item["isCompleted"] for item in block["items"]] == done
            assert block["isCompleted"] == (bool(done) and all(done))
        for day in set(self.dates.values()):
            orders = [block["order"] for block in calendar if block["date"] == day]
            assert orders == list(range(len(orders)))
        assert len(self.all_ids) == len(set(self.all_ids))

    def teardown(self) -> None:
        """What is completed has an entry in the feed, whatever completed it; the answers of a deleted form keep theirs."""
        expected = ["form_submitted"] * len(self.done & self.forms)
        for block_items in self.plan.values():
            expected += ["item_logged"] * len(self.done.intersection(block_items) - self.forms)
            if block_items and self.done.issuperset(block_items):
                expected.append("workout_completed")
        assert self.run(feed_types(self.coach, self.ana)) == sorted(expected)


async def test_any_sequence_of_operations_keeps_the_calendar_consistent(coach: CoachClient) -> None:
    """Order numbers stay dense, identifiers unique and counts right.

    The state machine runs in a thread of its own, the service on the loop of this test.
    """
    loop = asyncio.get_running_loop()

    def run(work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, loop).result(60)

    machine_settings = settings(max_examples=3 * MORE, stateful_step_count=25, suppress_health_check=list(HealthCheck))
    machine = partial(CalendarWork, coach, run)
    await asyncio.to_thread(run_state_machine_as_test, cast("type[CalendarWork]", machine), settings=machine_settings)
