"""Import of a CSV file of clients: a preview of the problems by line, then the clients."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest

from coaching_service.integrations.history_files import rosters
from coaching_service.people.team import service as team
from tests.contract.test_queries import profiling
from tests.support.client import UNKNOWN, CoachClient
from tests.support.transfer import import_file, make_zip, send, undo

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
    return [(error["entry"], error["field"]) for error in job["errors"]]


async def import_csv(coach: CoachClient, text: str | bytes, *, dry_run: bool = False) -> dict[str, Any]:
    content = text.encode() if isinstance(text, str) else text
    return await import_file(coach, content, dry_run=dry_run, name="clients.csv")


async def test_a_dry_run_previews_the_problems_of_each_line(coach: CoachClient) -> None:
    preview = await import_csv(coach, SHEET, dry_run=True)

    assert (preview["status"], preview["done"], preview["total"]) == ("done", 5, 5)
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
    assert [(each["entry"], each["field"], each["code"]) for each in preview["errors"]] == [
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
        ("name,first name\nAna,Bo\n", "several columns for: name"),
        ("Surname\nRuiz\n", "no column with names of clients; it has: Surname"),
        ("Client,Exercise,Reps\nAna,Row,8\n", "has exercises, not clients"),
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
    assert [(error["entry"], error["code"]) for error in job["errors"]] == [("line 4", "ALREADY_EXISTS")]
    changed = (await coach.get(f"/coach/customers/{ana['_id']}")).ok()
    assert (changed["surname"], changed["phone"]) == ("Flores", "+34 600")
    assert (await coach.customers())["totalDocs"] == 3


async def test_problems_have_a_code(coach: CoachClient) -> None:
    await coach.create_customer("Ana", externalId="crm-1")
    sheet = "name,externalId,shoe size,email\nBo,crm-1,,\nBo,crm-2,,no address\nCy,crm-3,,\nDi,crm-3,,\nEli,,,,,\n"
    job = await import_csv(coach, sheet)
    assert [(error["entry"], error["field"], error["code"]) for error in job["errors"]] == [
        ("line 1", "shoe size", "UNKNOWN_COLUMN"),
        ("line 2", "externalId", "EXTERNAL_ID_TAKEN"),
        ("line 3", "email", "VALUE_LEFT_OUT"),
        ("line 5", "externalId", "DUPLICATE"),
        ("line 6", None, "TOO_MANY_CELLS"),
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
    """2,000 rows are imported within 15 seconds; the number of reads does not grow with the rows."""
    await coach.create_customer("Ana", email="ana0@example.com")
    rows = "".join(f"Ana,ana{number}@example.com,crm-{number}\n" for number in range(400))
    async with profiling(coach) as entries:
        job = await import_csv(coach, f"name,email,externalId\n{rows}")
        commands = await entries()
    assert counts(job) == (400, 399, 1, 399)
    reads = [each for each in commands if each["ns"].endswith(".customers")]
    assert len(reads) < 40


async def test_updating_is_only_for_csv_files(coach: CoachClient) -> None:
    form = aiohttp.FormData({"onConflict": "update"}, default_to_multipart=True)
    form.add_field("file", make_zip({"header.json": b"{}"}), filename="export.zip")
    refused = (await coach.send("POST", "/coach/import", data=form)).refused(400)
    assert [(each["field"], each["code"]) for each in refused["errors"]] == [("onConflict", "NOT_SUPPORTED")]


TRUECOACH = """Name,Email,Phone,Program,Start Date,Status,Notes,Tags
Mara Quill,mara.quill@example.com,+1 555 0100,Base Strength,03/14/2025,Active,"Left knee, careful","remote, strength"
Ivo Brandt,ivo.brandt@example.com,,Base Strength,11/02/2024,Archived,,"in-person"
"""
TRAINERIZE = """Full Name,First Name,Last Name,Email,Phone,Goal,Notes,Status,Start Date
Mara Quill,Mara,Quill,mara.quill@example.com,+1 555 0100,Fat loss,Left knee,Active,2025-03-14
Ivo Brandt,Ivo,Brandt,ivo.brandt@example.com,,Strength,,Deactivated,2024-11-02
"""
GYM = """First Name,Last Name,Email,Gender,Date of Birth,Client Status,Default Program,Default Location,Phone
Mara,Quill,mara.quill@example.com,Female,04/12/1990,Active,CrossFit,Main,555-0100
Ivo,Brandt,ivo.brandt@example.com,Male,11/30/1985,Inactive,CrossFit,Main,
"""


async def clients_of(coach: CoachClient) -> dict[str, dict[str, Any]]:
    """All clients by their first word, with the texts of their notes."""
    docs = [
        each
        for archived in ("false", "true")
        for each in (await coach.get("/coach/customers", archived=archived, pageSize=50, pageNum=1)).ok()["docs"]
    ]
    for each in docs:
        each["notes"] = [note["content"] for note in (await coach.get(f"/coach/customers/{each['_id']}/notes")).ok()]
    return {each["name"].split()[0]: each for each in docs}


async def test_a_roster_of_truecoach(coach: CoachClient) -> None:
    job = await import_csv(coach, TRUECOACH)
    assert counts(job) == (2, 2, 0, 2)
    clients = await clients_of(coach)
    assert (clients["Mara"]["name"], clients["Mara"]["notes"]) == ("Mara Quill", ["Left knee, careful"])
    assert clients["Mara"]["customerRoleData"]["groups"] == ["remote", "strength"]
    assert [clients[name]["customerRoleData"]["isArchived"] for name in ("Mara", "Ivo")] == [False, True]


async def test_a_roster_of_trainerize_twice(coach: CoachClient) -> None:
    """Goals are notes; a second import with `update` adds no note again, and restores who is active now."""
    await import_csv(coach, TRAINERIZE)
    clients = await clients_of(coach)
    assert sorted(clients["Mara"]["notes"]) == ["Goal: Fat loss", "Left knee"]
    assert (clients["Ivo"]["surname"], clients["Ivo"]["notes"]) == ("Brandt", ["Goal: Strength"])
    assert clients["Ivo"]["customerRoleData"]["isArchived"]
    again = TRAINERIZE.replace("Deactivated", "Active")
    answers = {"mara quill": clients["Mara"]["_id"], "ivo.brandt@example.com": clients["Ivo"]["_id"]}
    job = await import_file(coach, again.encode(), name="c.csv", customers=json.dumps(answers))
    assert counts(job) == (2, 2, 0, 0)
    assert {
        name: (sorted(each["notes"]), each["customerRoleData"]["isArchived"])
        for name, each in (await clients_of(coach)).items()
    } == {
        "Mara": (["Goal: Fat loss", "Left knee"], False),
        "Ivo": (["Goal: Strength"], False),
    }


async def test_birthdays_in_the_order_of_the_file(coach: CoachClient) -> None:
    job = await import_csv(coach, GYM)
    assert counts(job) == (2, 2, 0, 2)
    clients = await clients_of(coach)
    assert [clients[name]["birthday"] for name in ("Mara", "Ivo")] == ["1990-04-12", "1985-11-30"]
    assert clients["Ivo"]["customerRoleData"]["isArchived"]


async def test_an_order_of_dates_that_the_file_leaves_open_is_asked_for(coach: CoachClient) -> None:
    sheet = b"Name,Date of birth\nAna,03/04/1990\nBo,\n"
    preview = await import_file(coach, sheet, dry_run=True, name="c.csv")
    assert (preview["status"], counts(preview)) == ("done", (2, 2, 0, 2))
    assert [(each["code"], each["options"]) for each in preview["result"]["questions"]] == [
        ("DATE_ORDER", ["dmy", "mdy"])
    ]
    refused = await import_file(coach, sheet, name="c.csv")
    assert (refused["status"], refused["errors"][-1]["code"]) == ("failed", "QUESTIONS_OPEN")
    assert (await coach.customers())["totalDocs"] == 0
    job = await import_file(coach, sheet, name="c.csv", dateOrder="dmy")
    assert counts(job) == (2, 2, 0, 2)
    assert (await clients_of(coach))["Ana"]["birthday"] == "1990-04-03"


async def test_trainers_by_address_or_name_and_columns_by_answer(coach: CoachClient) -> None:
    eli = await team.create_employee(coach.ctx, "Eli Roth", "eli-r@example.com", [], "all", "no hash")
    sheet = (
        "Athlete,Coach Email,ID,Box,Mood\nAna Ruiz,eli-r@example.com,17,Blue|Red,x\nBo,eli roth,18,,\nCy,Nobody,,,\n"
    )
    job = await import_file(coach, sheet.encode(), name="c.csv", columns='{"Box": "groups", "Mood": ""}')
    assert counts(job) == (3, 3, 0, 3)
    assert [(each["entry"], each["field"], each["code"]) for each in job["errors"]] == [
        ("line 1", "Mood", "UNKNOWN_COLUMN"),
        ("line 4", "assignedTo", "VALUE_LEFT_OUT"),
    ]
    clients = await clients_of(coach)
    trainers = {name: each["customerRoleData"]["assignedTo"] for name, each in clients.items()}
    assert trainers == {"Ana": str(eli["_id"]), "Bo": str(eli["_id"]), "Cy": None}
    ana = clients["Ana"]
    assert (ana["surname"], ana["externalId"]) == ("Ruiz", "17")
    assert ana["customerRoleData"]["groups"] == ["Blue", "Red"]


async def test_answers_about_clients(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", email="ana@example.com")
    sheet = b"name,email,phone\nAna,ana@example.com,1\nBo,,2\nCy,,3\n"
    answers = json.dumps({"Ana": "create", "bo": "skip", "Cy": ana["_id"]})
    job = await import_file(coach, sheet, name="c.csv", customers=answers)
    assert counts(job) == (3, 2, 1, 1)
    assert [(each["line"], each["code"]) for each in job["errors"]] == [(3, "SKIPPED")]
    assert await coach.names() == ["Ana", "Cy"]
    unknown = json.dumps({"Ana": UNKNOWN})
    assert (await import_file(coach, sheet, name="c.csv", customers=unknown))["errors"][0]["code"] == "NOT_FOUND"


async def test_the_undo_of_a_roster_removes_its_clients(coach: CoachClient) -> None:
    """But for one who has been changed since; the notes of the import do not count as use."""
    job = await import_csv(coach, TRAINERIZE)
    mara = (await clients_of(coach))["Mara"]
    (await coach.patch(f"/coach/customers/{mara['_id']}", {"phone": "1"})).ok()
    undone = await undo(coach, job)
    assert (undone["status"], undone["result"]["removed"]["customers"]) == ("done", 1), undone
    assert list(await clients_of(coach)) == ["Mara"]


async def test_rosters_of_two_services_have_the_same_people(coach: CoachClient) -> None:
    """The e-mail address decides, however the names are divided; without one the full name."""
    await import_csv(coach, TRUECOACH)
    job = await import_csv(coach, TRAINERIZE)
    assert [(each["line"], each["code"]) for each in job["errors"] if each["code"] != "UNKNOWN_COLUMN"] == [
        (2, "ALREADY_EXISTS"),
        (3, "ALREADY_EXISTS"),
    ]
    await coach.create_customer("Ana Flores", email="ana@example.com")
    await coach.create_customer("Zoë", surname="de la Cruz")
    sheet = (
        "Name,Surname,Email\nAna,Flores,\nZoe de la,Cruz,\nAna,Flores,ana.two@example.com\nA,F,ANA.TWO@example.com\n"
    )
    job = await import_csv(coach, sheet)
    assert [(each["line"], each["code"]) for each in job["errors"]] == [
        (2, "ALREADY_EXISTS"),
        (3, "ALREADY_EXISTS"),
        (5, "DUPLICATE"),
    ]
    assert (await coach.customers())["totalDocs"] == 4


async def test_columns_of_a_roster_by_answer(coach: CoachClient) -> None:
    """Headings of which none is known are read by the answers, and asked for if the file is said to have clients."""
    sheet = b"Wer,Wann\nAna,1990-04-03\nBo,\n"
    preview = await import_file(coach, sheet, dry_run=True, name="c.csv", format="customers")
    assert counts(preview) == (2, 2, 0, 0)
    [question] = preview["result"]["questions"]
    assert (question["code"], question["name"], question["options"]) == ("COLUMN", "name", ["Wer", "Wann"])
    refused = await import_file(coach, sheet, name="c.csv", format="customers")
    assert (refused["status"], refused["errors"][-1]["code"]) == ("failed", "QUESTIONS_OPEN")

    job = await import_file(coach, sheet, name="c.csv", columns='{"Wer": "name", "Wann": "birthday"}')

    assert counts(job) == (2, 2, 0, 2)
    assert (await clients_of(coach))["Ana"]["birthday"] == "1990-04-03"
    wrong = await send(coach, sheet, name="c.csv", columns='{"Wer": "name", "Wann": "name"}')
    assert wrong.refused(400)["errors"][0]["field"] == "columns"


async def test_the_undo_of_an_update_reports_the_clients_who_stay(coach: CoachClient) -> None:
    """Whether their fields were changed or a note was added; not those who were as in the file."""
    ana = await coach.create_customer("Ana", externalId="1", phone="1")
    bo = await coach.create_customer("Bo", externalId="2")
    await coach.create_customer("Cy", externalId="3", phone="3")
    sheet = b"name,externalId,phone,notes\nAna,1,2,\nBo,2,,Left knee\nCy,3,3,\nDi,4,,\n"
    undone = await undo(coach, await import_file(coach, sheet, name="c.csv", onConflict="update"))
    result = undone["result"]
    assert (result["ok"], result["removed"]["customers"]) == (1, 1)
    assert {(each["documentId"], each["code"]) for each in result["failed"]} == {
        (ana["_id"], "UPDATED"),
        (bo["_id"], "UPDATED"),
    }
