"""Properties of the operations on many days that hold for any calendar."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.client import MONDAY, SUNDAY, CoachClient
from tests.support.sampled import MORE
from tests.support.schedules import EVER, batch, operate, plan_of, without_identity
from tests.support.training import Json, circuit_of, exercise_of, log, path_of, task

DAYS = [f"2026-03-{day:02}" for day in range(2, 9)]
TARGETS = ["2026-03-05", "2026-03-09", "2026-02-26"]  # overlapping, after, and before the week
# What is done for an item: nothing, a comment, everything.
DONE: list[Json | None] = [None, {"isCompleted": False, "comment": "Hard"}, {"isCompleted": True}]


@st.composite
def weeks(draw: st.DrawFn) -> list[Json]:
    """Blocks of a week: their day, whether they rest, the session's log, and items as (kind, load, log)."""
    item = st.tuples(st.sampled_from(["squat", "bench", "circuit", "task"]), st.integers(0, 800), st.sampled_from(DONE))
    block = st.fixed_dictionaries(
        {
            "date": st.sampled_from(DAYS),
            "isRest": st.booleans(),
            "sessionRpe": st.none() | st.just(7),
            "items": st.lists(item, max_size=3),
        }
    )
    return draw(st.lists(block, min_size=1, max_size=5))


@st.composite
def progressions(draw: st.DrawFn) -> Json:
    load = st.fixed_dictionaries({"add": st.integers(-20, 20)}) | st.fixed_dictionaries(
        {"percent": st.integers(-50, 50)}
    )
    progression: Json = {"load": draw(load)}
    if draw(st.booleans()):
        progression["reps"] = {"add": draw(st.integers(-12, 12))}
    if draw(st.booleans()):
        progression["rounding"] = draw(st.sampled_from([0.5, 1, 1.25, 5]))
    return progression


@st.composite
def operations(draw: st.DrawFn) -> tuple[str, Json]:
    """An operation on the week and its body; the test replaces `exercise` with an identifier."""
    week = {"startDate": MONDAY, "endDate": SUNDAY}
    name = draw(st.sampled_from(["copy", "adjust", "replace-exercise", "clear"]))
    if name == "copy":
        options = {"onConflict": draw(st.sampled_from(["add", "skip", "replace"])), "repeat": draw(st.integers(1, 3))}
        progression = draw(st.none() | progressions())
        return name, {**week, **options, "targetDate": draw(st.sampled_from(TARGETS)), "progression": progression}
    if name == "adjust":
        return name, {**week, "progression": draw(progressions())}
    if name == "replace-exercise":
        return name, {"startDate": MONDAY, "endDate": draw(st.sampled_from([None, SUNDAY, "2026-03-04"]))}
    return name, week


def shifts() -> st.SearchStrategy[tuple[str, Json]]:
    """Moving the workouts from a day on; by no day it would change nothing."""
    days = st.integers(-9, 9).filter(bool)
    return st.builds(lambda first, by: ("shift", {"from": first, "days": by}), st.sampled_from(DAYS), days)


class Calendars:
    """Creates clients with random calendars."""

    def __init__(self, coach: CoachClient, squat: Json, bench: Json) -> None:
        self.coach, self.squat, self.bench = coach, squat, bench

    async def client_with(self, week: list[Json]) -> Json:
        """A client with these blocks on the calendar, with their logs."""
        ana = await self.coach.create_customer()
        blocks = [
            {
                "name": f"Block {number}",
                "date": block["date"],
                "isRest": block["isRest"],
                "items": [self._item(kind, load / 4) for kind, load, _ in block["items"]],
            }
            for number, block in enumerate(week)
        ]
        created = (await batch(self.coach, ana, *blocks))["created"]
        for stored, block in zip(created, week, strict=True):
            for item, (_, _, done) in zip(stored["items"], block["items"], strict=True):
                if done is not None:
                    (await log(self.coach, stored, item, **done)).ok()
            if block["sessionRpe"] is not None:
                (await self.coach.put(f"{path_of(stored)}/log", {"sessionRpe": block["sessionRpe"]})).ok()
        return ana

    def _item(self, kind: str, load: float) -> Json:
        planned = {"type": "reps_load", "minPlannedReps": 3, "maxPlannedReps": 8, "load": load}
        if kind == "circuit":
            return circuit_of(self.squat, self.bench)
        return task() if kind == "task" else exercise_of(self.squat if kind == "squat" else self.bench, planned)

    def body(self, operation: str, body: Json) -> Json:
        """The body with the exercises of this company."""
        exercises = {"exerciseId": self.bench["_id"], "withExerciseId": self.squat["_id"]}
        return {**body, **exercises} if operation == "replace-exercise" else body


