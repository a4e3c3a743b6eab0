"""A backup whose process is killed in the middle leaves nothing that can be read, and the next one cleans up."""

from __future__ import annotations

import asyncio
import gzip
import io
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from coaching_service.installation.backup.contents import new_identity
from tests.reliability.proofs.test_restore_drill import files_of, run
from tests.support.drill import require_whole_service
from tests.support.pdf_files import make_pdf
from tests.support.service_process import Service, environment, until

PLANS = 8
SECRET = "Zebulon-in-a-backup"


async def fill(service: Service) -> str:
    """A client with several MB of nutrition plans."""
    client = await service.create(SECRET)
    headers = {"X-API-Key": service.facts["apiKey"]}
    async with aiohttp.ClientSession(service.facts["baseUrl"], headers=headers) as http:
        for _ in range(PLANS):
            form = aiohttp.FormData()
            form.add_field(
                "file", io.BytesIO(make_pdf(size=4_000_000)), filename="plan.pdf", content_type="application/pdf"
            )
            async with http.post(f"/coach/customers/{client}/nutrition-plans", data=form) as response:
                assert response.status == 201, await response.text()
    return client


def opened_in(process: int, folder: Path) -> list[str]:
    """The files of a folder that a process has open, with or without a name."""
    found = []
    for each in Path(f"/proc/{process}/fd").glob("*"):
        try:
            found.append(str(each.readlink()))
        except OSError:  # closed since
            continue
    return [each for each in found if each.startswith(str(folder))]


def _started(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


async def kill_in_the_middle(service: Service, *arguments: str, folder: Path) -> None:
    """Start a backup, and kill it while it writes a file of this folder."""
    command = [sys.executable, "-m", "coaching_service", *arguments, "--data", str(service.folder)]
    with _started(command) as process:

        def is_writing() -> bool:
            assert process.poll() is None, "it has ended before"
            if not opened_in(process.pid, folder):
                return False
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)  # once all its threads have stopped
            if opened_in(process.pid, folder):
                return True
            process.send_signal(signal.SIGCONT)
            return False

        await until(is_writing, "it writes", pause=0.001)
        process.kill()
        assert await asyncio.to_thread(process.wait) == -signal.SIGKILL


def readable_in(folder: Path) -> list[Path]:
    """The files of a folder with the client's name, compressed or not."""
    found = []
    for file in (each for each in folder.rglob("*") if each.is_file()):
        raw = file.read_bytes()
        texts = [raw]
        if raw.startswith(b"\x1f\x8b"):
            with gzip.open(file) as content:
                texts.append(read_to_its_end(content))
        if any(SECRET.encode() in text for text in texts):
            found.append(file)
    return found


def read_to_its_end(content: gzip.GzipFile) -> bytes:
    """What a compressed file has, which may have been cut off."""
    read = bytearray()
    try:
        while piece := content.read(1_000):
            read += piece
    except EOFError:
        pass
    return bytes(read)


async def restore_and_serve(service: Service, other: Path, *source: str) -> None:
    """Restore a backup into another folder, and require that it is whole and has the client and all files."""
    hashes, customers = await files_of(service), await service.customers()
    os.mkdir(other, mode=0o700)  # noqa: PTH102 - as asynchronous functions may
    shutil.copy(service.folder / "secret.key", other)
    await run("restore", *source, data=other)
    await service.end()
    await service.clean_up()
    service.folder = other
    await service.start()
    assert await service.customers() == customers
    assert await files_of(service) == hashes
    await require_whole_service(service)


async def test_killed_backup_to_a_folder_leaves_nothing_and_the_next_one_is_restored(
    service: Service, tmp_path: Path
) -> None:
    await service.start()
    await fill(service)
    folder = tmp_path / "backups"
    await kill_in_the_middle(service, "backup", str(folder / "monday"), folder=folder)
    assert os.listdir(folder) == []  # noqa: PTH208 - as asynchronous functions may
    await until(lambda: _succeeds(service, "backup", str(folder / "monday")), "the next backup is made")
    assert os.listdir(folder) == ["monday"]  # noqa: PTH208
    assert readable_in(folder), "a backup to a folder is not encrypted: this test would find what is left of it"
    await restore_and_serve(service, tmp_path / "other", str(folder / "monday"))


async def test_killed_backup_to_a_store_is_encrypted_and_the_next_one_removes_what_is_left(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private, public = new_identity()
    identity, store = tmp_path / "backup.key", tmp_path / "store"
    identity.write_text(private)
    await service.start()
    await fill(service)
    monkeypatch.setenv("BACKUP_STORE", str(store))
    monkeypatch.setenv("BACKUP_RECIPIENTS", public)
    await kill_in_the_middle(service, "backup", folder=store)
    drafts = list(store.rglob(".*.partial"))
    assert drafts
    assert readable_in(store) == []
    assert list(store.glob("backups/*")) == []
    await until(lambda: _succeeds(service, "backup"), "the next backup is made")
    assert list(store.rglob(".*.partial")) == []
    assert readable_in(store) == []
    await restore_and_serve(service, tmp_path / "other", str(store), "--identity", str(identity))


async def _succeeds(service: Service, *arguments: str) -> bool:
    """Whether a backup is made: for some seconds the killed one still holds the lease."""
    _, error = await run(*arguments, data=service.folder, codes=(0, 1))
    assert not error or "Another backup of this database is being made" in error, error
    return not error
