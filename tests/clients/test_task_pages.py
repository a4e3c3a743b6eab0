"""The programs of docs/tasks, as a reader would copy them, against the running service.

Collected with `--clients`. Some pages need no client library: tests/people/test_applications.py, tests/people/webhooks/test_webhook_guide.py,
tests/lifecycle/test_schedules_guide.py.
"""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import zipfile
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer

from tests.clients.programs import ROOT, python_environment
from tests.support.client import MONDAY, CoachClient
from tests.support.training import block_with, log, metric_set, task

PAGES = ROOT / "docs" / "tasks"
TESTED_ELSEWHERE = {
    "sign-in-with-your-organization",  # tests/web/test_open_id.py
    *("react-to-a-finished-workout", "react-to-a-client-who-needs-you", "change-many-schedules"),
    *("update-clients-of-a-program", "build-an-application"),
}


class Page:
    """A page whose files are in a folder, and whose programs run with the Python library."""

    def __init__(self, name: str, folder: Path, library: Path, **settings: str) -> None:
        self.folder, self.ran = folder, set[str]()
        self._settings = {**os.environ, "PYTHONPATH": str(library), **settings}
        text = (PAGES / f"{name}.md").read_text("utf-8")
        for file, block in re.findall(r"^`([\w.]+)`\n\n```\w+\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            (folder / file).write_text(block, "utf-8")
        blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        self.commands = [line.removeprefix("python ") for block in blocks for line in block.splitlines()]

    async def run(self, *command: str, code: int = 0) -> str:
        """Run a program of the page and return what it printed."""
        self.ran.add(" ".join(command))
        process = await asyncio.create_subprocess_exec(
            await python_environment(),
            *command,
            cwd=self.folder,
            env=self._settings,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        printed, _ = await process.communicate()
        assert process.returncode == code, printed.decode()
        return printed.decode()


def address(server: TestServer) -> str:
    return str(server.make_url("")).rstrip("/")


def test_every_page_is_tested() -> None:
    tested = set(re.findall(r'Page\(\s*"([a-z-]+)"', Path(__file__).read_text("utf-8")))
    assert tested | TESTED_ELSEWHERE == {path.stem for path in PAGES.glob("*.md")}


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("enter-absences", "schedule/resume"),
        ("react-to-a-finished-workout", "/test"),
        ("react-to-a-client-who-needs-you", "/test"),
    ],
)
async def test_requests_of_a_page_are_answered(
    public_server: TestServer, coach: CoachClient, name: str, code: str
) -> None:
    """All commands of the page in one shell, with the variables that it names."""
    ana = await coach.create_customer("Ana")
    today = coach.ctx.caller.today().isoformat()
    away = (
        {"kind": "away", "from": "2026-08-03", "until": None}
        if today > "2026-08-17"
        else {"kind": "away", "from": today}
    )
    (await coach.post(f"/coach/customers/{ana['_id']}/availability", away)).ok(201)
    hook = (await coach.post("/coach/webhooks", {"url": "https://crm.example.com/other"})).ok(201)
    text = (PAGES / f"{name}.md").read_text("utf-8")
    commands = "".join(re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    assert code in commands
    settings = {"BASE": address(public_server), "KEY": str(coach.key), "CUSTOMER": ana["_id"], "WEBHOOK": hook["_id"]}
    shell = await asyncio.create_subprocess_exec(
        *("bash", "-euo", "pipefail", "-c", commands),
        env={**os.environ, **settings},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await shell.communicate()
    assert shell.returncode == 0, printed.decode()


async def test_spreadsheet_is_imported(
    libraries: Path, public_server: TestServer, coach: CoachClient, tmp_path: Path
) -> None:
    settings = {"BASE": address(public_server), "KEY": str(coach.key)}
    page = Page("import-from-a-spreadsheet", tmp_path, libraries / "python", **settings)
    problems = await page.run("import_clients.py", "clients.csv", code=1)
    assert "line 3 birthday: is not a day of the calendar" in problems
    assert "line 4 name: " in problems
    assert problems.endswith("Nothing was imported.\n")
    assert await coach.names() == []
    printed = await page.run("import_clients.py", "clients.csv", "--skip-problems")
    assert printed.endswith("3 clients imported, 1 left out.\n")
    assert await coach.names() == ["Ana", "Bo", "Dee"]


async def test_backup_is_verified_and_the_oldest_is_removed(
    libraries: Path, public_server: TestServer, coach: CoachClient, tmp_path: Path
) -> None:
    await coach.create_customer("Ana")
    backups = tmp_path / "backups"
    settings = {"BASE": address(public_server), "KEY": str(coach.key), "FOLDER": str(backups)}
    page = Page("nightly-backup", tmp_path, libraries / "python", **settings)
    backups.mkdir()
    for day in range(1, 15):
        (backups / f"company-2026-01-{day:02}-023000.zip").touch()
    printed = await page.run("backup.py")
    names = sorted(path.name for path in backups.iterdir())
    assert len(names) == 14
    assert names[0] == "company-2026-01-02-023000.zip"
    assert printed.startswith(f"{names[-1]}: ")
    with zipfile.ZipFile(backups / names[-1]) as archive:
        assert b'"Ana"' in archive.read("records/customers.jsonl")
    with pytest.raises(AssertionError, match="401"):
        await Page("nightly-backup", tmp_path, libraries / "python", **settings | {"KEY": "wrong"}).run("backup.py")


async def test_crm_is_synchronised(
    libraries: Path, public_server: TestServer, coach: CoachClient, tmp_path: Path
) -> None:
    crm = tmp_path / "crm.db"
    with sqlite3.connect(crm) as database:
        database.execute("CREATE TABLE contacts (id INTEGER PRIMARY KEY, name TEXT, email TEXT, plan TEXT)")
        database.execute("CREATE TABLE notes (event TEXT PRIMARY KEY, contact INTEGER, text TEXT)")
        database.execute("CREATE TABLE sync (id INTEGER PRIMARY KEY, cursor TEXT)")
        rows = [(17, "Ana", "ana@example.com", "gold"), (18, "Bo", "no address", "gold"), (19, "Cy", None, "silver")]
        database.executemany("INSERT INTO contacts VALUES (?, ?, ?, ?)", rows)
    settings = {"BASE": address(public_server), "KEY": str(coach.key), "CRM": str(crm)}
    page = Page("sync-a-crm", tmp_path, libraries / "python", **settings)
    printed = await page.run("sync.py")
    assert printed.startswith("contact 18 was not accepted: email ")
    [ana, cy] = (await coach.customers())["docs"]
    assert [(each["externalId"], each["metadata"]["plan"]) for each in (ana, cy)] == [
        ("crm:17", "gold"),
        ("crm:19", "silver"),
    ]
    stranger = await coach.create_customer("Dee")
    for customer in (ana, stranger):
        block = await block_with(coach, customer, task("Walk"), name="Legs", date=MONDAY)
        (await log(coach, block, block["items"][0])).ok()
    with sqlite3.connect(crm) as database:
        database.execute("UPDATE contacts SET plan = 'platinum' WHERE id = 17")
    for _ in range(2):
        await page.run("sync.py")
    assert [each["metadata"]["plan"] for each in (await coach.customers())["docs"][:1]] == ["platinum"]
    with sqlite3.connect(crm) as database:
        notes = database.execute("SELECT contact, text FROM notes").fetchall()
    assert [contact for contact, _ in notes] == [17]
    assert notes[0][1].startswith("workout.completed on ")


async def test_history_is_imported(
    libraries: Path, public_server: TestServer, coach: CoachClient, tmp_path: Path
) -> None:
    ana = await coach.create_customer("Ana")
    settings = {"BASE": address(public_server), "KEY": str(coach.key), "CLIENT": ana["_id"]}
    page = Page("bring-your-history", tmp_path, libraries / "python", **settings)
    printed = await page.run("import_history.py", "history.csv", code=1)
    assert "line 5 date: " in printed
    assert "new exercise: Flurb Raise" in printed
    assert printed.endswith("In which unit are the loads of this file? kg, lb\n")
    printed = await page.run("import_history.py", "history.csv", "kg")
    assert printed.endswith("2 workouts with 3 sets, 0 measurements imported.\n")
    for name, unit in (("Weight", "kg"), ("Waist", "cm"), ("Sleep quality", "score")):
        await metric_set(coach, name, short=unit)
    printed = await page.run("import_history.py", "measurements.csv")
    assert "line 4 Weight (lb): has another value of this day" in printed
    assert printed.endswith("0 workouts with 0 sets, 6 measurements imported.\n")
    assert page.ran == {*page.commands}


async def test_absences_are_entered_once(
    libraries: Path, public_server: TestServer, coach: CoachClient, tmp_path: Path
) -> None:
    ana = await coach.create_customer("Ana", email="ana@example.com")
    settings = {"BASE": address(public_server), "KEY": str(coach.key)}
    page = Page("enter-absences", tmp_path, libraries / "python", **settings)
    printed = await page.run("enter_absences.py", "absences.csv")
    assert printed.splitlines() == [
        "ana@example.com away from 2026-08-03: entered",
        "bo@example.com injured from 2026-08-05: no such client",
    ]
    [period] = (await coach.get(f"/coach/customers/{ana['_id']}/availability")).ok()
    assert (period["kind"], period["from"], period["until"]) == ("away", "2026-08-03", "2026-08-14")
    printed = await page.run("enter_absences.py", "absences.csv")
    assert printed.startswith("ana@example.com away from 2026-08-03: is there already\n")