@pytest.fixture
async def calendars(coach: CoachClient) -> Calendars:
    return Calendars(coach, await coach.create_exercise("Squat"), await coach.create_exercise("Bench press"))


async def for_any(check: Callable[..., Awaitable[None]], *strategies: st.SearchStrategy[Any], examples: int) -> None:
    """Run an asynchronous check with generated values: hypothesis runs in a thread, the check on this loop."""
    loop = asyncio.get_running_loop()

    @settings(max_examples=examples * MORE, suppress_health_check=list(HealthCheck))
    @given(st.tuples(*strategies))
    def run(values: tuple[Any, ...]) -> None:
        asyncio.run_coroutine_threadsafe(_awaited(check(*values)), loop).result(60)

    await asyncio.to_thread(run)


async def _awaited(work: Awaitable[None]) -> None:
    await work


async def test_a_dry_run_equals_the_run_and_writes_nothing(calendars: Calendars) -> None:
    coach = calendars.coach

    async def check(week: list[Json], operation: tuple[str, Json]) -> None:
        name, body = operation[0], calendars.body(*operation)
        ana = await calendars.client_with(week)
        before = await coach.calendar(ana, *EVER)
        shown = await operate(coach, ana, name, **body, dryRun=True)
        assert await coach.calendar(ana, *EVER) == before
        result = await operate(coach, ana, name, **body)
        assert without_identity(shown) == without_identity(result)
        assert shown["removed"] == result["removed"]
        after = {block["_id"]: block for block in await coach.calendar(ana, *EVER)}
        for block in (*result["created"], *result["changed"]):
            assert after[block["_id"]] == block
        created = {block["_id"] for block in result["created"]}
        assert after.keys() == ({block["_id"] for block in before} - set(result["removed"])) | created

    await for_any(check, weeks(), operations(), examples=3)


async def test_an_operation_on_many_clients_equals_its_preview_and_is_undone_at_once(calendars: Calendars) -> None:
    """Each client changes as by the operation on one client; what is counted and left alone is what the calendars say."""
    coach = calendars.coach

    async def check(several: list[list[Json]], operation: tuple[str, Json]) -> None:
        name, fields = operation[0], calendars.body(*operation)
        clients = [await calendars.client_with(week) for week in several]
        twins = [await calendars.client_with(week) for week in several]
        path, body = f"/coach/customers/bulk/schedule-{name}", {"ids": [each["_id"] for each in clients], **fields}
        before = [await coach.calendar(each, *EVER) for each in clients]
        shown = (await coach.post(path, {**body, "dryRun": True})).ok()
        assert [await coach.calendar(each, *EVER) for each in clients] == before
        reply = await coach.post(path, body)
        assert reply.ok() == shown
        after = [await coach.calendar(each, *EVER) for each in clients]
        for client, twin, result, old, new in zip(clients, twins, shown["results"], before, after, strict=True):
            assert result["customerId"] == client["_id"]
            await _operate_on_one(coach, twin, name, fields)
            assert [_dated_plan(each) for each in new] == [
                _dated_plan(each) for each in await coach.calendar(twin, *EVER)
            ]
            assert result["changed"] == len(_different(old, new))
            left = {each["wblockId"] for each in result["skipped"] if each["code"] != "PARTLY_DONE"}
            assert left.isdisjoint(_different(old, new) - ({block["_id"] for block in new} - {*map(_id, old)}))
            assert _done_items(new) == _done_items(old)
        if "X-Change-Id" in reply.headers:
            undone = (await coach.undo(reply)).ok()
            assert undone["failed"] == []
        for client, old in zip(clients, before, strict=True):
            restored = await coach.calendar(client, *EVER)
            assert [(_id(block), plan_of(block)) for block in restored] == [
                (_id(block), plan_of(block)) for block in old
            ]

    await for_any(check, st.lists(weeks(), min_size=1, max_size=2), operations() | shifts(), examples=3)


async def _operate_on_one(coach: CoachClient, customer: Json, name: str, fields: Json) -> None:
    if name == "shift":
        (await coach.post(f"/coach/customers/{customer['_id']}/wblocks/shift", fields)).ok()
    else:
        await operate(coach, customer, name, **fields)


