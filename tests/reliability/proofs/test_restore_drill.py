"""The restore drill of docs/backup.md, with the commands that operators type, while the service writes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.drill import require_whole_service
from tests.support.service_process import Service, environment, until


async def run(*arguments: str, data: Path | None, codes: tuple[int, ...] = (0,)) -> tuple[str, str]:
    """Run a command on the embedded database of a folder, assert its exit code is among `codes`, and return its output and errors."""
    command = [sys.executable, "-m", "coaching_service", *arguments, *(("--data", str(data)) if data else ())]
    result = await asyncio.to_thread(
        subprocess.run, command, env=environment(), capture_output=True, text=True, timeout=240, check=False
    )
    assert result.returncode in codes, result.stdout + result.stderr
    return result.stdout, result.stderr


async def write_until(service: Service, is_done: asyncio.Event) -> list[str]:
    """Create clients until the event is set, and return their identifiers in order."""
    created: list[str] = []
    while not is_done.is_set():
        created.append(await service.create(f"Written {len(created)}"))
    return created


async def files_of(service: Service) -> dict[str, str]:
    """The SHA-256 of each photo and nutrition plan of the clients, by client, date and side."""
    hashes = {}
    async with aiohttp.ClientSession(service.facts["baseUrl"]) as http:
        for client in sorted(await service.customers()):
            query = "pageSize=50&pageNum=1"
            photos = await service.call("GET", f"/coach/customers/{client}/progress-photos?{query}")
            links = {
                f"{client} {each['createdAt']} {name}": url
                for each in photos["docs"]
                for name, url in each["photos"].items()
                if name.endswith("Url") and url
            }
            for name, url in links.items():
                async with http.get(url[url.index("/files/") :]) as response:
                    assert response.status == 200
                    hashes[name] = hashlib.sha256(await response.read()).hexdigest()
    return hashes


async def sign_in(service: Service) -> int:
    """The status of a sign-in with the password of the demo company."""
    body: Any = {"email": service.facts["email"], "password": service.facts["password"]}
    async with (
        aiohttp.ClientSession(service.facts["baseUrl"]) as http,
        http.post("/auth/login", json=body) as response,
    ):
        return response.status


async def test_backup_of_a_running_service_is_restored_into_another_folder(service: Service, tmp_path: Path) -> None:
    await service.start()
    folder, other = tmp_path / "backup", tmp_path / "restored"
    first, is_done = await service.create("Before the backup"), asyncio.Event()
    writing = asyncio.create_task(write_until(service, is_done))
    printed, _ = await run("backup", str(folder), data=service.folder)
    recorded = (await run("admin", "actions", "--json", data=service.folder))[0].splitlines()
    assert [json.loads(line)["action"] for line in recorded] == ["backup.created"]
    is_done.set()
    written = await writing
    last = await service.create("After the backup")
    assert written
    hashes = await files_of(service)
    assert hashes
    facts = service.facts
    await run("restore", str(folder), "--replace", data=service.folder, codes=(1,))
    await service.end()
    [manifest] = [json.loads(each.read_text()) for each in folder.glob("backups/*.json")]
    documents = {entry["name"]: entry["documents"] for entry in manifest["collections"]}
    assert f"{sum(documents.values())} documents" in printed
    assert "secret.key is missing" in (await run("restore", str(folder), data=other, codes=(1,)))[1]

    other.mkdir(mode=0o700)
    shutil.copy(service.folder / "secret.key", other)
    assert f"Restored {sum(documents.values())} documents" in (await run("restore", str(folder), data=other))[0]
    results = json.loads((await run("doctor", "--json", data=other, codes=(0, 1)))[0])
    # Nothing runs on the restored database, so changes of the last moment may have no number yet.
    # Notices: the embedded MongoDB 6.0, and the key of Web Push.
    known = {"change-log", "database-version", "push-key"}
    assert [each for each in results if each["status"] != "ok" and each["check"] not in known] == []

    await service.hang_up()
    service.folder = other
    await service.start()
    assert service.facts["companyId"] == facts["companyId"]
    assert service.facts["apiKey"] == facts["apiKey"], "the key is decrypted with the master key"
    assert await sign_in(service) == 200
    restored = await service.customers()
    assert first in restored
    assert last not in restored
    present = [client in restored for client in written]
    assert present == sorted(present, reverse=True), "all that was written until one moment"
    assert documents["customers"] >= len(restored)
    assert await files_of(service) == hashes
    await require_whole_service(service)


async def test_changes_are_numbered_after_a_restore_of_a_service_that_was_idle(
    service: Service, tmp_path: Path
) -> None:
    """Nothing that the service has stored about its place in a database is of use in another one."""
    await service.start()
    began = time.monotonic()
    await until(lambda: time.monotonic() > began + 5, "the service has been idle")
    other = tmp_path / "restored"
    await run("backup", str(tmp_path / "backup"), data=service.folder)
    other.mkdir(mode=0o700)
    shutil.copy(service.folder / "secret.key", other)
    await run("restore", str(tmp_path / "backup"), data=other)
    await service.end()
    await service.hang_up()
    service.folder = other
    await service.start()
    client = await service.create("After the restore")

    async def is_read() -> bool:
        page = await service.call("GET", f"/coach/events?types=customer.created&customerId={client}")
        return bool(page["docs"])

    await until(is_read, "the event is read", 15)
    await until(lambda: _has_numbered_all(service), "nothing is pending", 15)
    await require_whole_service(service)


async def _has_numbered_all(service: Service) -> bool:
    return "change_log_pending 0.0" in await service.call("GET", "/metrics")
