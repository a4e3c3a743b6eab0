"""What results, errors, the history and the undo say about imports that store nothing or a part of their file."""

from __future__ import annotations

import json

import pytest

from tests.support.client import CoachClient
from tests.support.service_process import until
from tests.support.training import employee_key
from tests.support.transfer import import_file, undo

SETS = b"Date,Exercise,Reps,Weight (kg)\n2025-01-06,Squat,8,60\n2025-01-06,Sled of Doom,5,100\n2025-01-07,Squat,,\n"
OPEN = b"Date,Exercise,Reps,Weight\n2025-01-06,Squat,5,100\n2025-01-07,Squat,5,100\n2025-01-07,Squat,,\n"


async def test_an_import_without_the_permission_for_exercises_says_the_same_as_its_check(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    helper = coach.with_key(await employee_key(coach, "customers.view", "customers.edit", scope="all"))
    checked = await import_file(helper, SETS, name="sets.csv", customerId=ana["_id"], dry_run=True)
    refused = await import_file(helper, SETS, name="sets.csv", customerId=ana["_id"])
    for job in (checked, refused):
        found = sorted((each["line"] or 0, each["code"]) for each in job["errors"])
        assert found == [(0, "PERMISSION_MISSING"), (3, "PERMISSION_MISSING"), (4, "NOT_A_SET")]
        [of_file] = [each for each in job["errors"] if each["line"] is None]
        assert "Sled of Doom" in of_file["message"] and "exercises.create" in of_file["message"]
        assert (job["result"]["format"], job["result"]["rows"]) == ("sets", 3)
        assert job["result"]["created"]["exercises"] == 0
    assert checked["result"]["names"] == refused["result"]["names"]
    assert (refused["status"], refused["result"]["imported"], refused["result"]["reported"]) == ("failed", 0, 3)


@pytest.mark.parametrize(("file", "left"), [(OPEN, "2 rows are not imported"), (OPEN[:-15], "2 rows are")])
async def test_a_run_that_fails_says_of_how_many_rows(coach: CoachClient, file: bytes, left: str) -> None:
    """All reported rows are in the errors: those with a problem of their own by line, the others by their number."""
    ana = await coach.create_customer("Ana")
    job = await import_file(coach, file, name="sets.csv", customerId=ana["_id"])
    assert (job["status"], job["result"]["imported"]) == ("failed", 0)
    *of_rows, of_file = job["errors"]
    assert (of_file["line"], of_file["code"]) == (None, "QUESTIONS_OPEN")
    assert left in of_file["message"]
    assert job["result"]["reported"] == len(of_rows) + 2


@pytest.mark.parametrize(
    "file", [OPEN, b"Date,Exercise,Reps\n2025-01-06,Squat,\n", b"Datum,Puls\n2025-01-06,60\n", b"Name,Email\n,\n,x\n"]
)
async def test_an_import_that_has_stored_nothing_cannot_be_undone(coach: CoachClient, file: bytes) -> None:
    ana = await coach.create_customer("Ana")
    who = {} if file.startswith(b"Name") else {"customerId": ana["_id"]}
    job = await import_file(coach, file, name="sets.csv", **who)
    refused = (await coach.post(f"/coach/jobs/{job['_id']}/undo")).refused(409)
    assert refused["code"] == "NOT_UNDOABLE"


async def test_an_import_that_has_stored_a_part_can_be_undone(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    job = await import_file(coach, SETS, name="sets.csv", customerId=ana["_id"], names=json.dumps({"Squat": "skip"}))
    assert job["result"]["reported"] == 2
    assert (await undo(coach, job))["result"]["removed"] == {"customers": 0, "sessions": 1, "exercises": 1}


async def test_the_history_tells_estimates_from_training_maximums(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    path = f"/coach/customers/{ana['_id']}"
    job = await import_file(coach, SETS, name="sets.csv", customerId=ana["_id"])
    squat = next(each["match"]["_id"] for each in job["result"]["names"] if each["match"])
    assert (await coach.get(f"{path}/training-maxes")).ok() == []
    (await coach.put(f"{path}/training-maxes/{squat}", {"value": 100})).ok()
    summaries: list[str] = []

    async def is_numbered() -> bool:
        listed = (await coach.get("/coach/changes", customerId=ana["_id"])).ok()["docs"]
        summaries[:] = [each["summary"] for each in listed]
        return "1 training maximum created" in summaries

    await until(is_numbered, "the change of the training maximum is numbered")
    [of_import] = [each for each in summaries if "imported" in each]
    assert "2 estimated 1RMs created" in of_import
    assert "training maximum" not in of_import
