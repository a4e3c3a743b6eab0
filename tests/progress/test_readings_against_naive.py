"""After any changes of a calendar, every reading equals what is computed plainly from the calendar itself."""

from __future__ import annotations

import asyncio
from datetime import date, timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coaching_service.core.ids import ObjectId
from tests.conftest import NewCompany
from tests.support import naive
from tests.support.client import CoachClient
from tests.support.figures import renew_figures
from tests.support.results import (
    completed_sets,
    incomplete_set,
    list_history,
    list_records,
    read_compliance,
    read_progress,
    read_workload,
)
from tests.support.sampled import MORE, proof
from tests.support.training import (
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

# Days before today: close together, and at the edges of 7 and 28 days (of 30 and 90: test_compliance_rates.py).
DAYS_AGO = (-1, 0, 1, 6, 7, 27, 28, 29, 34, 35)
SET = st.tuples(st.integers(0, 14), st.sampled_from([None, 0, 20, 22.5, 60, 100]), st.booleans(), st.booleans())
SETS = st.lists(SET, min_size=1, max_size=3)
NUMBER = st.integers(0, 50)
LOG = st.tuples(st.just("log"), NUMBER, SETS, st.sampled_from([True, True, False]))
PLAN = st.tuples(st.just("plan"), NUMBER, st.sampled_from("ab"), st.booleans())
STEP = st.one_of(
    LOG,
    LOG,
    PLAN,
    PLAN,
    st.tuples(st.just("block"), st.sampled_from(DAYS_AGO), st.lists(st.sampled_from("abcot"), max_size=3)),
    st.tuples(st.sampled_from(["undo", "delete item", "delete block", "rest", "copy"]), NUMBER),
    st.tuples(st.just("rate"), NUMBER, st.sampled_from([None, 0, 5, 8]), st.sampled_from([None, 30, 45])),
    st.tuples(st.just("date"), NUMBER, st.sampled_from(DAYS_AGO)),
    st.tuples(st.just("move"), NUMBER, NUMBER, st.integers(0, 3)),
)
# Every calendar begins with these blocks, of which six items are logged.
FIRST_STEPS = [("block", 1, ["a", "b", "o"]), ("block", 29, ["o", "t", "a"]), ("block", 7, [])]
RATES = {7: "complianceRate7d", 30: "complianceRate30d", 90: "complianceRate90d"}


class Calendar:
    """A client whose calendar changes, and three exercises."""

    def __init__(self, coach: CoachClient, client: Json, exercises: dict[str, Json]) -> None:
        self.coach, self.client, self.exercises = coach, client, exercises
        self.today: date = coach.ctx.caller.today()

    async def read(self) -> list[Json]:
        """The whole calendar."""
        return await self.coach.calendar(self.client, self.day(400), self.day(-400))

    def day(self, days_ago: int) -> str:
        return str(self.today - timedelta(days=days_ago))

    def item(self, letter: str) -> Json:
        """A new item: of an exercise, a circuit of two, or a task."""
        if letter == "o":
            return circuit_of(self.exercises["a"], self.exercises["b"])
        return task() if letter == "t" else self.plan(letter, warm_up=letter == "b")

    def plan(self, letter: str, *, warm_up: bool) -> Json:
        first = {"type": "reps_load", "minPlannedReps": 8, "load": 60, "isWarmup": warm_up}
        return exercise_of(self.exercises[letter], first, first | {"isWarmup": False})

    def sets_for(self, item: Json, drawn: list[tuple[int, float | None, bool, bool]]) -> list[Json]:
        """Logged sets for an item, spread over the exercises and rounds of a circuit."""
        logged = []
        for position, (reps, load, completed, second) in enumerate(drawn):
            fields = completed_sets((reps, load))[0] if completed else incomplete_set(reps, load or 0)
            if item["type"] == "CIRCUIT":
                entry = item["circuitExercises"][min(int(second), len(item["circuitExercises"]) - 1)]
                fields |= {"exerciseId": entry["exerciseId"], "round": 1 + position % item["rounds"]}
            logged.append({"index": position + 1, **fields})
        return logged

    def log_for(self, item: Json, drawn: list[tuple[int, float | None, bool, bool]]) -> Json:
        """The fields of a log that depend on the type of the item."""
        has_sets = item["type"] in ("EXERCISE", "CIRCUIT")
        return {"customerSets": self.sets_for(item, drawn)} if has_sets else {}

    async def apply(self, step: tuple[Any, ...]) -> None:
        """Apply one step; its number selects one of the existing blocks and items."""
        kind, number, *rest = step
        if kind == "block":
            await block_with(self.coach, self.client, *map(self.item, rest[0]), date=self.day(number))
            return
        blocks = await self.read()
        items = [(block, item) for block in blocks for item in block["items"]]
        if not blocks or (kind in ("log", "undo", "delete item", "move", "plan") and not items):
            return
        block = blocks[number % len(blocks)]
        parent, item = items[number % len(items)] if items else (block, {})
        path = f"{path_of(parent)}/witems/{item.get('_id')}"
        if kind == "log":
            (await log(self.coach, parent, item, isCompleted=rest[1], **self.log_for(item, rest[0]))).ok()
        elif kind == "undo":
            (await log(self.coach, parent, item, isCompleted=False)).ok()
        elif kind == "delete item":
            (await self.coach.delete(path)).ok(204)
        elif kind == "move":
            (await move(self.coach, item, parent, blocks[rest[0] % len(blocks)], rest[1])).ok()
        elif kind == "plan":
            fields = self.plan(rest[0], warm_up=rest[1]) if item["type"] == "EXERCISE" else {}
            fields |= circuit_of(self.exercises[rest[0]]) if item["type"] == "CIRCUIT" else {}
            (await self.coach.patch(path, fields)).ok()
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
        """Compare every reading with the calendar."""
        calendar = await self.read()
        await self._compare_history(calendar)
        await self._compare_records(calendar)
        first, last = self.day(37), self.day(-2)
        await self._compare_volume(calendar, first, last)
        await self._compare_volume(calendar, self.day(28), self.day(1))
        await self._compare_workload(calendar, first, last)
        await self._compare_compliance(calendar, first, last)
        await self._compare_rates(calendar)

    async def _compare_history(self, calendar: list[Json]) -> None:
        names = ("date", "wblockId", "isCompleted", "sets", "volumeLoad", "estimate")
        for exercise in self.exercises.values():
            for include in (False, True):
                query = {"includeIncomplete": str(include).lower()}
                sessions = await list_history(self.coach, self.client, exercise, **query)
                for session in sessions:
                    estimate = session["estimatedOneRepMax"]
                    session["estimate"] = estimate and estimate["value"]
                expected = naive.history(calendar, exercise["_id"], include_incomplete=include)
                assert [{name: session[name] for name in names} for session in sessions] == expected

    async def _compare_records(self, calendar: list[Json]) -> None:
        fields = ("value", "reps", "date", "witemId")
        records = {
            (record["exerciseId"], record["type"]): tuple(record[field] for field in fields)
            for record in await list_records(self.coach, self.client)
        }
        expected = naive.records(calendar)
        assert records == expected
        events = [event["data"] for event in await feed(self.coach, self.client) if event["type"] == "personal_record"]
        in_feed = {
            (data["exerciseId"], data["recordType"]): (data["value"], data["reps"], data["day"]) for data in events
        }
        assert in_feed == {key: best[:3] for key, best in expected.items()}
        assert len(events) == len(in_feed)

    async def _compare_volume(self, calendar: list[Json], start: str, end: str) -> None:
        response = await read_progress(self.coach, self.client, "musclegroups/volume", startDate=start, endDate=end)
        muscles = response.ok()["muscleGroups"]
        figures = {muscle["name"]: [muscle["sets"], muscle["reps"], muscle["volumeLoad"]] for muscle in muscles}
        assert figures == naive.volume(calendar, list(self.exercises.values()), start, end)

    async def _compare_workload(self, calendar: list[Json], first: str, last: str) -> None:
        names = ("date", "sessions", "sets", "reps", "volumeLoad", "sessionLoad", "acuteChronicRatio", "ratioOf")
        for group_by in ("day", "week", "month"):
            periods = await read_workload(self.coach, self.client, first, last, groupBy=group_by)
            figures = [tuple(period[name] for name in names) for period in periods]
            assert figures == naive.workload(calendar, first, last, group_by)

    async def _compare_compliance(self, calendar: list[Json], first: str, last: str) -> None:
        result = await read_compliance(self.coach, self.client, **{"from": first, "to": last})
        names = ("date", "isWorkoutDay", "isRestDay", "isCompleted", "totalItems", "completedItems")
        days = [tuple(day[name] for name in names) for day in result["dailyCompliance"]]
        assert days == naive.compliance(calendar, first, last)
        counts = (result["totalWorkoutDays"], result["completedWorkoutDays"])
        assert counts == naive.workout_days(calendar, first, last, self.day(0))
        assert result["workoutCompletionPercentage"] == naive.percentage(calendar, first, last, self.day(0))

    async def _compare_rates(self, calendar: list[Json]) -> None:
        role = (await self.coach.get(client_path(self.client))).ok()["customerRoleData"]
        assert {name: role[name] for name in RATES.values()} == self._expected_rates(calendar)

    def _expected_rates(self, calendar: list[Json]) -> dict[str, float | None]:
        today = self.day(0)
        return {name: naive.percentage(calendar, self.day(days - 1), today, today) for days, name in RATES.items()}

    async def compare_list(self) -> None:
        """Compare the figures in the list, once the job has renewed those that are due."""
        await renew_figures(self.coach.ctx)
        listed = (await self.coach.customers(contains=self.client["name"]))["docs"]
        [role] = [each["customerRoleData"] for each in listed if each["_id"] == self.client["_id"]]
        calendar = await self.read()
        assert {name: role[name] for name in RATES.values()} == self._expected_rates(calendar)
        assert role["lastTrainedDate"] == naive.last_trained_date(calendar, self.day(0))


async def create_calendar(coach: CoachClient) -> Calendar:
    """An empty calendar, and exercises that train muscles. The shape of responses is tested elsewhere."""
    coach.checks = False
    muscles = [muscle["_id"] for muscle in (await coach.get("/muscle-groups")).ok()]
    roles = {"a": ("primary", "secondary"), "b": ("secondary", "primary"), "c": ("primary", "primary")}
    exercises = {
        letter: await coach.create_exercise(
            letter,
            muscleGroups=[
                {"_id": muscles[number], "role": role} for number, role in enumerate(pair, "abc".index(letter))
            ],
        )
        for letter, pair in roles.items()
    }
    return Calendar(coach, await coach.create_customer(f"Ana {ObjectId()}"), exercises)


@settings(max_examples=3 * MORE, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(SETS, st.booleans()), min_size=6, max_size=6), st.lists(STEP, min_size=4, max_size=12))
async def test_readings_equal_the_naive_computation(
    coach: CoachClient, logs: list[tuple[Any, bool]], steps: list[tuple[Any, ...]]
) -> None:
    calendar = await create_calendar(coach)
    logged = [("log", number, *drawn) for number, drawn in enumerate(logs)]
    for step in [*FIRST_STEPS, *logged, *steps]:
        await calendar.apply(step)
    await calendar.compare()
    await calendar.compare_list()


