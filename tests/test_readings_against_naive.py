"""Whatever happens on a calendar, every reading is what one works out plainly from the calendar itself."""

from __future__ import annotations

import asyncio
from datetime import date, timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coaching_service.core.ids import ObjectId
from tests import naive
from tests.client import CoachClient
from tests.conftest import NewCompany
from tests.results import asked, compliance, past, records, sets, skipped, workload
from tests.training import (
    Json,
    block_with,
    circuit_of,
    client_path,
    exercise_of,
    feed,
    log,
    move,
    path_of,
    task,
)

# Days before today: close together, and at the edges of 7 and 28 days (of 30 and 90: test_compliance.py).
AGO = (0, 1, 6, 7, 27, 28, 29, 34, 35)
SET = st.tuples(st.integers(0, 14), st.sampled_from([None, 0, 20, 22.5, 60, 100]), st.booleans(), st.booleans())
SETS = st.lists(SET, min_size=1, max_size=3)
NUMBER = st.integers(0, 50)
LOG = st.tuples(st.just("log"), NUMBER, SETS, st.sampled_from([True, True, False]))
REPLAN = st.tuples(st.just("replan"), NUMBER, st.sampled_from("ab"), st.booleans())
STEP = st.one_of(
    LOG,
    LOG,
    REPLAN,
    REPLAN,
    st.tuples(st.just("block"), st.sampled_from(AGO), st.lists(st.sampled_from("abcot"), max_size=3)),
    st.tuples(st.sampled_from(["undo", "delete item", "delete block", "rest", "copy"]), NUMBER),
    st.tuples(st.just("rate"), NUMBER, st.sampled_from([None, 0, 5, 8]), st.sampled_from([None, 30, 45])),
    st.tuples(st.just("redate"), NUMBER, st.sampled_from(AGO)),
    st.tuples(st.just("move"), NUMBER, NUMBER, st.integers(0, 3)),
)
# What every calendar begins with: blocks, of which six items are logged.
FIRST = [("block", 1, ["a", "b", "o"]), ("block", 29, ["o", "t", "a"]), ("block", 7, [])]


