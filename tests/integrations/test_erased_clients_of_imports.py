"""Clients who are erased while an import for them and others runs, afterwards, and before its undo."""

from __future__ import annotations

import io
from functools import partial
from typing import Any

import pytest

from coaching_service.core.database import files
from coaching_service.core.database.context import Context, in_transaction
from coaching_service.core.errors import Conflict, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import worker
from coaching_service.core.jobs.queue import Job
from coaching_service.core.media import CSV
from coaching_service.integrations.company_import import service as company_import
from coaching_service.integrations.history_import import importing, undoing
from coaching_service.integrations.history_import.importing import HistoryImport
from coaching_service.integrations.history_import.models import NO_ANSWERS, ImportAnswers
from coaching_service.lifecycle import erasure
from coaching_service.people import api_keys
from coaching_service.people.jobs import StoredJob
from coaching_service.settings import Settings
from tests.core.test_uploads import stored
from tests.integrations.test_own_import import TABLE
from tests.integrations.test_own_import import send as send_own
from tests.support.client import CoachClient
from tests.support.fail_points import no_job_begins
from tests.support.imported_history import workouts
from tests.support.jobs import ended_job
from tests.support.service_process import until
from tests.support.transfer import import_file, pick, run, send, undo

ROWS = b"""Client,Date,Exercise,Reps
Ana,2025-01-06,Push-Up,10
Bo,2025-01-06,Push-Up,10
Bo,2025-01-07,Push-Up,10
Ana,2025-01-08,Push-Up,10
"""


async def erase(coach: CoachClient, client: dict[str, Any]) -> None:
    """Delete a client, and erase the data."""
    (await coach.delete(f"/coach/customers/{client['_id']}")).ok(204)
    arguments = {"companyId": coach.ctx.company_id, "customerId": ObjectId(client["_id"])}
    while (step := await erasure.erase_customer(coach.ctx.services, Job(ObjectId(), arguments, 1))) and not step.after:
        pass


async def mentions(coach: CoachClient, text: str) -> bool:
    """Whether a job of the company has a text anywhere."""
    jobs = await coach.ctx.db["companyJobs"].find({"companyId": coach.ctx.company_id}).to_list(None)
    return any(text in str(job) for job in jobs)


@pytest.fixture
async def ana(coach: CoachClient) -> dict[str, Any]:
    """A client of the file."""
    return await coach.create_customer("Ana")


@pytest.fixture
async def bo(coach: CoachClient) -> dict[str, Any]:
    """Another client of the file."""
    return await coach.create_customer("Bo")


