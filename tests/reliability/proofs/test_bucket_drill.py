"""The drill of docs/backup.md: machine A is lost, and machine B is restored from the bucket by the runbook."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from coaching_service.installation.backup.contents import new_identity
from coaching_service.installation.backup.stores import open_store
from tests.reliability.proofs.test_restore_drill import files_of, run, sign_in
from tests.support.drill import require_whole_service
from tests.support.s3_server import running_s3_server
from tests.support.service_process import Service, until

LOCATION = "s3://backups/coaching"
PASSWORD = "correct horse battery"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A bucket, and its variables in the environment of all programs that a test starts."""
    with running_s3_server() as variables:
        for name, value in {**variables, "BACKUP_STORE": LOCATION}.items():
            monkeypatch.setenv(name, value)
        yield


async def test_lost_machine_is_restored_from_the_bucket_without_erased_clients(
    service: Service, bucket: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The safe: the private key of the backups, and the master key. Nothing else outlives machine A.
    safe = tmp_path / "safe"
    safe.mkdir()
    private, public = new_identity()
    (safe / "backup.key").write_text(private)
    monkeypatch.setenv("BACKUP_RECIPIENTS", public)
    store = open_store(LOCATION)

    # Machine A serves, is backed up, and erases a client and a company afterwards.
    await service.start()
    shutil.copy(service.folder / "secret.key", safe)
    erased, remaining = await service.create("Erased"), await service.create("Remaining")
    company = (await run(*_new_company(), data=service.folder))[0].split()[1]
    first, _ = await run("backup", data=service.folder)
    second, _ = await run("backup", data=service.folder)
    await run("backup", str(tmp_path / "monday"), data=service.folder)
    assert f"{LOCATION}: backup 20" in first
    copied = [int(text.split(" parts of ")[1].split()[0]) for text in (first, second)]
    assert copied[1] < copied[0] / 2, "what the first backup has stored is not copied again"
    await service.call("DELETE", f"/coach/customers/{erased}", status=204)
    await run("admin", "companies", "erase", company, "--yes", data=service.folder)
    await until(lambda: len(list(store.iterate("erasures"))) == 2, "both erasures are in the bucket")
    hashes, facts = await files_of(service), service.facts
    await service.end(signal.SIGKILL)
    await service.clean_up()
    shutil.rmtree(service.folder)

    # Machine B: the steps of the runbook.
    started = time.monotonic()
    other = tmp_path / "machine-b"
    other.mkdir(mode=0o700)
    shutil.copy(safe / "secret.key", other)
    listed, _ = await run("backups", data=None)
    assert len(listed.splitlines()) == 1, "the newest one of each day remains"
    printed, _ = await run("restore", LOCATION, "--identity", str(safe / "backup.key"), data=other)
    assert "Erased again: 1 clients, 1 companies" in printed
    restored = time.monotonic()
    await run("doctor", data=other, codes=(0, 1))
    service.folder = other
    await service.start()
    served = time.monotonic()
    print(f"restore {restored - started:.1f} s, until it serves {served - started:.1f} s, copied {copied} bytes")

    assert served - started < 15 * 60
    assert (service.facts["companyId"], service.facts["apiKey"]) == (facts["companyId"], facts["apiKey"])
    assert await sign_in(service) == 200
    customers = await service.customers()
    assert remaining in customers
    assert erased not in customers
    await service.call("GET", f"/coach/customers/{erased}", status=404)
    assert await files_of(service) == hashes
    assert company not in (await run("admin", "companies", "list", data=other))[0]
    await require_whole_service(service)

    # The same list is applied to a folder of its own, which has none.
    await service.end()
    again, _ = await run("restore", str(tmp_path / "monday"), "--replace", "--erasures", LOCATION, data=other)
    assert "Erased again: 1 clients, 1 companies" in again


def _new_company() -> tuple[str, ...]:
    return ("create-company", "Gone", "--name", "Greta", "--email", "greta@example.com", "--password", PASSWORD)
