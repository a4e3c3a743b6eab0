"""The operator's commands while a service runs on the same embedded database: some as processes, most from this one."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

from coaching_service.installation.embedded import PORT_FILE
from tests.support.commands import CommandResult, type_in
from tests.support.service_process import Service, environment


async def admin(folder: Path, *words: str, typed: str = "", code: int = 0) -> list[dict[str, Any]]:
    """Run one command and return the objects that it prints; `code` is its exit code."""
    result = await run(folder, "admin", *words, "--json", typed=typed)
    assert result.exit_code == code, result.err
    return [json.loads(line) for line in result.out.splitlines()]


async def run(folder: Path, *words: str, typed: str = "") -> CommandResult:
    """Run one command on a folder."""
    return await asyncio.to_thread(type_in, *words, "--data", str(folder), typed=typed)


async def admin_process(folder: Path, *words: str, typed: str = "") -> list[dict[str, Any]]:
    """Run one command as a process of its own, and return the objects that it prints."""
    result = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "coaching_service", "admin", *words, "--json", "--data", str(folder)],
        env=environment(),
        input=typed,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


async def test_commands_work_while_the_service_runs_and_take_effect_at_once(service: Service, tmp_path: Path) -> None:
    await service.start()
    folder, email = service.folder, service.facts["email"]
    [company] = await admin_process(folder, "companies", "list")
    assert (company["owner"]["email"], company["state"], company["reason"]) == (email, "active", None)
    assert company["activeClients"] == len(await service.customers()) > 0

    await service.call("GET", "/coach/account")
    assert await admin(folder, "companies", "suspend", email, "not paid") == [
        {"id": company["id"], "state": "suspended"}
    ]
    refused = await service.call("GET", "/coach/account", status=403)
    assert refused["code"] == "COMPANY_SUSPENDED"
    [shown] = await admin(folder, "companies", "show", company["id"])
    assert (shown["state"], shown["reason"], shown["coaches"][0]["email"]) == ("suspended", "not paid", email)
    assert await admin(folder, "companies", "list", "--state", "active") == []
    exported = tmp_path / "export.zip"
    [export] = await admin(folder, "companies", "export", email, str(exported))
    assert zipfile.is_zipfile(exported) and export["bytes"] == exported.stat().st_size
    twice = await run(folder, "admin", "companies", "suspend", email, "again")
    assert twice.refused() == "The company is suspended already"
    await admin(folder, "companies", "resume", email)
    await service.call("GET", "/coach/account")

    [person] = await admin(folder, "people", "find", email)
    assert (person["role"], person["companyId"], person["companyState"]) == ("OWNER", company["id"], "active")
    [usage] = await admin(folder, "storage")
    assert (usage["id"], usage["bytes"]) == (company["id"], company["bytes"])
    text = (await run(folder, "admin", "storage")).ok()
    assert text.splitlines()[0].split() == ["ID", "FILES", "STORAGE", "USED", "NAME"]
    assert text.splitlines()[1].endswith(company["name"])

    wrong = await run(folder, "admin", "companies", "erase", email, typed="Another name\n")
    assert wrong.exit_code == 1 and "nothing was erased" in wrong.err
    await service.call("GET", "/coach/account")
    await admin_process(folder, "companies", "erase", email, typed=f"{company['name']}\n")
    await service.call("GET", "/coach/account", status=401)
    await admin(folder, "companies", "show", company["id"], code=1)

    actions = [each["action"] for each in await admin(folder, "actions", "--limit", "50")]
    assert actions[::-1] == [
        *("companies.listed", "company.suspended", "company.shown", "companies.listed", "company.exported"),
        *("company.resumed", "person.shown", "storage.listed", "storage.listed", "company.shown"),
        *("company.shown", "company.erased"),
    ]
    await service.end()
    assert not (folder / PORT_FILE).exists()
    assert await admin_process(folder, "companies", "list") == [], "without a service it starts the database itself"
