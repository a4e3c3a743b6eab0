"""Questions about a file come at once, with all names: none hides another one."""

from __future__ import annotations

import json

import pytest

from tests.integrations.test_history_import import workouts
from tests.support.client import CoachClient
from tests.support.transfer import import_file

ALL = b"Client,Date,Exercise,Reps,Weight,Distance\nBo Li,03/04/2026,Squat,5,100,\nBo Li,05/04/2026,Sled of Doom,,,40\n"


async def test_an_open_order_of_dates_hides_no_other_question(coach: CoachClient) -> None:
    dry = (await import_file(coach, ALL, name="sets.csv", dry_run=True))["result"]
    codes = {each["code"] for each in dry["questions"]}
    assert codes == {"DATE_ORDER", "LOAD_UNIT", "DISTANCE_UNIT", "CUSTOMER"}
    assert {each["name"]: each["answer"] for each in dry["names"]} == {"Squat": None, "Sled of Doom": "create"}
    assert (dry["rows"], dry["imported"], dry["reported"]) == (2, 2, 0)
    assert (dry["created"]["exercises"], dry["from"], dry["to"]) == (1, None, None)

    failed = await import_file(coach, ALL, name="sets.csv")
    assert "CUSTOMER, DATE_ORDER, DISTANCE_UNIT, LOAD_UNIT" in failed["errors"][-1]["message"]

    new = json.dumps({"Bo Li": "create"})
    job = await import_file(coach, ALL, name="s.csv", dateOrder="dmy", loadUnit="kg", distanceUnit="m", customers=new)
    assert (job["status"], job["errors"], job["result"]["imported"]) == ("done", [], 2)
    [bo] = (await coach.customers(pageSize=10))["docs"]
    assert [each["date"] for each in await workouts(coach, bo)] == ["2026-04-03", "2026-04-05"]


async def test_an_open_unit_of_distances_hides_no_other_question(coach: CoachClient) -> None:
    """Rows with nothing but a distance have no set until its unit is known."""
    file = b"Date,Exercise,Distance\n2026-04-03,Sled of Doom,40\n2026-04-04,Sled of Doom,\n"
    dry = await import_file(coach, file, name="sets.csv", dry_run=True)
    result = dry["result"]
    assert [each["code"] for each in result["questions"]] == ["DISTANCE_UNIT", "CUSTOMER"]
    assert [each["name"] for each in result["names"]] == ["Sled of Doom"]
    assert (result["rows"], result["imported"], result["reported"]) == (2, 1, 1)


@pytest.mark.parametrize(
    ("headings", "row", "codes", "names"),
    [
        ("Client,Jour,Exercise,Reps,Weight", "Bo,2026-04-03,Sled of Doom,5,100", {"COLUMN", "LOAD_UNIT", "CUSTOMER"}, ["Sled of Doom"]),
        ("Client,Date,Exercise,Often", "Bo,03/04/2026,Sled of Doom,5", {"COLUMN", "DATE_ORDER", "CUSTOMER"}, ["Sled of Doom"]),
        ("Date,What,Reps,Weight", "03/04/2026,Squat,5,100", {"COLUMN", "DATE_ORDER", "LOAD_UNIT", "CUSTOMER"}, []),
    ],
)  # fmt: skip
async def test_a_missing_column_hides_no_other_question(
    coach: CoachClient, headings: str, row: str, codes: set[str], names: list[str]
) -> None:
    dry = await import_file(coach, f"{headings}\n{row}\n".encode(), name="sets.csv", dry_run=True)
    assert {each["code"] for each in dry["result"]["questions"]} == codes
    assert [each["name"] for each in dry["result"]["names"]] == names
    assert (dry["result"]["rows"], dry["result"]["imported"], dry["result"]["reported"]) == (1, 1, 0)


async def test_rows_of_an_open_date_that_are_left_out_are_reported(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    file = b"Date,Exercise,Reps\n03/04/2026,Squat,5\n03/04/2026,Sled of Doom,5\n03/04/2026,Squat,\n"
    skip = json.dumps({"Sled of Doom": "skip"})
    dry = (await import_file(coach, file, name="s.csv", dry_run=True, customerId=ana["_id"], names=skip))["result"]
    assert [each["code"] for each in dry["questions"]] == ["DATE_ORDER"]
    assert (dry["rows"], dry["imported"], dry["reported"]) == (3, 1, 2)
