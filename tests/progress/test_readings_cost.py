"""How many keys and documents reads of half a year of daily training examine, by the database's profiler."""

from __future__ import annotations

from typing import Any

from coaching_service.core.ids import ObjectId
from tests.contract.test_queries import profiling
from tests.support.client import CoachClient
from tests.support.daily_training import DAYS, EXERCISES, FIRST, ITEMS_A_DAY, LAST, Year, train
from tests.support.service_process import until

ALL_DAYS = f"startDate={FIRST}&endDate={LAST}"
WEEK = "startDate=2026-03-02&endDate=2026-03-08"
SESSIONS = DAYS * ITEMS_A_DAY // EXERCISES + 2  # of one exercise
EVENTS = DAYS * ITEMS_A_DAY
MARGIN = 5  # the ends of ranges, and the client


def readings(year: Year) -> dict[str, tuple[int, int]]:
    """The paths to read, each with the maximum of keys and of documents that a query may examine."""
    history = f"/exercise/{year.exercises[0]}/history?pageSize=20&pageNum=1"
    return {
        history: (SESSIONS, 20),
        f"{history}&includeIncomplete=true": (SESSIONS, 20),
        f"/exercise/{year.exercises[0]}/history?pageSize=5&pageNum=4": (SESSIONS, 5),
        f"/exercise/{year.exercises[0]}/progress?{ALL_DAYS}": (SESSIONS, SESSIONS),
        f"/exercise/{year.exercises[0]}/progress?{WEEK}&groupBy=week": (2, 2),
        "/exercises?pageSize=50&pageNum=1": (DAYS, DAYS),
        "/personal-records": (3 * EXERCISES, 3 * EXERCISES),
        "/activity-feed?page=1&limit=20": (EVENTS, 20),
        f"/musclegroups/volume?{ALL_DAYS}": (DAYS, DAYS),
        f"/musclegroups/volume?{WEEK}": (2 * EXERCISES, EXERCISES),  # the exercises' muscles
        f"/workload?{ALL_DAYS}": (DAYS, DAYS),
        f"/workload?{WEEK}&groupBy=week": (7 + 27, 7 + 27),
        f"/compliance?from={FIRST}&to={LAST}": (DAYS, DAYS),
        "/compliance?from=2026-03-02&to=2026-03-08": (7, 7),
        "/form-responses": (DAYS // 7, DAYS // 7),
        "/form-responses?from=2026-03-02": (1, 1),
        "": (1, 1),  # of the last 90 days, and training ended in March
        f"/wblock?{WEEK}": (2 * EXERCISES, EXERCISES),
        f"/wblocks/{year.block_id}?include=lastTime": (2 * ITEMS_A_DAY, ITEMS_A_DAY),
    }


async def examined(coach: CoachClient, method: str, path: str, body: Any = None) -> list[dict[str, Any]]:
    """The profile of each query of a request. A background task reads webhooks."""
    async with profiling(coach) as profile:
        (await coach.send(method, path, json=body)).ok()
        return [entry for entry in await profile() if not entry["ns"].endswith(".webhooks")]


def check(path: str, entries: list[dict[str, Any]], keys: int, documents: int) -> None:
    """Assert that no query scans a collection, sorts many documents in memory, or examines more than allowed."""
    assert entries, f"{path}: the profile is empty"
    for entry in entries:
        details = f"{path}: {entry['ns']} {entry['planSummary']} {entry.get('command')}"
        assert "COLLSCAN" not in entry["planSummary"], details
        assert not entry.get("hasSortStage") or entry["nreturned"] <= EXERCISES, details
        assert entry.get("keysExamined", 0) <= keys + MARGIN, f"{entry['keysExamined']} keys; {details}"
        assert entry.get("docsExamined", 0) <= documents + MARGIN, f"{entry['docsExamined']} documents; {details}"


async def test_reads_of_half_a_year_examine_only_what_they_return(coach: CoachClient) -> None:
    """No query scans a collection, and none examines more than it needs."""
    coach.checks = False
    year = await train(coach.ctx, ObjectId((await coach.create_customer("Ana"))["_id"]))

    async def are_numbered() -> bool:
        return await coach.ctx.db["changes"].find_one({"pending": {"$exists": True}}) is None

    await until(are_numbered, "changes have numbers: this is not done during the requests")
    for path, bounds in readings(year).items():
        check(path, await examined(coach, "GET", year.path + path), *bounds)

    # A log reads its item and, if that has a record, the other sessions of the exercise.
    log = year.item_path + "/log"
    for load in (900, 1):
        body = {"customerSets": [{"reps": 5, "load": load}]}
        check(log, await examined(coach, "PUT", log, body), SESSIONS, SESSIONS)