@proof
async def test_readings_are_right_after_concurrent_logs_and_resets(new_company: NewCompany) -> None:
    calendar = await create_calendar(await new_company())
    coach, client = calendar.coach, calendar.client
    for days_ago in (0, 1, 6, 29):
        await block_with(coach, client, *map(calendar.item, "abot"), date=calendar.day(days_ago))
    blocks = await calendar.read()
    items = [(block, item) for block in blocks for item in block["items"]]
    for turn in range(2):
        requests = []
        for number, (block, item) in enumerate(items):
            drawn: list[tuple[int, float | None, bool, bool]] = [
                (5 + number % 5, 60 + 2.5 * ((7 * number + turn) % 9), True, bool(number % 2))
            ] * 2
            requests.append(log(coach, block, item, **calendar.log_for(item, drawn)))
            if number % 2 == turn:
                requests.append(log(coach, block, item, isCompleted=False))
        requests.append(coach.patch(path_of(blocks[turn + 1]), {"date": calendar.day(7)}))
        requests.append(coach.put(f"{path_of(blocks[3])}/log", {"sessionRpe": 5, "durationMinutes": 30}))
        replies = await asyncio.gather(*requests)
        assert [reply.json for reply in replies if reply.status != 200] == []
        await calendar.compare()
    deletions = [coach.delete(f"{path_of(block)}/witems/{item['_id']}") for block, item in items[::3]]
    resets = [log(coach, block, item, isCompleted=False) for block, item in items[1::3]]
    assert {reply.status for reply in await asyncio.gather(*deletions, *resets)} == {200, 204}
    await calendar.compare()
    await calendar.compare_list()
