"""Export and import of the company in the web application."""

from __future__ import annotations

from tests.support.client import CoachClient
from tests.support.transfer import make_zip, read_zip, run
from tests.support.visitor import HtmlPage, Visitor

PATH = "/app/settings/transfer"
SHEET = b"name,email,shoe size\nAna,ana@example.com,38\nBo,no address,40\n"


async def upload(visitor: Visitor, coach: CoachClient, name: str, content: bytes, dry_run: str | None) -> HtmlPage:
    """Send a file, and open the page of its job once that has ended."""
    page = await visitor.submit(await visitor.get(PATH), PATH, file=(name, content), dryRun=dry_run)
    while 'http-equiv="refresh"' in page.ok().html:
        await run(coach)
        page = await visitor.get(page.path)
    return page


async def test_a_spreadsheet_is_checked_and_then_imported(coach: CoachClient, owner_page: Visitor) -> None:
    page = await upload(owner_page, coach, "clients.csv", SHEET, "true")
    page.says("Check of clients.csv", "1 record would be left out.", "line 3", "email", "must be an e-mail address")
    page.says("shoe size", "Nothing has been imported.")
    assert await coach.names() == []

    page = await upload(owner_page, coach, "clients.csv", SHEET, None)
    page.says("Import of clients.csv", "1 client", "1 record was left out.")
    assert await coach.names() == ["Ana"]
    (await owner_page.get(PATH)).says("Latest imports", "clients.csv", "Finished", "2 of 2")


async def test_the_owner_downloads_and_imports_everything(coach: CoachClient, owner_page: Visitor) -> None:
    await coach.create_customer("Ana")
    async with owner_page._http.get(f"{PATH}/company.zip") as response:
        assert response.content_type == "application/zip"
        content = await response.read()
    assert b'"Ana"' in read_zip(content)["records/customers.jsonl"]
    async with owner_page._http.get(f"{PATH}/workouts.csv") as response:
        assert (await response.text()).startswith("client_id,client_name,title")

    page = await upload(owner_page, coach, "company.zip", content, None)
    page.says("Imported.", "1 client")
    assert await coach.names() == ["Ana", "Ana"]


async def test_files_that_cannot_be_imported_are_explained(coach: CoachClient, owner_page: Visitor) -> None:
    page = await owner_page.submit(await owner_page.get(PATH), PATH, file=("a.png", b"\x89PNG\r\n\x1a\n" + bytes(99)))
    page.ok(400).says("must be an export of a company (ZIP), or a CSV file")
    page = await upload(owner_page, coach, "other.zip", make_zip({"hello.txt": b"Hello"}), None)
    page.says("The file cannot be imported.", "export.json", "is missing")
