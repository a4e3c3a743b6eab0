"""What other features make of imported history: last time, workload, attention, exports of the company."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.conftest import NewCompany
from tests.support.client import CoachClient
from tests.support.imported_history import HEVY, SETS, rows_of_sets, workouts
from tests.support.training import block_with, exercise_of
from tests.support.transfer import export, import_file, make_zip


async def test_the_workout_of_today_has_the_last_time(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    job = await import_file(coach, SETS, name="sets.csv", customerId=ana["_id"])
    squat = job["result"]["names"][0]["match"]
    block = await block_with(coach, ana, exercise_of(squat))
    path = f"/coach/customers/{ana['_id']}"
    item = (await coach.get(f"{path}/wblocks/{block['_id']}", include="lastTime")).ok()["items"][0]
    assert (item["lastTime"]["date"], item["lastTime"]["sets"][0]["load"]) == ("2025-01-08", 105)
    period = {"startDate": "2025-01-01", "endDate": "2025-01-31", "groupBy": "month"}
    [month] = (await coach.get(f"{path}/workload", **period)).ok()["periods"]
    assert (month["sessions"], month["sets"], month["volumeLoad"]) == (2, 3, 1537.5)
    volume = (await coach.get(f"{path}/musclegroups/volume", startDate="2025-01-01", endDate="2025-01-31")).ok()
    assert volume["muscleGroups"]


async def test_attention_does_not_report_records_of_imported_sessions(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    today = coach.ctx.caller.today()
    days = [str(today - timedelta(days=each)) for each in (9, 2)]
    rows = rows_of_sets(f"{days[0]},Legs,Squat,5,100,", f"{days[1]},Legs,Squat,5,120,")
    await import_file(coach, rows, name="sets.csv", customerId=ana["_id"])
    records = (await coach.get(f"/coach/customers/{ana['_id']}/personal-records")).ok()
    assert {each["date"] for each in records if each["type"] == "heaviest_load"} == {days[1]}
    attention = (await coach.get("/coach/attention", pageSize=10, pageNum=1)).ok()["docs"]
    reasons = [reason["type"] for each in attention for reason in each["reasons"]]
    assert not {"personal_record", "missed_workouts", "missed_workout"} & set(reasons)


async def test_imported_sessions_leave_and_enter_with_an_export(coach: CoachClient, new_company: NewCompany) -> None:
    ana = await coach.create_customer("Ana")
    await import_file(coach, HEVY.encode(), name="workouts.csv", customerId=ana["_id"])
    target = await new_company()
    job = await import_file(target, make_zip(await export(coach)))
    assert (job["status"], job["errors"]) == ("done", [])
    [there] = await workouts(target, (await target.customers())["docs"][0])
    [here] = await workouts(coach, ana)
    names = ("name", "date", "startTime", "durationMinutes", "isCompleted")
    assert {name: there[name] for name in names} == {name: here[name] for name in names}
    assert (there["source"]["format"], sets_of(there)) == ("hevy", sets_of(here))
    again = await import_file(target, HEVY.encode(), name="again.csv", customerId=there["customerId"])
    assert again["result"]["created"]["sessions"] == 0


def sets_of(block: dict[str, Any]) -> list[dict[str, Any]]:
    return [done for item in block["items"] for done in item["customerSets"]]
