"""Import of a CSV file of clients: a preview of the problems by line, then the clients."""

from __future__ import annotations

from typing import Any

import pytest

from coaching_service.integrations.history_files import rosters
from tests.contract.test_queries import profiling
from tests.support.client import CoachClient
from tests.support.transfer import import_file, make_zip, pick, send

SHEET = """First name,Last name,E-mail,Phone,Birthday,Time zone,Tags,Shoe size
Ana,Ruiz,ana@example.com,+34 600 000 000,1990-05-01,Europe/Madrid,Online; Morning,38
José,,jose@example.com,,,,,
,Nobody,nobody@example.com,,,,,
Bo,Berg,no address,,1990-02-30,Mars,,

Ana,Ruiz,ANA@example.com,,,,,
"""


def counts(job: dict[str, Any]) -> tuple[int, int, int, int]:
    """Rows, imported, reported, and clients created; each row is imported or reported."""
    result = job["result"]
    assert result["rows"] == result["imported"] + result["reported"] == job["total"]
    return result["rows"], result["imported"], result["reported"], result["created"]["customers"]


def problems(job: dict[str, Any]) -> list[tuple[str, str | None]]:
    return pick(job["errors"], "entry", "field")


async def import_csv(coach: CoachClient, text: str | bytes, *, dry_run: bool = False) -> dict[str, Any]:
    content = text.encode() if isinstance(text, str) else text
    return await import_file(coach, content, dry_run=dry_run, name="clients.csv")


async def test_a_dry_run_previews_the_problems_of_each_line(coach: CoachClient) -> None:
    preview = await import_csv(coach, SHEET, dry_run=True)

    assert (preview["status"], preview["done"], preview["total"]) == ("done", 5, 5)
    problems = preview["result"].pop("problems")
    assert pick(problems, "code", "column", "count")[-1] == ("UNKNOWN_COLUMN", "Shoe size", 1)
    assert preview["result"] == {
        "dryRun": True,
        "format": "customers",
        "rows": 5,
        "imported": 3,
        "reported": 2,
        "created": {"customers": 3, "sessions": 0, "sets": 0, "exercises": 0},
        "from": None,
        "to": None,
        "questions": [],
        "names": [],
    }
    assert pick(preview["errors"], "entry", "field", "code") == [
        ("line 1", "Shoe size", "UNKNOWN_COLUMN"),
        ("line 4", "name", "EMPTY"),
        ("line 5", "birthday", "VALUE_LEFT_OUT"),
        ("line 5", "email", "VALUE_LEFT_OUT"),
        ("line 5", "timezone", "VALUE_LEFT_OUT"),
        ("line 7", None, "DUPLICATE"),
    ]
    assert preview["errors"][-1]["message"] == "is the same client as in line 2"
    assert (await coach.customers())["totalDocs"] == 0


async def test_valid_lines_become_clients_without_an_invitation(coach: CoachClient) -> None:
    imported = await import_csv(coach, SHEET)

    assert counts(imported) == (5, 3, 2, 3)
    ana, bo, jose = (await coach.customers())["docs"]
    assert (bo["name"], bo["surname"], bo["email"], bo["birthday"], bo["timezone"]) == ("Bo", "Berg", None, None, None)
    assert (ana["name"], ana["surname"], ana["email"]) == ("Ana", "Ruiz", "ana@example.com")
    assert (ana["phone"], ana["birthday"], ana["timezone"]) == ("+34 600 000 000", "1990-05-01", "Europe/Madrid")
    assert ana["customerRoleData"]["groups"] == ["Online", "Morning"]
    assert (jose["name"], jose["surname"], jose["phone"]) == ("José", None, None)
    mails = await coach.ctx.db["jobs"].count_documents({"companyId": coach.ctx.company_id, "kind": "send_mail"})
    assert mails == 0


