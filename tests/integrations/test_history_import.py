"""Imports of training history over REST: what is stored, what follows, and what is reported."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coaching_service import features
from coaching_service.core.jobs import worker
from coaching_service.integrations.background_jobs import service as background_jobs
from coaching_service.integrations.company_import import service as company_import
from coaching_service.integrations.history_files.sessions import Session
from coaching_service.integrations.history_import import importing
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.api_keys.models import NewRestrictions
from tests.support.client import CoachClient
from tests.support.doctor import is_numbered
from tests.support.service_process import until
from tests.support.training import block_with, employee_key, exercise_of, log
from tests.support.transfer import import_file, send, undo

HEVY = (
    '"title","start_time","end_time","description","exercise_title","superset_id","exercise_notes","set_index",'
    '"set_type","weight_lbs","reps","distance_miles","duration_seconds","rpe"\n'
    '"Push 💪","17 Nov 2025, 18:05","17 Nov 2025, 19:10","","Bench Press (Barbell)",,"",0,"warmup",45,10,,,\n'
    '"Push 💪","17 Nov 2025, 18:05","17 Nov 2025, 19:10","","Bench Press (Barbell)",,"",1,"normal",135,8,,,8.5\n'
)


async def workouts(coach: CoachClient, customer: dict[str, Any]) -> list[dict[str, Any]]:
    """The client's calendar of all years."""
    path = f"/coach/customers/{customer['_id']}/wblock"
    blocks: list[dict[str, Any]] = (await coach.get(path, startDate="2000-01-01", endDate="2100-01-01")).ok()
    return blocks


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


def rows_of_sets(*rows: str) -> bytes:
    """A table of a coach's own."""
    return "\n".join(["Date,Workout,Exercise,Reps,Weight (kg),Notes", *rows]).encode()


SETS = rows_of_sets(
    "2025-01-06,Legs,Squat,5,100,deep",
    "2025-01-06,Legs,Squat,5,102.5,",
    "2025-01-08,Legs,Squat,5,105,",
    ",,,,,",
    "2025-01-08,Legs,,5,105,",
    "2025-01-09,Legs,Squat,,,",
)


async def events(coach: CoachClient, *types: str) -> list[dict[str, Any]]:
    """The events of these types."""
    await until(lambda: is_numbered(coach.ctx.services), "numbers of changes")
    docs: list[dict[str, Any]] = (await coach.get("/coach/events", types=list(types))).ok()["docs"]
    return docs


