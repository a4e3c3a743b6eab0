"""Export and import of the company in the web application."""

from __future__ import annotations

from urllib.parse import urlencode

from coaching_service.settings import Settings
from tests.support.client import CoachClient
from tests.support.fail_points import no_job_begins
from tests.support.transfer import ended_page, import_file, make_zip, read_zip, run
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import Colleague

PATH = "/app/settings/transfer"
SHEET = b"name,email,shoe size\nAna,ana@example.com,38\n,no address,40\n"


async def upload(visitor: Visitor, coach: CoachClient, name: str, content: bytes, dry_run: str | None) -> HtmlPage:
    """Send a file, and open the page of its job once that has ended."""
    return await ended_page(
        visitor, coach, await visitor.submit(await visitor.get(PATH), PATH, file=(name, content), dryRun=dry_run)
    )


async def test_a_spreadsheet_is_checked_and_then_imported(coach: CoachClient, owner_page: Visitor) -> None:
    page = await upload(owner_page, coach, "clients.csv", SHEET, "true")
    page.says("Check of clients.csv", "1 record would be left out.", "line 3", "email", "must be an e-mail address")
    page.says("shoe size", "Nothing has been imported.")
    assert "Undo" not in page.text, "there is nothing to undo"
    assert await coach.names() == []

    page = await upload(owner_page, coach, "clients.csv", SHEET, None)
    page.says("Import of clients.csv", "1 client", "1 record was left out.")
    page.says("1 client of this import is still here", "Delete the client")
    assert "took over" not in page.text
    assert await coach.names() == ["Ana"]
    changes = await coach.ctx.db["changes"].find({"companyId": coach.ctx.company_id}).to_list(None)
    assert {str(change["batchId"]) for change in changes} == {page.path.rpartition("/")[2]}, (
        "they share that of the job"
    )
    (await owner_page.get(PATH)).says("Latest imports", "clients.csv", "Finished", "2 of 2")


async def test_a_checked_list_of_clients_is_imported_from_its_page(coach: CoachClient, owner_page: Visitor) -> None:
    await coach.create_customer("Ana", externalId="crm-1")
    sheet = ("clients.csv", b"name,external id,surname,birthday\nAnna,crm-1,Flores,\nBo,crm-2,,03/04/1990\n")
    page = (await owner_page.get(PATH)).says("whose external ID you already have", "Leave them out", "Update them")
    page = await owner_page.submit(page, PATH, file=sheet, dryRun="true", onConflict="update")
    page = await ended_page(owner_page, coach, page)
    page.says("Check of clients.csv", "Day first", "Month first")
    assert await coach.names() == ["Ana"]

    page = await ended_page(owner_page, coach, await owner_page.submit(page, f"{page.path}/run", dateOrder="dmy"))
    page.says("Import of clients.csv", "Imported.", "2 clients")
    assert sorted(await coach.names()) == ["Anna", "Bo"]
    [anna, bo] = sorted((await coach.customers())["docs"], key=lambda each: each["name"])
    assert anna["surname"] == "Flores"
    assert (await coach.get(f"/coach/customers/{bo['_id']}")).ok()["birthday"] == "1990-04-03"


async def test_a_check_without_questions_is_imported_once(coach: CoachClient, owner_page: Visitor) -> None:
    checked = await upload(owner_page, coach, "clients.csv", b"name\nAna\n", "true")
    page = await ended_page(owner_page, coach, await owner_page.submit(checked, f"{checked.path}/run"))
    page.says("Imported.", "1 client")
    assert await coach.names() == ["Ana"]
    assert f"{checked.path}/run" not in [form.action for form in (await owner_page.get(checked.path)).forms]


async def test_the_owner_downloads_and_imports_everything(coach: CoachClient, owner_page: Visitor) -> None:
    await coach.create_customer("Ana")
    async with owner_page._http.get(f"{PATH}/company.zip") as response:
        assert response.content_type == "application/zip"
        content = await response.read()
    assert b'"Ana"' in read_zip(content)["records/customers.jsonl"]
    async with owner_page._http.get(f"{PATH}/workouts.csv") as response:
        assert (await response.text()).startswith("\ufeffclient_id,client_name,title")

    page = await upload(owner_page, coach, "company.zip", content, None)
    page.says("Imported.", "1 client")
    assert await coach.names() == ["Ana", "Ana"]


async def test_files_that_cannot_be_imported_are_explained(coach: CoachClient, owner_page: Visitor) -> None:
    page = await owner_page.submit(await owner_page.get(PATH), PATH, file=("a.png", b"\x89PNG\r\n\x1a\n" + bytes(99)))
    page.ok(400).says("must be an export of a company (ZIP), or a table (CSV or XLSX)")
    page = await upload(owner_page, coach, "other.zip", make_zip({"hello.txt": b"Hello"}), None)
    page.says("The file cannot be imported.", "export.json", "is missing")