@pytest.mark.parametrize("moment", ["before a batch", "after a batch", "between steps"])
async def test_rows_of_an_erased_client_are_reported(
    coach: CoachClient, ana: dict[str, Any], bo: dict[str, Any], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    original, positions = HistoryImport.run_batch, list[tuple[int, int]]()

    async def run_batch(self: HistoryImport) -> bool:
        if self._progress.ctx.company_id != coach.ctx.company_id:  # a job of an earlier test
            return await original(self)
        work = self._progress.work
        positions.append((work["entry"], work["record"]))
        if moment == "before a batch" and positions[-1] == (1, 0):
            await erase(coach, bo)
        has_more = await original(self)
        if moment == "after a batch" and positions[-1] == (1, 0):
            await erase(coach, bo)
        if moment == "between steps" and positions[-1] == (0, 0):
            await erase(coach, bo)
        return has_more

    monkeypatch.setattr(HistoryImport, "run_batch", run_batch)
    monkeypatch.setattr(importing, "_BATCH_SESSIONS", 1)
    if moment == "between steps":
        monkeypatch.setattr(company_import, "_STEP_SECONDS", -1)
        monkeypatch.setattr(company_import, "_KEPT_SECONDS", 0)  # the next step is of another process
    job = await ended_job(coach, (await send(coach, ROWS, name="sets.csv")).ok(202)["_id"], partial(run, coach))

    gone = [4] if moment == "after a batch" else [3, 4]
    assert (job["status"], pick(job["errors"], "line", "code")) == (
        "done",
        [(line, "CLIENT_GONE") for line in gone],
    )
    assert (job["result"]["imported"], job["result"]["reported"]) == (4 - len(gone), len(gone))
    assert len(await workouts(coach, ana)) == 2
    assert not await mentions(coach, bo["_id"])
    assert not await mentions(coach, "'Bo'")
    assert await stored(coach) == (0, 0)
    undone = await undo(coach, job)
    assert (undone["status"], undone["result"]["removed"]["sessions"]) == ("done", 2)


async def test_the_undo_of_the_others_remains(coach: CoachClient, ana: dict[str, Any], bo: dict[str, Any]) -> None:
    job = await import_file(coach, ROWS, name="sets.csv", customers=f'{{"Bo": "{bo["_id"]}"}}')
    await erase(coach, bo)
    assert not await mentions(coach, bo["_id"])
    assert not await mentions(coach, "'Bo'")
    (await coach.post(f"/coach/customers/{ana['_id']}/notes", {"content": "Met today"})).ok(201)
    assert (await undo(coach, job))["result"]["removed"] == {"customers": 0, "sessions": 2, "exercises": 0}
    assert await workouts(coach, ana) == []


async def test_a_client_with_data_stays_although_another_is_erased_before_the_undo(coach: CoachClient) -> None:
    job = await import_file(coach, ROWS, name="sets.csv", customers='{"Ana": "create", "Bo": "create"}')
    clients = {each["name"]: each for each in (await coach.customers())["docs"]}
    (await coach.post(f"/coach/customers/{clients['Ana']['_id']}/notes", {"content": "Met today"})).ok(201)
    await erase(coach, clients["Bo"])
    undone = await undo(coach, job)
    assert undone["result"]["removed"]["customers"] == 0
    assert [each["code"] for each in undone["result"]["failed"]] == ["IN_USE"]
    assert await coach.names() == ["Ana"]


async def test_a_queued_undo_ends_without_its_import(
    coach: CoachClient, ana: dict[str, Any], settings: Settings
) -> None:
    sheet = b"Client,Date,Exercise,Reps\nAna,2025-01-06,Zorking,10\n"
    job = await import_file(coach, sheet, name="sets.csv")
    async with no_job_begins(coach, settings):
        queued = (await coach.post(f"/coach/jobs/{job['_id']}/undo")).ok(202)
        await erase(coach, ana)
    (await coach.get(f"/coach/jobs/{job['_id']}")).refused(404)

    async def undone() -> dict[str, Any] | None:
        await worker.run_due(coach.ctx.services, {undoing.UNDO: undoing.run_step})
        current = (await coach.get(f"/coach/jobs/{queued['_id']}")).ok()
        return dict(current) if current["status"] == "done" else None

    result = await until(undone, "the undo ends")
    assert result and result["result"]["removed"] == {"customers": 0, "sessions": 0, "exercises": 1}


@pytest.mark.parametrize("dry_run", [False, True])
async def test_an_import_that_asks_about_an_erased_client_is_deleted(coach: CoachClient, *, dry_run: bool) -> None:
    bo = await coach.create_customer("Bo", surname="Lind")
    sheet = b"Client,Date,Exercise,Reps\nBo Linde,2025-01-06,Push-Up,10\n"
    job = await import_file(coach, sheet, name="sets.csv", dry_run=dry_run)
    assert bo["_id"] in job["result"]["questions"][0]["options"]
    await erase(coach, bo)
    (await coach.get(f"/coach/jobs/{job['_id']}")).refused(404)
    assert not await mentions(coach, bo["_id"])


@pytest.mark.parametrize("is_own", [False, True])
async def test_the_import_of_an_erased_client_is_deleted_with_its_file(
    coach: CoachClient, ana: dict[str, Any], settings: Settings, *, is_own: bool
) -> None:
    client = await coach.as_client(ana)
    async with no_job_begins(coach, settings):
        sent = await (send_own(client, TABLE) if is_own else send(coach, TABLE, name="a.csv", customerId=ana["_id"]))
        job = sent.ok(202)
        await erase(coach, ana)
    (await coach.get(f"/coach/jobs/{job['_id']}")).refused(404)
    assert await stored(coach) == (0, 0)
    assert not await mentions(coach, ana["_id"])


async def test_an_answer_with_a_client_who_is_erased_before_the_import_begins_is_forgotten(
    coach: CoachClient, bo: dict[str, Any], settings: Settings
) -> None:
    async with no_job_begins(coach, settings):
        sent = await send(coach, ROWS, name="a.csv", customers=f'{{"Ana": "skip", "Bo": "{bo["_id"]}"}}')
        await erase(coach, bo)
    assert (await ended_job(coach, sent.ok(202)["_id"], partial(run, coach)))["status"] == "failed"
    assert not await mentions(coach, bo["_id"])
    assert await stored(coach) == (0, 0)


@pytest.mark.parametrize("is_alone", [False, True])
async def test_a_checked_file_is_deleted_with_a_client(
    coach: CoachClient, ana: dict[str, Any], bo: dict[str, Any], *, is_alone: bool
) -> None:
    answers: ImportAnswers = {**NO_ANSWERS, "customerId": ObjectId(bo["_id"]) if is_alone else None}
    content = TABLE if is_alone else ROWS
    file = await files.store(coach.ctx, io.BytesIO(content), name="a.csv", content_type=CSV, customer_id=None)

    async def begin(tx: Context) -> StoredJob:
        await files.attach(tx, file)
        return await company_import.begin(tx, file, dry_run=True, answers=answers, keeps_file=True)

    caller = await api_keys.authenticate(coach.ctx.services, coach.key or "")
    job = await in_transaction(coach.ctx.acting_as(caller), begin)
    done = await ended_job(coach, str(job["_id"]), partial(run, coach))
    assert (done["status"], done["errors"]) == ("done", [])
    assert (await stored(coach))[0] == 1
    await erase(coach, bo)
    assert await stored(coach) == (0, 0)
    assert not await mentions(coach, bo["_id"])
    with pytest.raises(NotFound if is_alone else Conflict):
        await company_import.begin_checked(coach.ctx, job["_id"], NO_ANSWERS)
    assert (await coach.get(f"/coach/customers/{ana['_id']}")).ok()
