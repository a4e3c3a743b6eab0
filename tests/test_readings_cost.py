"""What readings of three years of daily training look at, as the database's own profile says; nothing is timed (that is
benchmarks/readings.py)."""

from __future__ import annotations

from typing import Any

from coaching_service.core.ids import ObjectId
from tests.client import CoachClient
from tests.contract.test_queries import profiling
from tests.three_years import DAYS, EXERCISES, FIRST, ITEMS_A_DAY, LAST, Years, train

WHOLE = f"startDate={FIRST}&endDate={LAST}"
WEEK = "startDate=2026-03-02&endDate=2026-03-08"
SESSIONS = DAYS * ITEMS_A_DAY // EXERCISES + 2  # of one exercise
EVENTS = DAYS * ITEMS_A_DAY
AROUND = 5  # the ends of ranges, and the client


def readings(years: Years) -> dict[str, tuple[int, int]]:
    """Each reading with how many keys, and how many documents, its largest query may examine."""
    history = f"/exercise/{years.exercises[0]}/history?pageSize=50&pageNum=1"
    return {
        history: (SESSIONS, 50),
        f"{history}&includeIncomplete=true": (SESSIONS, 50),
        f"/exercise/{years.exercises[0]}/history?pageSize=5&pageNum=4": (SESSIONS, 5),
        "/personal-records": (3 * EXERCISES, 3 * EXERCISES),
        "/activity-feed?page=1&limit=20": (EVENTS, 20),
        f"/musclegroups/volume?{WHOLE}": (DAYS, DAYS),
        f"/musclegroups/volume?{WEEK}": (2 * EXERCISES, EXERCISES),  # the exercises' muscles
        f"/workload?{WHOLE}": (DAYS, DAYS),
        f"/workload?{WEEK}&groupBy=week": (7 + 27, 7 + 27),
        f"/compliance?from={FIRST}&to={LAST}": (DAYS, DAYS),
        "/compliance?from=2026-03-02&to=2026-03-08": (7, 7),
        "/form-responses": (DAYS // 7, DAYS // 7),
        "/form-responses?from=2026-03-02": (1, 1),
        "": (1, 1),  # of the last 90 days, and training ended in March
        f"/wblock?{WEEK}": (2 * EXERCISES, EXERCISES),
    }


async def examined(coach: CoachClient, method: str, path: str, body: Any = None) -> list[dict[str, Any]]:
    """What the database says of each query that a request takes."""
    async with profiling(coach) as profile:
        (await coach.send(method, path, json=body)).ok()
        return await profile()


def check(path: str, entries: list[dict[str, Any]], keys: int, documents: int) -> None:
    """No query scans a collection or sorts in memory what is not small, and none examines more than it may."""
    assert entries, f"{path}: the profile saw nothing"
    for entry in entries:
        told = f"{path}: {entry['ns']} {entry['planSummary']} {entry.get('command')}"
        assert "COLLSCAN" not in entry["planSummary"], told
        assert not entry.get("hasSortStage") or entry["nreturned"] <= EXERCISES, told
        assert entry.get("keysExamined", 0) <= keys + AROUND, f"{entry['keysExamined']} keys; {told}"
        assert entry.get("docsExamined", 0) <= documents + AROUND, f"{entry['docsExamined']} documents; {told}"


async def test_no_reading_of_three_years_looks_at_more_than_it_tells_of(coach: CoachClient) -> None:
    """Issue 6: with three years of daily training `explain` shows no collection scan."""
    coach.checks = False
    years = await train(coach.ctx, ObjectId((await coach.create_customer("Ana"))["_id"]))

    for path, bounds in readings(years).items():
        check(path, await examined(coach, "GET", years.path + path), *bounds)

    # A log looks at its own item, and where it was a record at what else was done of the exercise.
    log = years.item_path + "/log"
    for load in (900, 1):
        body = {"customerSets": [{"reps": 5, "load": load}]}
        check(log, await examined(coach, "PUT", log, body), SESSIONS, SESSIONS)
