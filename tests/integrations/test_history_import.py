"""Imports of training history over REST: what is stored, what follows, and what is reported."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coaching_service.integrations.history_files.set_rows import Session
from tests.support.client import CoachClient
from tests.support.imported_history import HEVY, SETS, events, rows_of_sets, workouts
from tests.support.sampled import MORE
from tests.support.training import block_with, exercise_of, log
from tests.support.transfer import import_file, pick


async def test_a_file_of_hevy_becomes_a_session(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    job = await import_file(coach, HEVY.encode(), name="workouts.csv", customerId=ana["_id"])

    assert (job["status"], job["errors"]) == ("done", [])
    result = job["result"]
    assert (result["format"], result["rows"], result["imported"], result["reported"]) == ("hevy", 2, 2, 0)
    assert result["created"] == {"customers": 0, "sessions": 1, "sets": 2, "exercises": 0}
    assert (result["from"], result["to"], result["questions"]) == ("2025-11-17", "2025-11-17", [])
    assert result["names"][0]["match"]["name"] == "Barbell Bench Press"
    [block] = await workouts(coach, ana)
    assert (block["name"], block["date"], block["startTime"], block["durationMinutes"]) == (
        "Push 💪",
        "2025-11-17",
        "18:05",
        65,
    )
    assert block["source"] == {"format": "hevy", "importId": job["_id"]}
    assert block["isCompleted"] is True
    [item] = block["items"]
    assert item["exerciseSets"] == []
    first, second = item["customerSets"]
    assert (first["isWarmup"], first["load"], first["reps"]) == (True, 20.41, 10)
    assert (second["isWarmup"], second["load"], second["rpe"], second["setKind"]) == (False, 61.23, 8.5, "normal")


async def test_each_row_is_imported_or_reported_as_the_dry_run_says(coach: CoachClient) -> None:
    """The import of a client is one change and one event."""
    ana = await coach.create_customer("Ana")
    before = await import_file(coach, SETS, dry_run=True, name="sets.csv", customerId=ana["_id"])
    assert await workouts(coach, ana) == []
    job = await import_file(coach, SETS, name="sets.csv", customerId=ana["_id"])

    result = job["result"]
    assert before["result"] | {"dryRun": False} == result
    assert before["errors"] == job["errors"]
    assert (result["rows"], result["imported"], result["reported"]) == (5, 3, 2)
    assert pick(job["errors"], "line", "field", "code") == [(6, "exercise", "REQUIRED"), (7, None, "NOT_A_SET")]
    assert [block["date"] for block in await workouts(coach, ana)] == ["2025-01-06", "2025-01-08"]
    listed = await events(coach, "history.imported", "workout.created", "item.logged", "record.achieved")
    assert pick(listed, "type", "data") == [
        (
            "history.imported",
            {"importId": job["_id"], "sessions": 2, "sets": 3, "from": "2025-01-06", "to": "2025-01-08"},
        )
    ]


async def test_the_same_and_a_longer_file_add_only_what_is_not_there(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    await import_file(coach, SETS, name="sets.csv", customerId=ana["_id"])
    again = await import_file(coach, SETS, name="sets.csv", customerId=ana["_id"])
    assert (again["result"]["imported"], again["result"]["reported"]) == (0, 5)
    assert [each["code"] for each in again["errors"]].count("ALREADY_THERE") == 3
    longer = SETS + b"\n2025-02-03,Legs,Squat,5,110,"
    more = await import_file(coach, longer, name="sets.csv", customerId=ana["_id"])
    assert more["result"]["created"]["sessions"] == 1
    assert len(await workouts(coach, ana)) == 3


async def test_a_session_that_was_logged_here_is_not_imported_again(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Zercher Squat Hold")
    planned = {"type": "reps_load", "minPlannedReps": 5, "load": 100}
    block = await block_with(coach, ana, exercise_of(squat, planned), name="Legs", date="2025-01-06")
    (await log(coach, block, block["items"][0], customerSets=[{"reps": 5, "load": 100}])).ok()
    row = rows_of_sets("2025-01-06,Legs,Zercher Squat Hold,5,100,")
    job = await import_file(coach, row, name="sets.csv", customerId=ana["_id"])
    assert [each["code"] for each in job["errors"]] == ["ALREADY_THERE"]


async def test_what_follows_from_an_import(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    job = await import_file(coach, SETS, name="sets.csv", customerId=ana["_id"])
    path = f"/coach/customers/{ana['_id']}"
    squat = job["result"]["names"][0]["match"]["_id"]

    history = (await coach.get(f"{path}/exercise/{squat}/history", pageSize=10, pageNum=1)).ok()["docs"]
    assert pick(history, "date", "volumeLoad") == [("2025-01-08", 525.0), ("2025-01-06", 1012.5)]
    records = (await coach.get(f"{path}/personal-records")).ok()
    assert [(each["value"], each["date"]) for each in records if each["type"] == "heaviest_load"] == [
        (105.0, "2025-01-08")
    ]
    compliance = (await coach.get(f"{path}/compliance", **{"from": "2025-01-01", "to": "2025-01-31"})).ok()
    assert compliance["totalWorkoutDays"] == 0
    feed = (await coach.get(f"{path}/activity-feed", page=1, limit=10)).ok()["docs"]
    assert [each["type"] for each in feed] == []
    client = (await coach.get(path)).ok()
    assert client["customerRoleData"]["lastTrainedDate"] == "2025-01-08"
    assert client["customerRoleData"]["lastWorkoutDate"] is None


async def test_warm_up_sets_stay_warm_up_in_a_copy_and_when_a_log_is_corrected(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    await import_file(coach, HEVY.encode(), name="workouts.csv", customerId=ana["_id"])
    [block] = await workouts(coach, ana)
    path = f"/coach/customers/{ana['_id']}/wblocks/{block['_id']}"
    copied = (await coach.post(f"{path}/copy", {"date": "2026-03-02"})).ok(201)
    assert (copied["source"], copied["startTime"], copied["items"][0]["customerSets"]) == (None, None, [])
    assert [
        (each["isWarmup"], each["load"], each["minPlannedReps"]) for each in copied["items"][0]["exerciseSets"]
    ] == [
        (True, 20.41, 10),
        (False, 61.23, 8),
    ]
    item = block["items"][0]
    sets = [{"reps": 10, "load": 20}, {"reps": 9, "load": 61}]
    logged = (await log(coach, block, item, customerSets=sets)).ok()
    assert [each["isWarmup"] for each in logged["customerSets"]] == [True, False]
    again = (await log(coach, block, item, customerSets=[{**each, "isWarmup": False} for each in sets])).ok()
    assert [each["isWarmup"] for each in again["customerSets"]] == [False, False]


async def test_a_start_time_is_planned_and_validated(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    path = f"/coach/customers/{ana['_id']}/wblocks"
    created = (await coach.post(path, {"name": "Legs", "date": "2026-03-02", "startTime": "07:30"})).ok(201)
    assert (created["startTime"], created["source"]) == ("07:30", None)
    (await coach.patch(f"{path}/{created['_id']}", {"startTime": "24:00"})).refused(400, "startTime")
    assert (await coach.patch(f"{path}/{created['_id']}", {"startTime": None})).ok()["startTime"] is None


TWO_SETS = b"Date,Exercise,Reps\n2025-01-06,Squat,5\n2025-01-06,Squat,6\n"
CELLS = st.sampled_from(["", "5", "0", "x", "8.5", "-3", "1,5", "Rest Timer", "2025-02-01", "Squat"])
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["2025-01-06", "2025-01-07 10:00", "never", ""]),
        st.sampled_from(["Squat", "Bench Press", "Unheard-of", ""]),
        CELLS,
        CELLS,
        CELLS,
    ),
    max_size=30,
)


@settings(max_examples=5 * MORE, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS)
async def test_rows_are_imported_or_reported(coach: CoachClient, rows: list[tuple[str, ...]]) -> None:
    ana = await coach.create_customer("Ana")
    out = io.StringIO()
    csv.writer(out).writerows([("Date", "Exercise", "Reps", "Weight (kg)", "Seconds"), *rows])
    answers = {"customerId": ana["_id"], "decimalSign": "."}
    job = await import_file(coach, out.getvalue().encode(), name="sets.csv", **answers)
    if not any(any(row) for row in rows):
        assert job["errors"][-1]["message"] == "has no rows"
        return
    result = job["result"]
    assert result["rows"] == sum(any(row) for row in rows) == result["imported"] + result["reported"]
    left_out = {each["line"] for each in job["errors"] if each["code"] != "VALUE_LEFT_OUT"}
    assert len(left_out) == result["reported"]
    sets = sum(len(item["customerSets"]) for block in await workouts(coach, ana) for item in block["items"])
    assert sets == result["created"]["sets"] == result["imported"]


async def test_sets_that_are_left_out_of_a_row_are_reported(coach: CoachClient) -> None:
    """A row is reported if none of its sets is imported, wherever those that are left out are."""
    ana, dip, squat = await coach.create_customer("Ana"), await coach.create_exercise("Dip"), "Squat"
    rows = ((6, "Dip", "40, -20, -15"), (7, "Dip", "-20, 40"), (8, "Dip", "-20, -20"), (9, squat, "100, 100"))
    lines = (f'Push,2025-01-{day:02},{name},"3 rep x {loads} kilogram"\n' for day, name, loads in rows)
    sheet = "WorkoutTitle,ScheduledDate,ExerciseTitle,ExerciseData\n" + "".join(lines)
    names = json.dumps({"Dip": dip["_id"], "Dip (Assisted)": "skip"})
    job = await import_file(coach, sheet.encode(), name="history.csv", customerId=ana["_id"], names=names)

    result = job["result"]
    assert (result["format"], result["rows"], result["imported"], result["reported"]) == ("trainheroic", 4, 3, 1)
    errors = [(each["line"], each["field"], each["code"], each["message"]) for each in job["errors"]]
    skipped = "has the name of an exercise that is left out"
    assert errors == [
        (2, "exercise", "VALUE_LEFT_OUT", f"of some of its sets {skipped}"),
        (3, "exercise", "VALUE_LEFT_OUT", f"of some of its sets {skipped}"),
        (4, "exercise", "SKIPPED", skipped),
    ]
    stored = sorted(
        (block["date"], [each["load"] for each in item["customerSets"]])
        for block in await workouts(coach, ana)
        for item in block["items"]
    )
    assert stored == [("2025-01-06", [40]), ("2025-01-07", [40]), ("2025-01-09", [100, 100])]


async def test_an_import_that_loses_rows_fails(coach: CoachClient, monkeypatch: pytest.MonkeyPatch) -> None:
    ana = await coach.create_customer("Ana")
    monkeypatch.setattr(Session, "rows", 1)
    job = await import_file(coach, TWO_SETS, name="sets.csv", customerId=ana["_id"])
    assert (job["status"], job["errors"][-1]["code"]) == ("failed", "INVALID_FILE")
    assert "the service failed" in job["errors"][-1]["message"]