async def test_importing_the_same_sheet_again_adds_nobody(coach: CoachClient) -> None:
    await import_csv(coach, SHEET)
    again = await import_csv(coach, SHEET)

    assert counts(again) == (5, 0, 5, 0)
    assert (await coach.customers())["totalDocs"] == 3


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252"])
async def test_sheets_as_spreadsheets_save_them(coach: CoachClient, delimiter: str, encoding: str) -> None:
    text = delimiter.join(("Name", "Groups")) + "\r\n" + delimiter.join(("'=José", '"A|B"')) + "\r\n"
    job = await import_csv(coach, text.encode(encoding))

    assert problems(job) == []
    (client,) = (await coach.customers())["docs"]
    assert (client["name"], client["customerRoleData"]["groups"]) == ("=José", ["A", "B"])


async def test_quotes_delimiters_and_lines_within_cells(coach: CoachClient) -> None:
    text = '"Name, or nickname";"First name";"Last name";Tags;Group\r\n'
    text += ';"Ana ""The Rock""; jr.";"Ruiz, Gil";A|B;"C"\r\n'
    text += ';"Bo\r\nBerg";"";;\r\n;Cleo;"2";;x;y\r\n'
    job = await import_csv(coach, "\ufeff" + text)

    assert problems(job) == [("line 1", "Name, or nickname"), ("line 3", "name"), ("line 5", None)]
    (ana,) = (await coach.customers())["docs"]
    assert (ana["name"], ana["surname"]) == ('Ana "The Rock"; jr.', "Ruiz, Gil")
    assert ana["customerRoleData"]["groups"] == ["A", "B", "C"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (";".join(["name", *(f"column {number}" for number in range(500))]) + "\nAna\n", "500 are possible"),
        ("name,surname,last name\nAna,Bo,Cy\n", "several columns for: surname"),
        ("Surname\nRuiz\n", "no column with names of clients; it has: Surname"),
        ("Client,Exercise,Reps\nAna,Row,8\n", "The nearest is sets, which needs: date"),
        ("name\n", "no rows"),
        ('name\n"Ana\n', "not a CSV file"),
        ("name\n" + "Ana\n" * 4, "more than 3 rows"),
    ],
)
async def test_a_file_that_is_no_sheet_of_clients_fails(
    coach: CoachClient, text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rosters, "MAX_CLIENTS", 3)
    job = await import_csv(coach, text)
    assert job["status"] == "failed"
    assert message in job["errors"][0]["message"]
    assert (await coach.customers())["totalDocs"] == 0


async def test_a_line_with_too_many_cells_is_a_problem(coach: CoachClient) -> None:
    job = await import_csv(coach, "name,email\nAna,ana@example.com,+1\nBo\n")
    assert problems(job) == [("line 2", None)]
    assert await coach.names() == ["Bo"]


async def test_external_identifiers_are_unique_in_the_file_and_in_the_company(coach: CoachClient) -> None:
    await coach.create_customer("First", externalId="crm-1")
    text = (
        "Name,E-mail,External ID\nAna,ana@example.com,crm-1\nBo,,crm-2\nBo,,crm-3\nBo,,\nCleo,,crm-2\nDan,,a b\nEve,,\n"
    )
    preview = await import_csv(coach, text, dry_run=True)
    job = await import_csv(coach, text)

    assert problems(job) == [(f"line {line}", field) for line, field in PROBLEMS]
    assert preview["errors"] == job["errors"]
    assert preview["result"] == {**job["result"], "dryRun": True}
    clients = (await coach.customers())["docs"]
    assert [(client["name"], client["externalId"]) for client in clients] == [
        ("Bo", "crm-2"),
        ("Bo", "crm-3"),
        ("Dan", None),
        ("Eve", None),
        ("First", "crm-1"),
    ]


PROBLEMS = ((2, "externalId"), (5, None), (6, "externalId"), (7, "externalId"))


