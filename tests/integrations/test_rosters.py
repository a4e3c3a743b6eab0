"""Import of the rosters of other services: notes, trainers, archived clients, and answers about them."""

from __future__ import annotations

import json
from typing import Any

from coaching_service.people import team
from tests.integrations.test_customer_csv import counts, import_csv
from tests.integrations.test_roster_files import GYM, TRAINERIZE, TRUECOACH
from tests.support.client import UNKNOWN, CoachClient
from tests.support.transfer import import_file, pick, send, undo


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
    answers = {"mara quill": clients["Mara"]["_id"], "ivo@example.com": clients["Ivo"]["_id"]}
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
    assert pick(preview["result"]["questions"], "code", "options") == [("DATE_ORDER", ["dmy", "mdy"])]
    refused = await import_file(coach, sheet, name="c.csv")
    assert (refused["status"], refused["errors"][-1]["code"]) == ("failed", "QUESTIONS_OPEN")
    assert (await coach.customers())["totalDocs"] == 0
    job = await import_file(coach, sheet, name="c.csv", dateOrder="dmy")
    assert counts(job) == (2, 2, 0, 2)
    assert (await clients_of(coach))["Ana"]["birthday"] == "1990-04-03"


async def test_trainers_by_address_or_name_and_columns_by_answer(coach: CoachClient) -> None:
    eli = await team.create(coach.ctx, "Eli Roth", "eli-r@example.com", [], "all", "no hash")
    sheet = (
        "Athlete,Coach Email,ID,Box,Mood\nAna Ruiz,eli-r@example.com,17,Blue|Red,x\nBo,eli roth,18,,\nCy,Nobody,,,\n"
    )
    job = await import_file(coach, sheet.encode(), name="c.csv", columns='{"Box": "groups", "Mood": ""}')
    assert counts(job) == (3, 3, 0, 3)
    assert pick(job["errors"], "entry", "field", "code") == [
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
    assert pick(job["errors"], "line", "code") == [(3, "SKIPPED")]
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
    assert pick(job["errors"], "line", "code") == [(2, "ALREADY_EXISTS"), (3, "ALREADY_EXISTS"), (5, "DUPLICATE")]
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


async def test_every_field_of_clients_is_an_answer_about_columns(coach: CoachClient) -> None:
    eli = await team.create(coach.ctx, "Eli Roth", "eli-f@example.com", [], "all", "no hash")
    client = {
        "name": "Ana",
        "surname": "Ruiz",
        "email": "ana@example.com",
        "phone": "5",
        "birthday": "1990-04-03",
        "timezone": "Asia/Tokyo",
    }
    cells = {**client, "groups": "Blue", "assignedTo": "Eli Roth"}
    columns = {f"K{number}": name for number, name in enumerate(cells)}
    sheet = f"{','.join(columns)}\n{','.join(cells.values())}\n".encode()
    job = await import_file(coach, sheet, name="c.csv", columns=json.dumps(columns))
    assert (counts(job), job["errors"]) == ((1, 1, 0, 1), [])
    ana = (await clients_of(coach))["Ana"]
    assert {name: ana[name] for name in client} == client
    assert (ana["customerRoleData"]["groups"], ana["customerRoleData"]["assignedTo"]) == (["Blue"], str(eli["_id"]))


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


async def test_names_next_to_their_parts_and_ruined_numbers(coach: CoachClient) -> None:
    """A name next to its parts is one client; a number that lost digits is reported; addresses of athletes are read."""
    parts = b"Name,First Name,Last Name,Email,Phone\nMara Quill,Mara,Quill,mara@example.com,3.46123E+11\n"
    job = await import_file(coach, parts, name="c.csv")
    assert counts(job) == (1, 1, 0, 1)
    assert pick(job["errors"], "line", "field", "code") == [(2, "phone", "VALUE_LEFT_OUT")]
    other = b"Nombre,First Name,Apellidos,Athlete Email,Status\nIvo Brandt,Ivo,Brandt,ivo@example.com,Active\n"
    job = await import_file(coach, other, name="c.csv")
    assert (counts(job), job["errors"]) == ((1, 1, 0, 1), [])

    clients = await clients_of(coach)

    assert {name: (each["surname"], each["email"], each["phone"]) for name, each in clients.items()} == {
        "Mara": ("Quill", "mara@example.com", None),
        "Ivo": ("Brandt", "ivo@example.com", None),
    }


async def test_a_row_of_totals_is_no_client_and_a_telephone_number_has_no_decimals(coach: CoachClient) -> None:
    sheet = "Client Name,Email,Phone\nMara Quill,mara@q.example,491701234567.0\nTotal,1,\nSubtotal:,,\n"
    job = await import_file(coach, sheet.encode(), name="c.csv")
    assert [job["result"][name] for name in ("rows", "imported", "reported")] == [3, 1, 2]
    assert [(each["line"], each["code"]) for each in job["errors"]] == [(3, "NOT_A_CLIENT"), (4, "NOT_A_CLIENT")]
    [client] = (await coach.get("/coach/customers", archived=False, pageSize=5, pageNum=1)).ok()["docs"]
    assert (client["name"], client["phone"]) == ("Mara", "491701234567")


async def test_repeated_headings_are_no_client(coach: CoachClient) -> None:
    sheet = "Name,Email,Phone\nMara Quill,mara@q.example,1\nPhone,Name,Email\n2,Ivo Brandt,ivo@q.example\n"
    job = await import_file(coach, sheet.encode(), name="c.csv")
    assert (job["result"]["rows"], job["result"]["imported"], job["errors"]) == (2, 2, [])
    clients = (await coach.get("/coach/customers", archived=False, pageSize=5, pageNum=1)).ok()["docs"]
    assert {(each["name"], each["phone"]) for each in clients} == {("Mara Quill", "1"), ("Ivo Brandt", "2")}
