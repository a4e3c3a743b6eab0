"""What holds whatever is sent, and in whatever order it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

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
from coaching_service.progress.notes.service import harmless
from coaching_service.training.workouts.service import later
from coaching_service.training.workouts.set_schemas import PlannedSets
from coaching_service.training.workouts.sets import PLANNED, with_variables
from tests.client import MONDAY, SUNDAY, TUESDAY, CoachClient
from tests.training import Json, block_with, form_of, log, move, path_of, reminder, task, told

T = TypeVar("T")
quickly = settings(max_examples=60)

# --- sets and their variables ------------------------------------------------------------------------------------

_AMOUNTS: dict[str, st.SearchStrategy[Any]] = {
    "minPlannedReps": st.integers(0, 100),
    "maxPlannedReps": st.integers(0, 100),
    "minPlannedSeconds": st.integers(0, 600) | st.floats(0, 600),
    "maxPlannedSeconds": st.integers(0, 600) | st.floats(0, 600),
    "load": st.integers(0, 500) | st.floats(0, 500),
    "plannedMeters": st.integers(0, 50_000) | st.floats(0, 50_000),
    "rest": st.integers(0, 600),
}
_VARIABLES = {
    "reps": ("count", "minPlannedReps", "maxPlannedReps"),
    "load": ("unit", "load", "load"),
    "time": ("s", "minPlannedSeconds", "maxPlannedSeconds"),
    "distance": ("m", "plannedMeters", "plannedMeters"),
    "rest": ("s", "rest", "rest"),
}


@st.composite
def planned_sets(draw: st.DrawFn) -> Json:
    """A planned set of any type, some of its fields null, some left out, some of other types."""
    kind = draw(st.sampled_from(sorted(PLANNED)))
    fields = draw(st.fixed_dictionaries({}, optional={name: st.none() | each for name, each in _AMOUNTS.items()}))
    return {"type": kind, **fields}


def in_order(planned: Json) -> bool:
    ends = (("minPlannedReps", "maxPlannedReps"), ("minPlannedSeconds", "maxPlannedSeconds"))
    own = (pair for pair in ends if pair[0] in PLANNED[planned["type"]])
    given_ends = [(planned.get(low), planned.get(high)) for low, high in own]
    return all(low is None or high is None or low <= high for low, high in given_ends)


@quickly
@given(planned_sets(), st.sampled_from(["kg", "lb"]))
def test_the_variables_follow_from_the_plan_and_from_nothing_else(sent: Json, unit: str) -> None:
    """Contract 5: `{type: "exact", value}` or `{type: "range", min, max}`; exact when min equals max or only one is
    given. min above max is 400."""
    if not in_order(sent):
        with pytest.raises(ValidationError, match="greater"):
            PlannedSets().deserialize([sent])
        return
    [planned] = PlannedSets().deserialize([sent])

    read = with_variables(planned, unit)

    expected = {}
    for key, (named, low, high) in _VARIABLES.items():
        own = (*PLANNED[sent["type"]], "rest")
        ends = [sent[name] for name in (low, high) if name in own and sent.get(name) is not None]
        if ends:
            exact = {"type": "exact", "value": ends[0]}
            spread = {"type": "range", "min": ends[0], "max": ends[-1]}
            value = exact if ends[0] == ends[-1] else spread
            expected[key] = {"key": key, "unit": unit if named == "unit" else named, "value": value}
    assert {variable["key"]: variable for variable in read["variables"]} == expected
    assert len(read["variables"]) == len(expected)
    assert {name: value for name, value in read.items() if name != "variables"} == planned


@quickly
@given(st.lists(st.none() | st.integers(1, 12), min_size=1, max_size=8))
def test_sets_are_numbered_from_one_each_once(indexes: list[int | None]) -> None:
    """Contract 5: all take `index` (from 1, each once)."""
    sent = [{"type": "reps"} | ({} if index is None else {"index": index}) for index in indexes]
    numbers = [at if index is None else index for at, index in enumerate(indexes, 1)]
    if len(set(numbers)) < len(numbers):
        with pytest.raises(ValidationError, match="only once"):
            PlannedSets().deserialize(sent)
    else:
        assert [each["index"] for each in PlannedSets().deserialize(sent)] == sorted(numbers)


@quickly
@given(st.dates(), st.integers(-3_660, 3_660))
def test_a_date_shifted_back_is_where_it_was(day: Any, days: int) -> None:
    try:
        there = later(str(day), days, "days")
    except BadRequest:
        reject()
    assert later(there, -days, "days") == str(day)
    assert (there > str(day)) == (days > 0), "dates are in the order of their texts"


@quickly
@given(
    st.lists(st.sampled_from(["<b>", "</b>", "<script>", "</", "<a href=javascript:x>", "&lt;", '"', ">", "a", "<"]))
)
def test_what_is_harmless_once_stays_as_it_is(pieces: list[str]) -> None:
    try:
        clean = harmless("a" + "".join(pieces))
    except BadRequest:
        reject()
    assert harmless(clean) == clean
    assert "<script" not in clean


# --- any sequence of work on a calendar -----------------------------------------------------------------------------

DATES = st.sampled_from([MONDAY, TUESDAY, SUNDAY])
ITEMS = st.sampled_from([task(), reminder(), form_of({"label": "Well?"})])
WHICH = st.integers(0, 99)


def has_items(machine: CalendarWork) -> bool:
    return any(machine.plan.values())


class CalendarWork(RuleBasedStateMachine):
    """Create, copy, reschedule, move, log and delete, beside a plain model of what ought to be there."""

    def __init__(self, coach: CoachClient, run: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        super().__init__()
        self.coach, self.run = coach, run
        self.ana = run(coach.create_customer())
        self.plan: dict[str, list[str]] = {}  # the blocks, in the order of their days, with their items in order
        self.dates: dict[str, str] = {}
        self.done: set[str] = set()
        self.ever: list[str] = []
        self.gone: list[str] = []
        self.events: set[str] = set()

    def keep(self, block: Json) -> None:
        self.plan[block["_id"]] = [item["_id"] for item in block["items"]]
        self.dates[block["_id"]] = block["date"]
        self.ever += [block["_id"], *self.plan[block["_id"]]]

    def block(self, which: int) -> Json:
        """One of the blocks that are there."""
        return {"_id": list(self.plan)[which % len(self.plan)], "customerId": self.ana["_id"]}

    def item(self, which: int) -> tuple[Json, Json]:
        """One of the items that are there, and its block."""
        there = [(block, item) for block, held in self.plan.items() for item in held]
        block, item = there[which % len(there)]
        return {"_id": item}, {"_id": block, "customerId": self.ana["_id"]}

    @initialize()
    def begin(self) -> None:
        self.create(MONDAY, 3)
        self.create(TUESDAY, 2)

    @rule(date=DATES, count=st.integers(0, 2))
    def create(self, date: str, count: int) -> None:
        self.keep(self.run(block_with(self.coach, self.ana, *[task()] * count, date=date)))

    @precondition(lambda self: self.plan)
    @rule(which=WHICH, date=DATES)
    def copy(self, which: int, date: str) -> None:
        block = self.block(which)
        made = self.run(self.coach.post(f"{path_of(block)}/copy", {"date": date})).ok(201)
        assert len(made["items"]) == len(self.plan[block["_id"]])
        self.keep(made)

    @precondition(lambda self: self.plan)
    @rule(which=WHICH, date=DATES)
    def reschedule(self, which: int, date: str) -> None:
        block = self.block(which)
        self.dates[block["_id"]] = self.run(self.coach.patch(path_of(block), {"date": date})).ok()["date"]
        self.plan[block["_id"]] = self.plan.pop(block["_id"])

    @precondition(lambda self: self.plan)
    @rule(which=WHICH, item=ITEMS)
    def add(self, which: int, item: Json) -> None:
        block = self.block(which)
        added = self.run(self.coach.post(f"{path_of(block)}/witems", item)).ok(201)
        assert added["order"] == len(self.plan[block["_id"]])
        self.plan[block["_id"]].append(added["_id"])
        self.ever.append(added["_id"])

    @precondition(has_items)
    @rule(which=WHICH, to=WHICH, index=st.integers(0, 4))
    def move(self, which: int, to: int, index: int) -> None:
        (item, source), target = self.item(which), self.block(to)
        reached = self.run(move(self.coach, item, source, target, index)).ok()
        self.plan[source["_id"]].remove(item["_id"])
        self.plan[target["_id"]].insert(index, item["_id"])
        assert [each["_id"] for each in reached["items"]] == self.plan[target["_id"]]

    @precondition(has_items)
    @rule(which=WHICH, source=WHICH, to=WHICH)
    def move_from_elsewhere(self, which: int, source: int, to: int) -> None:
        (item, holder), elsewhere = self.item(which), self.block(source)
        if elsewhere != holder:
            self.run(move(self.coach, item, elsewhere, self.block(to), 0)).refused(409)

    @precondition(has_items)
    @rule(which=WHICH, done=st.booleans())
    def log(self, which: int, done: bool) -> None:
        item, block = self.item(which)
        self.run(log(self.coach, block, item, isCompleted=done)).ok()
        (self.done.add if done else self.done.discard)(item["_id"])
        for source, true in ((item["_id"], done), (block["_id"], set(self.plan[block["_id"]]) <= self.done)):
            (self.events.add if true else self.events.discard)(source)

    @precondition(has_items)
    @rule(which=WHICH)
    def delete_item(self, which: int) -> None:
        item, block = self.item(which)
        self.run(self.coach.delete(f"{path_of(block)}/witems/{item['_id']}")).ok(204)
        self.plan[block["_id"]].remove(item["_id"])
        self.gone.append(item["_id"])

    @precondition(lambda self: len(self.plan) > 1)
    @rule(which=WHICH)
    def delete_block(self, which: int) -> None:
        block = self.block(which)
        self.run(self.coach.delete(path_of(block))).ok(204)
        self.gone += [block["_id"], *self.plan.pop(block["_id"])]

    @precondition(lambda self: self.plan and self.gone)
    @rule(which=WHICH, there=WHICH)
    def what_is_gone_is_not_found(self, which: int, there: int) -> None:
        block, gone = self.block(there), {"_id": self.gone[which % len(self.gone)], "customerId": self.ana["_id"]}
        for refused in (
            log(self.coach, block, gone),
            move(self.coach, gone, block, block, 0),
            move(self.coach, gone, gone, block, 0),
            self.coach.delete(path_of(gone)),
        ):
            self.run(refused).refused(404)

    @invariant()
    def the_calendar_is_what_it_ought_to_be(self) -> None:
        """Order numbers are dense, identifiers unique, counts right."""
        found = self.run(self.coach.calendar(self.ana))
        expected = sorted(self.plan, key=lambda block: self.dates[block])
        assert [block["_id"] for block in found] == expected
        for block in found:
            assert [item["_id"] for item in block["items"]] == self.plan[block["_id"]]
            assert [item["order"] for item in block["items"]] == list(range(len(block["items"])))
            done = [item["_id"] in self.done for item in block["items"]]
            assert [item["isCompleted"] for item in block["items"]] == done
            assert block["isCompleted"] == (bool(done) and all(done))
        for date in set(self.dates.values()):
            orders = [block["order"] for block in found if block["date"] == date]
            assert orders == list(range(len(orders)))
        assert len(self.ever) == len(set(self.ever))

    def teardown(self) -> None:
        assert len(self.run(told(self.coach, self.ana))) == len(self.events)


async def test_any_sequence_of_work_leaves_the_calendar_right(coach: CoachClient) -> None:
    """Issue 5: any sequence of create, move, copy, log, delete keeps order numbers dense, ids unique and counts
    right. The machine runs in a thread of its own, the service on this test's loop."""
    loop = asyncio.get_running_loop()

    def run(work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, loop).result(60)

    how = settings(max_examples=8, stateful_step_count=25, suppress_health_check=list(HealthCheck))
    await asyncio.to_thread(run_state_machine_as_test, lambda: CalendarWork(coach, run), settings=how)
