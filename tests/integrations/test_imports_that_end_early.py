"""Imports that are cancelled, and imports with what cannot be read: they end, and others can begin."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from coaching_service import features
from coaching_service.core import media
from coaching_service.core.auth import ALL_PERMISSIONS
from coaching_service.core.errors import Unavailable
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import worker
from coaching_service.integrations.company_import import service as company_import
from coaching_service.integrations.company_import._archive_import import ArchiveImport
from coaching_service.integrations.company_import._customer_import import CustomerImport
from coaching_service.settings import Settings
from tests.conftest import NewCompany
from tests.core.test_phone_pictures import PHONE_PICTURES
from tests.core.test_uploads import add, picture, stored
from tests.support.client import UNKNOWN, CoachClient
from tests.support.fail_points import no_job_begins
from tests.support.service_process import until
from tests.support.training import Json, employee_key
from tests.support.transfer import Entries, export, import_file, make_zip, run, send

STEPS = {company_import.IMPORT: features.STEPS[company_import.IMPORT]}
DUE = {"$set": {"runAfter": datetime(2020, 1, 1)}}  # noqa: DTZ001 - stored times are UTC without a time zone


async def read(coach: CoachClient, job: Json) -> Json:
    """A job as it is now."""
    result: Json = (await coach.get(f"/coach/jobs/{job['_id']}")).ok()
    return result


async def has_ended(coach: CoachClient, job: Json) -> bool:
    """Whether no job of the queue continues an import."""
    queued = {"kind": company_import.IMPORT, "arguments.jobId": ObjectId(job["_id"])}
    return await coach.ctx.db["jobs"].count_documents(queued) == 0


async def run_now(coach: CoachClient, job: Json) -> Json:
    """Run one step of an import, also if it waits for another attempt."""
    await coach.ctx.db["jobs"].update_many({"kind": company_import.IMPORT}, DUE)
    await worker.run_due(coach.ctx.services, STEPS, limit=1)
    return await read(coach, job)


# --- cancelling ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dry_run", [False, True])
async def test_cancelled_import_ends_with_what_it_has_stored(
    coach: CoachClient, new_company: NewCompany, monkeypatch: pytest.MonkeyPatch, *, dry_run: bool
) -> None:
    for number in range(3):
        await coach.schedule(await coach.create_customer(f"Client {number}"))
    content = make_zip(await export(coach))
    monkeypatch.setattr(company_import, "_STEP_SECONDS", -1)
    target = await new_company()
    job = (await send(target, content, dry_run=dry_run)).ok(202)
    while not job["done"]:
        job = await run_now(target, job)
    assert job["status"] == "running"
    assert not await has_ended(target, job)

    cancelled = (await target.post(f"/coach/jobs/{job['_id']}/cancel")).ok()

    imported = cancelled["result"]["imported"]  # more than the clients, if the service ran another step meanwhile
    assert (cancelled["status"], cancelled["errors"], imported["customers"]) == ("cancelled", [], 3)
    # All, if the service has imported the last record meanwhile and was not yet at the end.
    assert cancelled["done"] == sum(imported.values()) <= cancelled["total"]
    assert cancelled["result"] == {"dryRun": dry_run, "imported": imported, "failed": 0}
    assert (await target.customers())["totalDocs"] == (0 if dry_run else 3)
    assert await stored(target) == (0, 0), "the uploaded archive is deleted"
    assert await run_now(target, job) == cancelled, "no further step"
    await until(lambda: has_ended(target, job), "no job is left, even if the service was running it too")
    assert (await target.post(f"/coach/jobs/{job['_id']}/cancel")).ok() == cancelled
    assert (await import_file(target, content, dry_run=True))["status"] == "done", "another import can begin"


async def test_import_that_waits_is_cancelled_before_it_begins(coach: CoachClient, settings: Settings) -> None:
    key = {"Idempotency-Key": "cancel-once"}
    async with no_job_begins(coach, settings):
        job = (await send(coach, b"name\nAna\n", name="clients.csv")).ok(202)
        (await send(coach, b"name\nAna\n", name="clients.csv")).refused(409, "not finished")
        first, second = [await coach.send("POST", f"/coach/jobs/{job['_id']}/cancel", headers=key) for _ in range(2)]
    assert first.ok() == second.ok()
    audit = coach.ctx.db["audit"]
    assert await audit.count_documents({"companyId": coach.ctx.company_id, "action": "job.cancelled"}) == 1
    assert second.headers["Idempotent-Replayed"] == "true"
    assert (await import_file(coach, b"name\nEva\n", name="clients.csv"))["status"] == "done"
    await run(coach)
    assert await coach.names() == ["Eva"]


async def test_step_that_runs_while_its_job_is_cancelled_stores_nothing_more(
    coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = CustomerImport.run_batch

    async def cancel_first(self: Any) -> bool:
        (await coach.post(f"/coach/jobs/{job['_id']}/cancel")).ok()
        return await original(self)

    monkeypatch.setattr(CustomerImport, "run_batch", cancel_first)
    job = (await send(coach, b"name\nAna\n", name="clients.csv")).ok(202)

    async def has_ended() -> bool:  # the service runs jobs, too
        return (await run_now(coach, job))["status"] not in ("queued", "running")

    await until(has_ended, "the job ends")
    ended = await read(coach, job)
    assert (ended["status"], ended["done"], ended["result"]["imported"]) == ("cancelled", 0, 0)
    assert await coach.names() == []


async def test_only_the_owner_cancels_jobs_and_those_that_have_ended_stay(
    coach: CoachClient, other_company: CoachClient
) -> None:
    job = await import_file(coach, b"name\nAna\n", name="clients.csv")
    path = f"/coach/jobs/{job['_id']}/cancel"
    assert (await coach.post(path)).ok() == await read(coach, job) == job, "it stays done"
    (await other_company.post(path)).refused(404)
    (await coach.post(f"/coach/jobs/{UNKNOWN}/cancel")).refused(404)
    employee = coach.with_key(await employee_key(coach, *sorted(ALL_PERMISSIONS), scope="all"))
    (await employee.post(path)).refused(403)


# --- what cannot be read -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
async def entries(new_company: NewCompany) -> Entries:
    """The export of a client with a photo."""
    coach = await new_company()
    ana = f"/coach/customers/{(await coach.create_customer())['_id']}"
    (await add(coach, ana, picture())).ok(201)
    return await export(coach)


def with_photo(entries: Entries, content: bytes) -> bytes:
    """The export with another picture."""
    (name,) = [name for name in entries if name.startswith("files/")]
    return make_zip({**entries, name: content})


@pytest.mark.parametrize("case", ["two pictures of one size", "HEIC"])
async def test_pictures_of_phones_are_imported(new_company: NewCompany, entries: Entries, case: str) -> None:
    target = await new_company()
    for dry_run in (True, False):
        job = await import_file(target, with_photo(entries, PHONE_PICTURES[case]), dry_run=dry_run)
        assert (job["status"], job["errors"]) == ("done", [])
        assert job["result"]["imported"]["progressPhotos"] == 1
        assert await stored(target) == ((0, 0) if dry_run else (2, 0))


async def test_picture_that_the_decoder_fails_on_is_a_problem(
    new_company: NewCompany, entries: Entries, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    target = await new_company()
    (program := tmp_path / "worker.py").write_text("raise SystemExit(1)")
    monkeypatch.setattr(media, "_WORKER", program)
    target.ctx.services.media_worker.close()  # the next picture starts it
    for dry_run in (True, False):
        job = await import_file(target, with_photo(entries, picture()), dry_run=dry_run)
        (problem,) = job["errors"]
        where = ("done", "records/progressPhotos.jsonl:1", "fileId")
        assert (job["status"], problem["entry"], problem["field"]) == where
        assert "could not be decoded" in problem["message"]
        assert await stored(target) == (0, 0)


async def test_import_that_fails_again_ends(
    new_company: NewCompany, entries: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = await new_company()

    attempts = []

    async def fail(_: ArchiveImport) -> bool:
        attempts.append(1)
        raise KeyError("MPO")

    monkeypatch.setattr(ArchiveImport, "run_batch", fail)
    job = (await send(target, make_zip(entries))).ok(202)
    while job["status"] in ("queued", "running"):
        job = await run_now(target, job)
    assert job["status"] == "failed"
    assert len(attempts) in (3, 4), "the service, which runs jobs too, may be in the middle of one"
    assert "the service failed" in job["errors"][0]["message"]
    monkeypatch.undo()
    assert (await import_file(target, make_zip(entries)))["status"] == "done"


async def test_import_waits_longer_for_a_lost_database(
    new_company: NewCompany, entries: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = await new_company()

    async def fail(_: ArchiveImport) -> bool:
        raise Unavailable("The database cannot be reached")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ArchiveImport, "run_batch", fail)
        job = (await send(target, make_zip(entries))).ok(202)
        for _ in range(6):
            job = await run_now(target, job)
    assert job["status"] == "running"
    await run_now(target, job)
    assert (await read(target, job))["status"] == "done"