async def test_known_clients_are_updated_with_the_filled_cells(coach: CoachClient) -> None:
    """Contract 14: `onConflict: update`; a client without the identifier is still reported."""
    ana = await coach.create_customer("Ana", externalId="crm-1", phone="+34 600")
    await coach.create_customer("Bo", email="bo@example.com")
    sheet = "name,externalId,phone,surname,email\nAna,crm-1,,Flores,\nCy,crm-2,,,\nBo,,,,BO@example.com\n"

    preview = await import_file(coach, sheet.encode(), dry_run=True, name="c.csv", onConflict="update")
    assert counts(preview) == (3, 2, 1, 1)
    assert (await coach.get(f"/coach/customers/{ana['_id']}")).ok()["surname"] is None

    job = await import_file(coach, sheet.encode(), name="c.csv", onConflict="update")

    assert counts(job) == (3, 2, 1, 1)
    assert pick(job["errors"], "entry", "code") == [("line 4", "ALREADY_EXISTS")]
    changed = (await coach.get(f"/coach/customers/{ana['_id']}")).ok()
    assert (changed["surname"], changed["phone"]) == ("Flores", "+34 600")
    assert (await coach.customers())["totalDocs"] == 3


async def test_problems_have_a_code(coach: CoachClient) -> None:
    await coach.create_customer("Ana", externalId="crm-1")
    sheet = (
        "name,externalId,shoe size,email\nBo,crm-1,,\nBo,crm-2,,no address\nCy,crm-3,,\nDi,crm-3,,\nEli,,,,,\nFlo,,,,\n"
    )
    job = await import_csv(coach, sheet)
    assert pick(job["errors"], "entry", "field", "code") == [
        ("line 1", "shoe size", "UNKNOWN_COLUMN"),
        ("line 2", "externalId", "EXTERNAL_ID_TAKEN"),
        ("line 3", "email", "VALUE_LEFT_OUT"),
        ("line 5", "externalId", "DUPLICATE"),
        ("line 6", None, "TOO_MANY_CELLS"),
        ("line 7", None, "TOO_MANY_CELLS"),
    ]
    assert pick(job["errors"][-2:], "message") == [
        ("has 2 more cells than there are columns",),
        ("has 1 more cell than there are columns",),
    ]
    assert (await import_csv(coach, "surname\nRuiz\n"))["errors"][0]["code"] == "INVALID_FILE"


async def test_problems_name_the_client_who_is_here_already(coach: CoachClient) -> None:
    """As over REST, `_id` is the client with the identifier, or with the same name and address."""
    ana = await coach.create_customer("Ana", externalId="crm-1")
    bo = await coach.create_customer("Bo", surname="Berg", email="bo@example.com")
    sheet = "name,surname,externalId,email\nAnna,,crm-1,\nbo,berg,crm-2,BO@example.com\nCy,,,no address\n"

    job = await import_csv(coach, sheet)

    assert [(error["code"], error.get("_id", "absent")) for error in job["errors"]] == [
        ("EXTERNAL_ID_TAKEN", ana["_id"]),
        ("ALREADY_EXISTS", bo["_id"]),
        ("VALUE_LEFT_OUT", "absent"),
    ]


async def test_a_file_is_read_in_few_commands(coach: CoachClient) -> None:
    """The number of reads does not grow with the rows."""
    await coach.create_customer("Ana", email="ana0@example.com")
    rows = "".join(f"Ana,ana{number}@example.com,crm-{number}\n" for number in range(100))
    async with profiling(coach) as entries:
        job = await import_csv(coach, f"name,email,externalId\n{rows}")
        commands = await entries()
    assert counts(job) == (100, 99, 1, 99)
    reads = [each for each in commands if each["ns"].endswith(".customers")]
    assert len(reads) < 40


async def test_updating_is_only_for_csv_files(coach: CoachClient) -> None:
    refused = (await send(coach, make_zip({"header.json": b"{}"}), onConflict="update")).refused(400)
    assert pick(refused["errors"], "field", "code") == [("onConflict", "NOT_SUPPORTED")]