async def test_each_row_is_imported_or_reported(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    job = await import_file(coach, SETS, name="sets.csv", customerId=ana["_id"])

    result = job["result"]
    assert (result["rows"], result["imported"], result["reported"]) == (5, 3, 2)
    assert [(each["line"], each["field"], each["code"]) for each in job["errors"]] == [
        (6, "exercise", "REQUIRED"),
        (7, None, "NOT_A_SET"),
    ]
    assert [block["date"] for block in await workouts(coach, ana)] == ["2025-01-06", "2025-01-08"]


async def test_a_dry_run_says_what_the_import_does_and_stores_nothing(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    before = await import_file(coach, SETS, dry_run=True, name="sets.csv", customerId=ana["_id"])
    assert await workouts(coach, ana) == []
    after = await import_file(coach, SETS, name="sets.csv", customerId=ana["_id"])
    assert before["result"] | {"dryRun": False} == after["result"]
    assert before["errors"] == after["errors"]


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


async def test_an_import_waits_for_answers(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    rows = b"Date,Exercise,Reps,Weight\n03/04/2025,Squat,5,100\n"
    dry = await import_file(coach, rows, dry_run=True, name="sets.csv", customerId=ana["_id"])
    questions = {each["code"]: each["options"] for each in dry["result"]["questions"]}
    assert questions == {"DATE_ORDER": ["dmy", "mdy"], "LOAD_UNIT": ["kg", "lb"]}
    refused = await import_file(coach, rows, name="sets.csv", customerId=ana["_id"])
    assert (refused["status"], refused["errors"][-1]["code"]) == ("failed", "QUESTIONS_OPEN")
    answers = {"dateOrder": "dmy", "customerId": ana["_id"]}
    dry = await import_file(coach, rows, dry_run=True, name="sets.csv", **answers)
    assert [each["code"] for each in dry["result"]["questions"]] == ["LOAD_UNIT"]
    job = await import_file(coach, rows, name="sets.csv", loadUnit="lb", **answers)
    [block] = await workouts(coach, ana)
    assert (job["status"], block["date"], block["items"][0]["customerSets"][0]["load"]) == ("done", "2025-04-03", 45.36)


async def test_a_file_without_a_client_asks_for_one(coach: CoachClient) -> None:
    dry = await import_file(coach, SETS, dry_run=True, name="sets.csv")
    [question] = dry["result"]["questions"]
    assert (question["code"], question["options"]) == ("CUSTOMER", [])
    assert (dry["result"]["imported"], dry["result"]["created"]["sessions"]) == (3, 2)


async def test_clients_in_a_file_are_matched_asked_for_and_created(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", surname="Ruiz")
    rows = (
        b"Client,Date,Exercise,Reps\nAna Ruiz,2025-01-06,Push-Up,10\nAna Ruis,2025-01-06,Push-Up,11\n"
        b"Bo Li,2025-01-06,Push-Up,12\n"
    )
    dry = await import_file(coach, rows, dry_run=True, name="sets.csv")
    asked = {each["name"]: each["options"] for each in dry["result"]["questions"]}
    assert asked == {"Ana Ruis": [ana["_id"], "create", "skip"], "Bo Li": ["create", "skip"]}
    answers = json.dumps({"Ana Ruis": "skip", "Bo Li": "create"})
    job = await import_file(coach, rows, name="sets.csv", customers=answers)
    assert job["result"]["created"]["customers"] == 1
    assert [(each["line"], each["code"]) for each in job["errors"]] == [(3, "SKIPPED")]
    assert len(await workouts(coach, ana)) == 1
    only = await import_file(coach, rows, name="sets.csv", customerId=ana["_id"])
    assert [each["code"] for each in only["errors"]].count("OTHER_CLIENT") == 2


async def test_one_change_and_one_event_for_each_client(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    job = await import_file(coach, SETS, name="sets.csv", customerId=ana["_id"])
    listed = await events(coach, "history.imported", "workout.created", "item.logged", "record.achieved")
    assert [(each["type"], each["data"]) for each in listed] == [
        (
            "history.imported",
            {"importId": job["_id"], "sessions": 2, "sets": 3, "from": "2025-01-06", "to": "2025-01-08"},
        )
    ]


async def test_what_follows_from_an_import(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    job = await import_file(coach, SETS, name="sets.csv", customerId=ana["_id"])
    path = f"/coach/customers/{ana['_id']}"
    squat = job["result"]["names"][0]["match"]["_id"]

    history = (await coach.get(f"{path}/exercise/{squat}/history", pageSize=10, pageNum=1)).ok()["docs"]
    assert [(each["date"], each["volumeLoad"]) for each in history] == [("2025-01-08", 525.0), ("2025-01-06", 1012.5)]
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


async def test_an_undo_removes_what_has_not_changed(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    rows = rows_of_sets(
        "2025-01-06,Legs,Flurbing,5,100,", "2025-01-08,Legs,Flurbing,5,105,", "2025-01-09,Legs,Zorking,5,50,"
    )
    job = await import_file(coach, rows, name="sets.csv", customerId=ana["_id"])
    assert job["result"]["created"]["exercises"] == 2
    first, *_ = await workouts(coach, ana)
    (await coach.patch(f"/coach/customers/{ana['_id']}/wblocks/{first['_id']}", {"name": "Heavy legs"})).ok()

    undone = await undo(coach, job)

    assert (undone["kind"], undone["status"]) == ("undo", "done")
    assert undone["result"]["removed"] == {"customers": 0, "sessions": 2, "exercises": 1}
    staying = {each["documentId"]: each["code"] for each in undone["result"]["failed"]}
    assert staying.pop(first["_id"]) == "CHANGED"
    assert list(staying.values()) == ["IN_USE"]
    assert [block["name"] for block in await workouts(coach, ana)] == ["Heavy legs"]
    records = (await coach.get(f"/coach/customers/{ana['_id']}/personal-records")).ok()
    assert {each["date"] for each in records} == {"2025-01-06"}
    [event] = await events(coach, "history.removed")
    assert event["data"]["sessions"] == 2


async def test_an_undo_removes_clients_that_the_import_created(coach: CoachClient) -> None:
    rows = b"Client,Date,Exercise,Reps,Weight (kg)\nBo Li,2025-01-06,Squat,5,100\nCy Li,2025-01-06,Squat,5,100\n"
    answers = json.dumps({"Bo Li": "create", "Cy Li": "create"})
    job = await import_file(coach, rows, name="sets.csv", customers=answers)
    listed = (await coach.get("/coach/customers", archived="false", pageSize=10, pageNum=1)).ok()["docs"]
    bo = next(each for each in listed if each["name"] == "Bo")
    (await coach.post(f"/coach/customers/{bo['_id']}/notes", {"content": "Met today"})).ok(201)
    undone = await undo(coach, job)
    assert undone["result"]["removed"] == {"customers": 1, "sessions": 2, "exercises": 0}
    assert undone["result"]["failed"] == [
        {"documentId": bo["_id"], "code": "IN_USE", "message": "is used by what was created since the import"}
    ]


async def test_an_employee_imports_for_a_client_in_scope(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    helper = coach.with_key(await employee_key(coach, "customers.view", "customers.edit", scope="all"))
    assert (await send(helper, SETS, name="sets.csv")).status == 403
    job = await import_file(helper, SETS, name="sets.csv", customerId=ana["_id"])
    assert (job["status"], len(await workouts(coach, ana))) == ("done", 2)
    archive = await import_file(helper, b"name\nBo\n", name="clients.csv", customerId=ana["_id"])
    assert archive["errors"][-1]["code"] == "OWNER_ONLY"


async def test_new_exercises_need_their_permission(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    helper = coach.with_key(await employee_key(coach, "customers.view", "customers.edit", scope="all"))
    file = rows_of_sets("2025-01-06,Push,Squat,8,60", "2025-01-06,Push,Sled of Doom,5,100")
    checked = await import_file(helper, file, name="sets.csv", customerId=ana["_id"], dryRun="true")
    assert checked["result"]["created"] == {"customers": 0, "sessions": 1, "sets": 1, "exercises": 0}
    assert (checked["result"]["imported"], checked["result"]["reported"]) == (1, 1)
    assert [(each["line"], each["field"], each["code"]) for each in checked["errors"]] == [
        (None, None, "PERMISSION_MISSING"),
        (3, "exercise", "PERMISSION_MISSING"),
    ]
    assert [(each["name"], each["answer"]) for each in checked["result"]["names"] if each["match"] is None] == [
        ("Sled of Doom", None)
    ]

    refused = await import_file(helper, file, name="sets.csv", customerId=ana["_id"])
    assert (refused["status"], refused["errors"][-1]["code"]) == ("failed", "PERMISSION_MISSING")
    assert "Sled of Doom" in refused["errors"][-1]["message"] and "exercises.create" in refused["errors"][-1]["message"]
    assert await workouts(coach, ana) == []
    asked = json.dumps({"Sled of Doom": "create"})
    again = await import_file(helper, file, name="sets.csv", customerId=ana["_id"], names=asked)
    assert (again["status"], again["errors"][-1]["code"]) == ("failed", "PERMISSION_MISSING")

    left_out = json.dumps({"Sled of Doom": "skip"})
    done = await import_file(helper, file, name="sets.csv", customerId=ana["_id"], names=left_out)
    assert (done["status"], done["result"]["imported"], done["errors"][-1]["code"]) == ("done", 1, "SKIPPED")


async def test_a_key_without_the_permission_creates_no_exercises_for_its_owner(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    restrictions: NewRestrictions = {"permissions": ["customers.view", "customers.edit"]}
    narrow = coach.with_key((await api_keys.create(coach.ctx, "Narrow", restrictions))["key"])
    file = rows_of_sets("2025-01-06,Push,Sled of Doom,5,100")
    refused = await import_file(narrow, file, name="sets.csv", customerId=ana["_id"])
    assert (refused["status"], refused["errors"][-1]["code"]) == ("failed", "PERMISSION_MISSING")
    assert (await import_file(coach, file, name="sets.csv", customerId=ana["_id"]))["result"]["created"][
        "exercises"
    ] == 1


async def test_an_import_that_is_cancelled_keeps_its_sessions_and_reports_them(
    coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue runs one batch at a time here: the first of two is stored when the job is cancelled."""
    ana = await coach.create_customer("Ana")
    monkeypatch.setattr(importing, "_BATCH_SESSIONS", 1)
    monkeypatch.setattr(company_import, "_STEP_SECONDS", -1)
    step = features.STEPS[company_import.IMPORT]
    monkeypatch.delitem(features.STEPS, company_import.IMPORT)  # the service does not continue it
    job = (await send(coach, SETS, name="sets.csv", customerId=ana["_id"])).ok(202)
    while not await workouts(coach, ana):
        await worker.run_due(coach.ctx.services, {company_import.IMPORT: step}, limit=1)
    cancelled = (await coach.post(f"/coach/jobs/{job['_id']}/cancel")).ok()
    monkeypatch.setitem(features.STEPS, company_import.IMPORT, step)

    assert (cancelled["status"], cancelled["result"]["created"]["sessions"]) == ("cancelled", 1)
    follow = background_jobs.FOLLOW
    await worker.run_due(coach.ctx.services, {follow: features.STEPS[follow]})
    reported = await until(lambda: events(coach, "history.imported"), "the event")
    assert [each["data"]["sessions"] for each in reported] == [1]
    records = (await coach.get(f"/coach/customers/{ana['_id']}/personal-records")).ok()
    assert {each["date"] for each in records} == {"2025-01-06"}
    removed = await undo(coach, job)
    assert removed["result"]["removed"]["sessions"] == 1


async def test_warm_up_sets_stay_warm_up_when_a_log_is_corrected(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    await import_file(coach, HEVY.encode(), name="workouts.csv", customerId=ana["_id"])
    [block] = await workouts(coach, ana)
    item = block["items"][0]
    sets = [{"reps": 10, "load": 20}, {"reps": 9, "load": 61}]
    logged = (await log(coach, block, item, customerSets=sets)).ok()
    assert [each["isWarmup"] for each in logged["customerSets"]] == [True, False]
    again = (await log(coach, block, item, customerSets=[{**each, "isWarmup": False} for each in sets])).ok()
    assert [each["isWarmup"] for each in again["customerSets"]] == [False, False]


async def test_a_copy_of_an_imported_session_plans_what_was_done(coach: CoachClient) -> None:
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


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS)
async def test_rows_are_imported_or_reported(coach: CoachClient, rows: list[tuple[str, ...]]) -> None:
    ana = await coach.create_customer("Ana")
    out = io.StringIO()
    csv.writer(out).writerows([("Date", "Exercise", "Reps", "Weight (kg)", "Seconds"), *rows])
    job = await import_file(coach, out.getvalue().encode(), name="sets.csv", customerId=ana["_id"])
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


async def test_clients_with_the_same_name_can_be_told_apart(coach: CoachClient) -> None:
    first = await coach.create_customer("Twin", email="one@example.com")
    second = await coach.create_customer("Twin", email="two@example.com")
    third = await coach.create_customer("twín")
    other = await coach.create_customer("Twine")
    sheet = b"Client,Date,Exercise,Reps\nTwin,2025-01-06,Squat,5\n"

    preview = await import_file(coach, sheet, name="sets.csv", dry_run=True)

    [question] = preview["result"]["questions"]
    assert dict(zip(question["options"], question["labels"], strict=True)) == {
        first["_id"]: "Twin (one@example.com)",
        second["_id"]: "Twin (two@example.com)",
        third["_id"]: f"twín ({third['_id']})",
        other["_id"]: "Twine",
        "create": "Create a new client",
        "skip": "Leave out",
    }


async def test_columns_that_are_missing_are_asked_for(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    sheet = b"When,Lift,R,W (kg)\n2025-01-06,Squat,5,100\n2025-01-06,Squat,4,102.5\n"
    request = {"name": "sets.csv", "customerId": ana["_id"], "format": "sets"}

    preview = await import_file(coach, sheet, dry_run=True, **request)

    result = preview["result"]
    asked = [(each["code"], each["name"], each["options"]) for each in result["questions"]]
    assert asked == [("COLUMN", "date", ["When", "R", "W (kg)"]), ("COLUMN", "reps", ["When", "R", "W (kg)"])]
    assert (result["rows"], result["imported"], preview["errors"]) == (2, 2, [])
    refused = await import_file(coach, sheet, **request)
    assert [refused["status"], refused["errors"][-1]["code"]] == ["failed", "QUESTIONS_OPEN"]
    columns = json.dumps({"When": "date", "R": "reps", "W (kg)": "load"})
    job = await import_file(coach, sheet, **request, columns=columns)
    assert (job["status"], job["result"]["imported"], job["errors"]) == ("done", 2, [])
    [block] = await workouts(coach, ana)
    assert [each["load"] for each in block["items"][0]["customerSets"]] == [100, 102.5]


async def test_a_table_that_lacks_one_column_is_asked_about(coach: CoachClient) -> None:
    """Without a format: the date of a table of sets; a table of clients with a weight is still one of clients."""
    sets = b"Client,Tag,Exercise,Reps\nAna,2025-01-06,Squat,5\n"
    preview = await import_file(coach, sets, name="sets.csv", dry_run=True)
    asked = [(each["name"], each["options"]) for each in preview["result"]["questions"]]
    assert asked == [("date", ["Tag"]), ("Ana", ["create", "skip"])]
    clients = await import_file(coach, b"Name,Date,Weight\nAna,2025-01-06,60\n", name="c.csv", dry_run=True)
    assert (clients["result"]["format"], clients["result"]["imported"]) == ("customers", 1)


async def test_two_columns_of_a_field_are_reported(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    sheet = b"Date,Exercise,Reps,Weight (kg),Weight (kg),Reps\n2025-01-06,Squat,5,100,90,\n2025-01-06,Squat,,100,,6\n"
    job = await import_file(coach, sheet, name="sets.csv", customerId=ana["_id"])
    assert job["result"]["imported"] == 2
    assert [(each["line"], each["field"], each["code"]) for each in job["errors"]] == [
        (1, "Weight (kg)", "REPEATED_COLUMN"),
        (1, "Reps", "REPEATED_COLUMN"),
    ]
    same = await send(coach, sheet, name="sets.csv", columns='{"Date": "reps", "Exercise": "reps"}')
    assert same.refused(400)["errors"][0]["field"] == "columns"


async def test_a_wrong_answer_about_a_client_speaks_of_clients(coach: CoachClient) -> None:
    for reply, field, kind in (
        (await send(coach, SETS, customers='{"Ana": "nobody"}'), "customers", "a client"),
        (await send(coach, SETS, names='{"Ana": "nobody"}'), "names", "an exercise"),
    ):
        [error] = reply.refused(400)["errors"]
        assert (error["field"], error["message"]) == (field, f"Ana: must be the identifier of {kind}, create or skip")