def _id(block: Json) -> str:
    return str(block["_id"])


def _dated_plan(block: Json) -> tuple[str, Any]:
    plan = {name: value for name, value in plan_of(block).items() if name != "customerId"}
    return block["date"], {**plan, "items": [{**item, "completedAt": None} for item in plan["items"]]}


def _different(before: list[Json], after: list[Json]) -> set[str]:
    """The identifiers of the blocks that were created, changed, moved or removed; the order in a day follows from it."""
    old, new = [{_id(block): _dated_plan({**block, "order": 0}) for block in blocks} for blocks in (before, after)]
    return {each for each in old.keys() | new.keys() if old.get(each) != new.get(each)}


async def test_no_operation_touches_work_that_is_done(calendars: Calendars) -> None:
    coach = calendars.coach

    async def check(week: list[Json], operation: tuple[str, Json]) -> None:
        ana = await calendars.client_with(week)
        before = _done_items(await coach.calendar(ana, *EVER))
        result = await operate(coach, ana, operation[0], **calendars.body(*operation))
        after = await coach.calendar(ana, *EVER)
        done = _done_items(after)
        assert done == before
        names = [block["name"] for block in after if block["sessionRpe"] is not None]
        assert sorted(names) == sorted(f"Block {n}" for n, block in enumerate(week) if block["sessionRpe"] is not None)
        assert all(item["isCompleted"] is False for block in result["created"] for item in block["items"])

    await for_any(check, weeks(), operations(), examples=3)


def _done_items(blocks: list[Json]) -> dict[str, Json]:
    """The items that have a log, by identifier, without the version and the order, which are the block's."""
    return {
        item["_id"]: {"day": block["date"], **{name: item[name] for name in item if name != "version"}}
        for block in blocks
        for item in block["items"]
        if item["isCompleted"] or item["comment"]
    }


async def test_copying_and_clearing_the_target_changes_nothing(calendars: Calendars) -> None:
    coach = calendars.coach

    async def check(week: list[Json], repeat: int) -> None:
        ana = await calendars.client_with(week)
        before = await coach.calendar(ana, *EVER)
        copied = await operate(
            coach, ana, "copy", startDate=MONDAY, endDate=SUNDAY, targetDate="2026-03-09", repeat=repeat
        )
        assert len(copied["created"]) == repeat * len(week)
        plans = [plan_of(block) for block in before]
        blank = [_without_log(plan) for plan in plans]
        assert [_without_log(plan_of(block)) for block in copied["created"]] == blank * repeat
        cleared = await operate(coach, ana, "clear", startDate="2026-03-09", endDate="2026-03-29")
        assert cleared["removed"] == [block["_id"] for block in copied["created"]]
        assert await coach.calendar(ana, *EVER) == before

    await for_any(check, weeks(), st.integers(1, 3), examples=2)


def _without_log(plan: Json) -> Json:
    omitted = ("isCompleted", "completedAt", "comment", "sessionRpe")
    items = [{name: value for name, value in item.items() if name not in omitted} for item in plan["items"]]
    return {**{name: value for name, value in plan.items() if name not in omitted}, "items": items}


async def test_repeating_is_copying_one_week_after_another(calendars: Calendars) -> None:
    """`repeat` and `progression` have the same result as copying each new week to the next one."""
    coach = calendars.coach
    mondays = [MONDAY, "2026-03-09", "2026-03-16", "2026-03-23"]
    sundays = [SUNDAY, "2026-03-15", "2026-03-22", "2026-03-29"]

    async def check(week: list[Json], progression: Json) -> None:
        ana, bo = await calendars.client_with(week), await calendars.client_with(week)
        body = {"startDate": MONDAY, "endDate": SUNDAY, "targetDate": mondays[1], "progression": progression}
        at_once = (await operate(coach, ana, "copy", **body, repeat=3))["created"]
        in_turn: list[Json] = []
        for first, last, target in zip(mondays, sundays, mondays[1:], strict=False):
            body = {"startDate": first, "endDate": last, "targetDate": target, "progression": progression}
            in_turn += (await operate(coach, bo, "copy", **body))["created"]
        assert [(b["date"], plan_of(b)["items"]) for b in at_once] == [
            (b["date"], plan_of(b)["items"]) for b in in_turn
        ]

    await for_any(check, weeks(), progressions(), examples=2)