async def test_import_is_cancelled(coach: CoachClient, owner_page: Visitor, settings: Settings) -> None:
    async with no_job_begins(coach, settings):
        page = await owner_page.submit(await owner_page.get(PATH), PATH, file=("clients.csv", SHEET), dryRun=None)
        page.says("You can leave this page", "Cancel the import")
        page = await owner_page.submit(page, f"{page.path}/cancel")
    page.says("The import was cancelled.")
    assert [words for words in ("Cancel the import", "Undo") if words in page.text] == []
    await run(coach)
    assert await coach.names() == []
    (await owner_page.get(PATH)).says("Cancelled", "0 of 0")


async def test_clients_of_an_import_are_deleted_from_its_page(coach: CoachClient, owner_page: Visitor) -> None:
    await coach.create_exercise("Sled push")
    for name in ("Ana", "Kim"):
        await coach.create_customer(name)
    before = {each["_id"] for each in (await coach.customers())["docs"]}
    content = (await coach.get("/coach/export")).raw

    imported = await upload(owner_page, coach, "company.zip", content, None)
    imported.says("Undo this import", "2 clients of this import are still here", "Delete the 2 clients")
    assert "/app/exercises" in imported.links
    (form,) = [form for form in imported.forms if form.action == "/app/customers/bulk"]
    confirmation = await owner_page.get(f"{form.action}?{urlencode(form.fields)}")
    confirmation.ok().says("Delete permanently", "2 clients", "Ana", "Kim")
    (await owner_page.submit(confirmation, form.action)).ok()

    assert {each["_id"] for each in (await coach.customers())["docs"]} == before
    page = (await owner_page.get(imported.path)).says("Undo this import", "Exercises")
    assert "still here" not in page.text


async def test_clients_that_an_import_has_updated_are_not_deleted(coach: CoachClient, owner_page: Visitor) -> None:
    await coach.create_customer("Ana", externalId="a-1")
    job = await import_file(coach, b"name,externalId\nAnna,a-1\nBo,b-2\n", name="clients.csv", onConflict="update")
    assert (job["status"], job["errors"]) == ("done", [])
    assert sorted(await coach.names()) == ["Anna", "Bo"]
    page = await owner_page.get(f"{PATH}/{job['_id']}")
    page.says("1 client of this import is still here", "Clients who were here before keep the values of the file.")
    (form,) = [form for form in page.forms if form.action == "/app/customers/bulk"]
    (chosen,) = [value for name, value in form.fields if name == "ids"]
    assert (await coach.get(f"/coach/customers/{chosen}")).ok()["name"] == "Bo"


async def test_a_problem_links_to_the_client_who_is_here_already(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana", externalId="a-1")
    job = await import_file(coach, b"name,externalId\nAnna,a-1\nBo,a b\n", name="clients.csv")
    page = (await owner_page.get(f"{PATH}/{job['_id']}")).says("is in use by another record", "Open the client")
    assert f"/app/customers/{ana['_id']}" in page.links


async def test_clients_links_to_the_import_for_the_owner(owner_page: Visitor, colleague: Colleague) -> None:
    assert PATH in (await owner_page.get("/app/customers")).links
    employee = await colleague("customers.view", "customers.create")
    assert PATH not in (await employee.get("/app/customers")).links


async def test_pages_of_jobs_show_only_their_own_kinds(coach: CoachClient, owner_page: Visitor) -> None:
    """Also a conversion of loads, and an undo: nothing but an import has a page under export and import."""
    ana = await coach.create_customer("Ana")
    body = {"ids": [ana["_id"]]}
    batch = await coach.send("POST", "/coach/customers/bulk/archive", json=body, headers={"Prefer": "respond-async"})
    imported = await import_file(coach, b"name\nBo\n", name="clients.csv")
    undone = (await coach.post(f"/coach/jobs/{imported['_id']}/undo")).ok(202)
    converted = (await coach.post("/coach/account/load-unit", {"loadUnit": "lb", "dryRun": True})).ok(202)
    for job_id in (batch.ok(202)["jobId"], undone["_id"], converted["_id"]):
        (await owner_page.get(f"{PATH}/{job_id}")).ok(404)
    (await owner_page.get(f"/app/import/{batch.json['jobId']}")).ok(404)
    (await coach.post(f"/coach/jobs/{batch.json['jobId']}/undo")).refused(404)
    for other in (imported, undone, converted):
        (await owner_page.get(f"/app/jobs/{other['_id']}")).ok(404)
    (await owner_page.get(f"/app/jobs/{batch.json['jobId']}")).says("Client archived")