class Calendar:
    """A client whose calendar changes, and three exercises."""

    def __init__(self, coach: CoachClient, client: Json, exercises: dict[str, Json]) -> None:
        self.coach, self.client, self.exercises = coach, client, exercises
        self.today: date = coach.ctx.caller.today()

    async def now(self) -> list[Json]:
        """The whole calendar."""
        return await self.coach.calendar(self.client, self.day(400), self.day(-400))

    def day(self, ago: int) -> str:
        return str(self.today - timedelta(days=ago))

    def item(self, letter: str) -> Json:
        """An item to add: of an exercise, a circuit of two, or a task."""
        if letter == "o":
            return circuit_of(self.exercises["a"], self.exercises["b"])
        return task() if letter == "t" else self.plan(letter, warm_up=letter == "b")

    def plan(self, letter: str, *, warm_up: bool) -> Json:
        first = {"type": "reps_load", "minPlannedReps": 8, "load": 60, "isWarmup": warm_up}
        return exercise_of(self.exercises[letter], first, first | {"isWarmup": False})

    def done(self, item: Json, told: list[tuple[int, float | None, bool, bool]]) -> list[Json]:
        """Sets for an item, spread over the exercises and rounds of a circuit."""
        made = []
        for at, (reps, load, completed, second) in enumerate(told):
            each = {"index": at + 1, **(sets((reps, load))[0] if completed else skipped(reps, load or 0))}
            if item["type"] == "CIRCUIT":
                entry = item["circuitExercises"][min(int(second), len(item["circuitExercises"]) - 1)]
                each |= {"exerciseId": entry["exerciseId"], "round": 1 + at % item["rounds"]}
            made.append(each)
        return made

    async def do(self, step: tuple[Any, ...]) -> None:
        """One step; the blocks and items it is about are counted round and round."""
        kind, number, *rest = step
        if kind == "block":
            await block_with(self.coach, self.client, *map(self.item, rest[0]), date=self.day(number))
            return
        blocks = await self.now()
        items = [(block, item) for block in blocks for item in block["items"]]
        if not blocks or (kind in ("log", "undo", "delete item", "move", "replan") and not items):
            return
        block = blocks[number % len(blocks)]
        holder, item = items[number % len(items)] if items else (block, {})
        where = f"{path_of(holder)}/witems/{item.get('_id')}"
        if kind == "log":
            logs = item["type"] in ("EXERCISE", "CIRCUIT")
            fields = {"customerSets": self.done(item, rest[0])} if logs else {}
            (await log(self.coach, holder, item, isCompleted=rest[1], **fields)).ok()
        elif kind == "undo":
            (await log(self.coach, holder, item, isCompleted=False)).ok()
        elif kind == "delete item":
            (await self.coach.delete(where)).ok(204)
        elif kind == "move":
            (await move(self.coach, item, holder, blocks[rest[0] % len(blocks)], rest[1])).ok()
        elif kind == "replan":
            fields = self.plan(rest[0], warm_up=rest[1]) if item["type"] == "EXERCISE" else {}
            fields |= circuit_of(self.exercises[rest[0]]) if item["type"] == "CIRCUIT" else {}
            (await self.coach.patch(where, fields)).ok()
        elif kind == "delete block":
            (await self.coach.delete(path_of(block))).ok(204)
        elif kind == "copy":
            (await self.coach.post(f"{path_of(block)}/copy", {"date": self.day(number)})).ok(201)
        elif kind == "rest":
            (await self.coach.patch(path_of(block), {"isRest": not block["isRest"]})).ok()
        elif kind == "rate":
            body = {"sessionRpe": rest[0], "durationMinutes": rest[1]}
            (await self.coach.put(f"{path_of(block)}/log", body)).ok()
        else:
            (await self.coach.patch(path_of(block), {"date": self.day(rest[0])})).ok()

    async def compare(self) -> None:
        """Every reading, beside the calendar."""
        coach, client, calendar = self.coach, self.client, await self.now()
        first, last = self.day(37), self.day(-2)
        for exercise in self.exercises.values():
            for planned_too in (False, True):
                found = await past(coach, client, exercise, includeIncomplete=str(planned_too).lower())
                estimates = [session["estimatedOneRepMax"] for session in found]
                for session, estimate in zip(found, estimates, strict=True):
                    session["estimate"] = estimate and estimate["value"]
                expected = naive.history(calendar, exercise["_id"], planned_too=planned_too)
                names = ("date", "wblockId", "isCompleted", "sets", "volumeLoad", "estimate")
                assert [{name: session[name] for name in names} for session in found] == expected
        kept = {(r["exerciseId"], r["type"]): r for r in await records(coach, client)}
        facts = ("value", "reps", "date", "witemId")
        bests = naive.records(calendar)
        assert {key: tuple(record[fact] for fact in facts) for key, record in kept.items()} == bests
        told = [event["data"] for event in await feed(coach, client) if event["type"] == "personal_record"]
        about = {(e["exerciseId"], e["recordType"]): (e["value"], e["reps"], e["day"]) for e in told}
        assert about == {key: best[:3] for key, best in bests.items()}
        assert len(told) == len(about)
        for start, end in ((first, last), (self.day(28), self.day(1))):
            muscles = (await asked(coach, client, "musclegroups/volume", startDate=start, endDate=end)).ok()
            figures = {m["name"]: [m["sets"], m["reps"], m["volumeLoad"]] for m in muscles["muscleGroups"]}
            assert figures == naive.volume(calendar, list(self.exercises.values()), start, end)
        for group_by in ("day", "week", "month"):
            periods = await workload(coach, client, first, last, groupBy=group_by)
            names = ("date", "sessions", "sets", "reps", "volumeLoad", "sessionLoad", "acuteChronicRatio", "ratioOf")
            read = [tuple(period[name] for name in names) for period in periods]
            assert read == naive.workload(calendar, first, last, group_by)
        answer = await compliance(coach, client, **{"from": first, "to": last})
        names = ("date", "isWorkoutDay", "isRestDay", "isCompleted", "totalItems", "completedItems")
        read = [tuple(day[name] for name in names) for day in answer["dailyCompliance"]]
        assert read == naive.compliance(calendar, first, last)
        assert answer["workoutCompletionPercentage"] == naive.percentage(calendar, first, last)
        role = (await coach.get(client_path(client))).ok()["customerRoleData"]
        for days in (7, 30, 90):
            expected_rate = naive.percentage(calendar, self.day(days - 1), self.day(0))
            assert role[f"complianceRate{days}d"] == expected_rate

    async def compare_kept(self) -> None:
        """The rates in the list are right after a log."""
        block = await block_with(self.coach, self.client, task(), date=self.day(0))
        (await log(self.coach, block, block["items"][0])).ok()
        listed = (await self.coach.customers(contains=self.client["name"]))["docs"]
        [kept] = [each["customerRoleData"] for each in listed if each["_id"] == self.client["_id"]]
        calendar = await self.now()
        for days in (7, 30, 90):
            assert kept[f"complianceRate{days}d"] == naive.percentage(calendar, self.day(days - 1), self.day(0))


