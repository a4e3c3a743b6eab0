"""A disk without space: one sentence that names the folder; files and backups are complete or refused."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from coaching_service.installation.backup.stores import BackupError
from coaching_service.settings import Settings
from tests.core.test_uploads import form, picture
from tests.lifecycle.test_backup import back_up
from tests.support.client import CoachClient
from tests.support.databases import new_database
from tests.support.logs import recorded_logs
from tests.support.pdf_files import make_object_bomb, make_pdf
from tests.support.service_process import command, environment, mongods_of

Start = Callable[..., "subprocess.CompletedProcess[str]"]
# What the service starts its database with, which raises the sentence that the service ends with.
DATABASE = """
import sys; from pathlib import Path; from coaching_service.installation import embedded
try:
    with embedded.running_mongod(Path(sys.argv[1])):
        print("it has started")
except embedded.DatabaseUnavailable as error:
    sys.exit(f"Error: {error}")
"""


def can_mount() -> bool:
    """Whether this machine lets a process mount a file system that only it sees."""
    return subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode == 0


@pytest.fixture
def start_on_disk(tmp_path: Path) -> Start:
    """Runs Python with arguments on a disk of a size such as `64k` (else with that limit of file sizes) until it ends."""
    disk = tmp_path / "disk"
    disk.mkdir()

    def start(size: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        limited = f'mount -t tmpfs -o size={size} tmpfs "$0" && exec "$@"'
        unshare = ["unshare", "-rm", "--propagation", "private", "--kill-child"]
        if not can_mount():
            limited, unshare = 'ulimit -f 2048; exec "$@"', []
        return subprocess.run(
            [*unshare, "bash", "-c", limited, str(disk), sys.executable, *arguments],
            env=environment(LOG_FORMAT="json", PYTHONDONTWRITEBYTECODE="1"),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return start


def sentence(disk: Path) -> str:
    """The error message about the disk or the limit."""
    if can_mount():
        return f"The disk of {disk}/data is full: free space on it, or choose another folder with --data."
    return f"The limit of file sizes (ulimit -f) is too small for the database in {disk}/data: raise it."


def test_full_disk_at_start_is_one_sentence(start_on_disk: Start, tmp_path: Path) -> None:
    ended = start_on_disk("64k", "-c", DATABASE, str(tmp_path / "disk" / "data"))
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"Error: {sentence(tmp_path / 'disk')}\n"


def test_disk_that_fills_up_while_the_service_runs_is_one_sentence(start_on_disk: Start, tmp_path: Path) -> None:
    """mongod ends at a write that does not fit; the service ends with it."""
    ended = start_on_disk("1m", *command(tmp_path / "disk" / "data")[1:])
    assert ended.returncode == 1, ended.stderr
    logged = [json.loads(line) for line in ended.stderr.splitlines() if line.startswith("{")]
    reasons = [line["reason"] for line in logged if line["event"] == "the embedded database has ended by itself"]
    messages = [line.removeprefix("Error: ") for line in ended.stderr.splitlines() if line.startswith("Error: ")]
    assert {*reasons, *messages} == {sentence(tmp_path / "disk")}
    assert "Traceback" not in ended.stderr
    assert mongods_of(tmp_path / "disk" / "data") == []


# --- files that this process writes ----------------------------------------------------------------------------------


@contextmanager
def limited_file_sizes(size: int) -> Iterator[None]:
    """Files of this process, and of those that it starts, take this many bytes, as on a disk that fills up."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_file_without_space_is_refused_and_never_cut_off(coach: CoachClient) -> None:
    """The disk takes all but the last byte of a plan; and of a picture and a PDF, not what is made of them."""
    path, images = f"/coach/customers/{(await coach.create_customer())['_id']}", coach.ctx.services.media_worker
    plan, small = make_pdf(size=150_000), picture("WEBP", (40, 40), quality=1)
    files, date = coach.ctx.db["fs.files"], {"createdAt": "2026-03-02", "imageSideIndex": "1"}
    images.close()  # the next one has the limit
    with recorded_logs() as logs:
        with limited_file_sizes(len(plan) - 1):
            refused = await coach.send("POST", f"{path}/nutrition-plans", data=form(plan, "file", "plan.pdf"))
        refused.refused(503, "There is no space for files")
        with limited_file_sizes(len(small)):
            refused = await coach.send("POST", f"{path}/progress-photos", data=form(small, **date))
        refused.refused(503, "There is no space for files")
        images.close()
        terse = make_object_bomb(100)
        with limited_file_sizes(len(terse) + 5):
            refused = await coach.send("POST", f"{path}/nutrition-plans", data=form(terse, "file", "plan.pdf"))
        refused.refused(503, "There is no space for files")
    images.close()
    assert [line["event"] for line in logs].count("no space for temporary files") == 3
    assert await files.count_documents({"companyId": coach.ctx.company_id}) == 0

    (await coach.send("POST", f"{path}/nutrition-plans", data=form(plan, "file", "plan.pdf"))).ok(201)
    assert await files.count_documents({"companyId": coach.ctx.company_id, "length": len(plan)}) == 1
    (await coach.send("POST", f"{path}/progress-photos", data=form(small, **date))).ok(201)


async def test_backup_without_space_leaves_nothing(settings: Settings, tmp_path: Path) -> None:
    async with new_database(settings, "large", has_indexes=False) as (_, services):
        await services.db["notes"].insert_one({"content": os.urandom(5_000)})
        with limited_file_sizes(1_000), pytest.raises(BackupError, match=f"no space for the backup in {tmp_path}"):
            await back_up(services, tmp_path / "backup")
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - as asynchronous functions may
