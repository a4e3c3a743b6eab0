"""Questions about a file: what is asked for, all at once, and the answers."""

from __future__ import annotations

import json

import pytest

from tests.support.client import CoachClient
from tests.support.imported_history import SETS, workouts
from tests.support.transfer import import_file, pick, send

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
    assert pick(job["errors"], "line", "code") == [(3, "SKIPPED")]
    assert len(await workouts(coach, ana)) == 1
    only = await import_file(coach, rows, name="sets.csv", customerId=ana["_id"])
    assert [each["code"] for each in only["errors"]].count("OTHER_CLIENT") == 2


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
    asked = pick(result["questions"], "code", "name", "options")
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
    asked = pick(preview["result"]["questions"], "name", "options")
    assert asked == [("date", ["Tag"]), ("Ana", ["create", "skip"])]
    clients = await import_file(coach, b"Name,Date,Weight\nAna,2025-01-06,60\n", name="c.csv", dry_run=True)
    assert (clients["result"]["format"], clients["result"]["imported"]) == ("customers", 1)


async def test_a_wrong_answer_about_a_client_speaks_of_clients(coach: CoachClient) -> None:
    for reply, field, kind in (
        (await send(coach, SETS, customers='{"Ana": "nobody"}'), "customers", "a client"),
        (await send(coach, SETS, names='{"Ana": "nobody"}'), "names", "an exercise"),
    ):
        [error] = reply.refused(400)["errors"]
        assert (error["field"], error["message"]) == (field, f"Ana: must be the identifier of {kind}, create or skip")
