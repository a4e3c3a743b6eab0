"""Import of a CSV file of clients: a preview of the problems by line, then the clients."""

from __future__ import annotations

from typing import Any

import pytest

from coaching_service.integrations.company_import import customer_rows
from tests.support.client import CoachClient
from tests.support.transfer import import_file

SHEET = """First name,Last name,E-mail,Phone,Birthday,Time zone,Tags,Shoe size
Ana,Ruiz,ana@example.com,+34 600 000 000,1990-05-01,Europe/Madrid,Online; Morning,38
José,,jose@example.com,,,,,
,Nobody,nobody@example.com,,,,,
Bo,Berg,no address,,1990-02-30,Mars,,

Ana,Ruiz,ANA@example.com,,,,,
"""


def problems(job: dict[str, Any]) -> list[tuple[str, str | None]]:
    return [(error["entry"], error["field"]) for error in job["errors"]]


async def import_csv(coach: CoachClient, text: str | bytes, *, dry_run: bool = False) -> dict[str, Any]:
    content = text.encode() if isinstance(text, str) else text
    return await import_file(coach, content, dry_run=dry_run, name="clients.csv")


async def test_a_dry_run_previews_the_problems_of_each_line(coach: CoachClient) -> None:
    preview = await import_csv(coach, SHEET, dry_run=True)

    assert (preview["status"], preview["done"], preview["total"]) == ("done", 5, 5)
    assert preview["result"] == {"dryRun": True, "imported": {"customers": 2}, "failed": 3}
    assert problems(preview) == [
        ("line 1", "Shoe size"),
        ("line 4", "name"),
        ("line 5", "email"),
        ("line 5", "birthday"),
        ("line 5", "timezone"),
        ("line 7", None),
    ]
    assert preview["errors"][-1]["message"] == "is the same client as in line 2"
    assert (await coach.customers())["totalDocs"] == 0


async def test_valid_lines_become_clients_without_an_invitation(coach: CoachClient) -> None:
    imported = await import_csv(coach, SHEET)

    assert imported["result"] == {"dryRun": False, "imported": {"customers": 2}, "failed": 3}
    ana, jose = (await coach.customers())["docs"]
    assert (ana["name"], ana["surname"], ana["email"]) == ("Ana", "Ruiz", "ana@example.com")
    assert (ana["phone"], ana["birthday"], ana["timezone"]) == ("+34 600 000 000", "1990-05-01", "Europe/Madrid")
    assert ana["customerRoleData"]["groups"] == ["Online", "Morning"]
    assert (jose["name"], jose["surname"], jose["phone"]) == ("José", None, None)
    mails = await coach.ctx.db["jobs"].count_documents({"companyId": coach.ctx.company_id, "kind": "send_mail"})
    assert mails == 0


async def test_importing_the_same_sheet_again_adds_nobody(coach: CoachClient) -> None:
    await import_csv(coach, SHEET)
    again = await import_csv(coach, SHEET)

    assert again["result"] == {"dryRun": False, "imported": {}, "failed": 5}
    assert (await coach.customers())["totalDocs"] == 2


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
        (";".join(["name", *(f"column {number}" for number in range(500))]) + "\nAna\n", "more than 500 columns"),
        ("name,first name\nAna,Bo\n", "several columns for: name"),
        ("Surname\nRuiz\n", "heading name"),
        ("name\n", "no rows"),
        ('name\n"Ana\n', "not a CSV file"),
        ("name\n" + "Ana\n" * 4, "more than 3 rows"),
    ],
)
async def test_a_file_that_is_no_sheet_of_clients_fails(
    coach: CoachClient, text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(customer_rows, "MAX_ROWS", 3)
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

    assert problems(job) == [(f"line {line}", field) for line, field in LEFT_OUT]
    assert preview["errors"] == job["errors"]
    assert preview["result"] == {**job["result"], "dryRun": True}
    clients = (await coach.customers())["docs"]
    assert [(client["name"], client["externalId"]) for client in clients] == [
        ("Bo", "crm-2"),
        ("Bo", "crm-3"),
        ("Eve", None),
        ("First", "crm-1"),
    ]


LEFT_OUT = ((2, "externalId"), (5, None), (6, "externalId"), (7, "externalId"))