async def begin(coach: CoachClient) -> Calendar:
    """A client without a calendar, and exercises that train muscles. What answers look like is for other stories."""
    coach.checks = False
    muscles = [muscle["_id"] for muscle in (await coach.get("/muscle-groups")).ok()]
    roles = {"a": ("primary", "secondary"), "b": ("secondary", "primary"), "c": ("primary", "primary")}
    made = {
        letter: await coach.create_exercise(
            letter,
            muscleGroups=[{"_id": muscles[at], "role": role} for at, role in enumerate(pair, "abc".index(letter))],
        )
        for letter, pair in roles.items()
    }
    return Calendar(coach, await coach.create_customer(f"Ana {ObjectId()}"), made)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(SETS, st.booleans()), min_size=6, max_size=6), st.lists(STEP, min_size=4, max_size=12))
async def test_every_reading_is_what_the_calendar_says(
    coach: CoachClient, logs: list[tuple[Any, bool]], steps: list[tuple[Any, ...]]
) -> None:
    calendar = await begin(coach)
    logged = [("log", number, *told) for number, told in enumerate(logs)]
    for step in [*FIRST, *logged, *steps]:
        await calendar.do(step)
    await calendar.compare()
    await calendar.compare_kept()


async def test_readings_stay_right_when_much_is_logged_and_undone_at_once(new_company: NewCompany) -> None:
    """Issue 6: read models stay right under concurrent logs and undo."""
    calendar = await begin(await new_company())
    coach, client = calendar.coach, calendar.client
    for ago in (0, 1, 6, 29):
        await block_with(coach, client, *map(calendar.item, "abot"), date=calendar.day(ago))
    blocks = await calendar.now()
    items = [(block, item) for block in blocks for item in block["items"]]
    for turn in range(2):
        requests = []
        for number, (block, item) in enumerate(items):
            told = [(5 + number % 5, 60 + 2.5 * ((7 * number + turn) % 9), True, bool(number % 2))] * 2
            logs = item["type"] in ("EXERCISE", "CIRCUIT")
            fields = {"customerSets": calendar.done(item, told)} if logs else {}
            requests.append(log(coach, block, item, **fields))
            if number % 2 == turn:
                requests.append(log(coach, block, item, isCompleted=False))
        requests.append(coach.patch(path_of(blocks[turn + 1]), {"date": calendar.day(7)}))
        requests.append(coach.put(f"{path_of(blocks[3])}/log", {"sessionRpe": 5, "durationMinutes": 30}))
        assert {reply.status for reply in await asyncio.gather(*requests)} == {200}
        await calendar.compare()
    gone = [coach.delete(f"{path_of(block)}/witems/{item['_id']}") for block, item in items[::3]]
    undone = [log(coach, block, item, isCompleted=False) for block, item in items[1::3]]
    assert {reply.status for reply in await asyncio.gather(*gone, *undone)} == {200, 204}
    await calendar.compare()
    await calendar.compare_kept()
