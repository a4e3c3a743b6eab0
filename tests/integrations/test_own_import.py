"""Clients import their own training history over REST."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue, worker
from coaching_service.core.jobs.queue import Step
from coaching_service.integrations import background_jobs
from coaching_service.integrations.company_import import service as company_import
from coaching_service.integrations.history_import import importing, undoing
from coaching_service.integrations.history_import.models import ImportedPeriod
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks.models import KnownSession
from tests.support import transfer
from tests.support.client import CoachClient, Reply
from tests.support.doctor import is_numbered
from tests.support.real_exports import EXPORTS, own_csv
from tests.support.service_process import until
from tests.support.transfer import pick

TABLE = (
    b"Date,Workout,Exercise,Reps,Weight (kg)\n2025-01-06,Push,Bench Press,8,60\n2025-01-06,Push,Sled of Doom,5,100\n"
)
UNNAMED = b"Date,Moved what,Reps\n2025-01-06,Squat,8\n"  # no heading means an exercise
STEPS: dict[str, Step] = {company_import.IMPORT: company_import.run_step, undoing.UNDO: undoing.run_step}


async def send(client: CoachClient, content: bytes = TABLE, **fields: Any) -> Reply:
    return await transfer.send(client, content, name="table.csv", path="/customer/import", **fields)


async def ended(coach: CoachClient, client: CoachClient, job: dict[str, Any]) -> dict[str, Any]:
    """The client's job once it has ended."""

    async def current() -> dict[str, Any] | None:
        await worker.run_due(coach.ctx.services, STEPS)
        look: dict[str, Any] = (await client.get(f"/customer/jobs/{job['_id']}")).ok()
        return None if look["status"] in ("queued", "running") else look

    return await until(current, "the job has ended")


async def test_a_client_imports_and_undoes_the_own_history(coach: CoachClient) -> None:
    mara = await coach.create_customer("Mara")
    client = await coach.as_client(mara)
    checked = await ended(coach, client, (await send(client, dryRun="true")).ok(202))
    assert checked["result"]["created"] == {"customers": 0, "sessions": 1, "sets": 2, "exercises": 1}
    assert (await client.get("/customer/wblock", startDate="2025-01-01", endDate="2025-01-31")).ok() == []

    job = await ended(coach, client, (await send(client)).ok(202))
    assert (job["status"], job["errors"]) == ("done", [])
    [block] = (await client.get("/customer/wblock", startDate="2025-01-01", endDate="2025-01-31")).ok()
    assert block["source"] == {"format": "sets", "importId": job["_id"]}
    created = block["items"][1]["exercise"]
    assert (await coach.get(f"/exercises/{created['_id']}")).ok()["tags"] == ["imported"]
    remembered = await coach.ctx.db["importedNames"].count_documents({"companyId": coach.ctx.company_id})
    assert remembered == 0, "a client does not answer for the company"

    undo = (await client.post(f"/customer/jobs/{job['_id']}/undo")).ok(202)
    undone = await ended(coach, client, undo)
    assert undone["result"]["removed"] == {"customers": 0, "sessions": 1, "exercises": 1}
    assert (await client.get("/customer/wblock", startDate="2025-01-01", endDate="2025-01-31")).ok() == []


async def test_the_client_is_the_author_of_the_own_import(coach: CoachClient) -> None:
    mara = await coach.create_customer("Mara")
    client = await coach.as_client(mara)
    job = await ended(coach, client, (await send(client)).ok(202))
    await ended(coach, client, (await client.post(f"/customer/jobs/{job['_id']}/undo")).ok(202))

    own = {"type": "client", "_id": mara["_id"], "name": "Mara"}
    for operation in ("importCompany", "undoImport"):
        changes = await changes_of(coach, operation)
        assert changes and pick(changes, "actor", "via") == [(own, "client")] * len(changes)
    listed = (await coach.get("/coach/events", types=["history.imported", "history.removed"])).ok()["docs"]
    assert [each["type"] for each in listed] == ["history.imported", "history.removed"]
    assert {(each["actor"]["type"], each["actor"]["_id"]) for each in listed} == {("client", mara["_id"])}
    mine = (await coach.get("/coach/changes", limit=50, via="client")).ok()["docs"]
    assert {each["operation"] for each in mine} >= {"importCompany", "undoImport"}


async def test_the_client_is_the_author_of_an_import_that_was_cancelled(coach: CoachClient) -> None:
    mara = await coach.create_customer("Mara")
    period: ImportedPeriod = {
        "customerId": ObjectId(mara["_id"]),
        "sessions": 1,
        "sets": 2,
        "from": "2025-01-06",
        "to": "2025-01-06",
    }
    client = await coach.as_client(mara)
    job = await ended(coach, client, (await send(client)).ok(202))
    arguments = {"importId": ObjectId(job["_id"]), "period": period}
    await queue.enqueue(coach.ctx, background_jobs.FOLLOW, arguments)
    steps: dict[str, Step] = {background_jobs.FOLLOW: importing.run_step}
    await worker.run_due(coach.ctx.services, steps)

    async def is_followed() -> bool:
        return len(await changes_of(coach, "importCompany")) > 1

    await until(is_followed, "what follows from the import")
    assert {each["via"] for each in await changes_of(coach, "importCompany")} == {"client"}


async def changes_of(coach: CoachClient, operation: str) -> list[dict[str, Any]]:
    """The changes of an operation, once all are numbered."""
    await until(lambda: is_numbered(coach.ctx.services), "the numbers of changes")
    listed = (await coach.get("/coach/changes", limit=50)).ok()["docs"]
    return [each for each in listed if each["operation"] == operation]


async def test_only_rows_of_the_client_are_imported(coach: CoachClient) -> None:
    mara, kim = await coach.create_customer("Mara"), await coach.create_customer("Kim")
    client = await coach.as_client(mara)
    text = b"Client,Date,Exercise,Reps\nMara,2025-01-06,Squat,8\nKim,2025-01-06,Squat,9\nNew,2025-01-06,Squat,9\n"
    job = await ended(coach, client, (await send(client, text)).ok(202))
    assert (job["result"]["imported"], job["result"]["reported"]) == (1, 2)
    assert len(await coach.calendar(mara, "2025-01-01", "2025-01-31")) == 1
    assert await coach.calendar(kim, "2025-01-01", "2025-01-31") == []
    assert await coach.names() == ["Kim", "Mara"]


async def test_a_file_of_another_client_is_reported(coach: CoachClient) -> None:
    mara = await coach.create_customer("Mara", surname="Moss")
    client = await coach.as_client(mara)
    other = b"Client,Date,Exercise,Reps\nAna Flores,2025-01-06,Sled of Doom,8\nAna Flores,2025-01-07,Squat,8\n"
    job = await ended(coach, client, (await send(client, other)).ok(202))
    assert (job["result"]["imported"], job["result"]["reported"], job["result"]["created"]["exercises"]) == (0, 2, 0)
    assert [each["code"] for each in job["errors"]] == ["OTHER_CLIENT", "OTHER_CLIENT"]
    assert await coach.calendar(mara, "2025-01-01", "2025-01-31") == []
    listed = await coach.ctx.db["exercises"].count_documents({"libraryId": coach.ctx.company_id})
    assert listed == 0, "no exercise of rows that are left out"

    for name in (b"mara moss", b'"Moss, Mara"', mara["_id"].encode()):
        own = b"Client,Date,Exercise,Reps\n" + name + b",2025-01-06,Squat,8\n"
        job = await ended(coach, client, (await send(client, own, dryRun="true")).ok(202))
        assert (job["result"]["imported"], job["errors"]) == (1, []), name


async def test_a_client_is_asked_for_unknown_columns(coach: CoachClient) -> None:
    client = await coach.as_client(await coach.create_customer("Mara"))
    checked = await ended(coach, client, (await send(client, UNNAMED, dryRun="true")).ok(202))
    assert [each["code"] for each in checked["result"]["questions"]] == ["COLUMN"]


async def test_files_that_coaches_import_are_refused(coach: CoachClient) -> None:
    mara = await coach.create_customer("Mara")
    client = await coach.as_client(mara)
    for export in (own_csv(mara["_id"], "Mara"), next(each for each in EXPORTS if each.format == "trainheroic")):
        job = await ended(coach, client, (await send(client, export.build(60))).ok(202))
        assert (job["status"], job["errors"][-1]["code"]) == ("failed", "NOT_SUPPORTED"), export.name
    assert await coach.calendar(mara, "2025-01-01", "2025-12-31") == []


async def test_jobs_of_others_are_not_found(coach: CoachClient) -> None:
    mara, kim = await coach.create_customer("Mara"), await coach.create_customer("Kim")
    client, other = await coach.as_client(mara), await coach.as_client(kim)
    job = await ended(coach, client, (await send(client)).ok(202))
    (await other.get(f"/customer/jobs/{job['_id']}")).refused(404)
    (await other.post(f"/customer/jobs/{job['_id']}/undo")).refused(404)
    (await client.get(f"/coach/jobs/{job['_id']}")).refused(403)
    assert (await coach.get(f"/coach/jobs/{job['_id']}")).ok()["status"] == "done"


async def test_the_owner_turns_it_off(coach: CoachClient) -> None:
    client = await coach.as_client(await coach.create_customer("Mara"))
    (await coach.patch("/coach/account", {"clientsMayImport": False})).ok()
    assert (await send(client)).refused(403)["code"] == "CLIENT_IMPORTS_OFF"
    (await coach.patch("/coach/account", {"clientsMayImport": True})).ok()
    (await send(client, format="customers")).refused(400, "format")
    (await send(client, dryRun="true")).ok(202)


async def test_what_a_coach_and_the_client_import_at_the_same_time_is_stored_once(
    coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The import of the client runs between the look of the coach's at the calendar and its transaction."""
    mara = await coach.create_customer("Mara")
    client = await coach.as_client(mara)
    own: list[dict[str, Any]] = []
    find_done_on = batches.find_done_on

    async def import_meanwhile(ctx: Context, customer_id: ObjectId, dates: Sequence[str]) -> list[KnownSession]:
        found = await find_done_on(ctx, customer_id, dates)
        if ctx.author is None and not own:
            own.append((await send(client)).ok(202))
            own[0] = await ended(coach, client, own[0])
        return found

    monkeypatch.setattr(batches, "find_done_on", import_meanwhile)
    job = await transfer.import_file(coach, TABLE, name="table.csv", customerId=mara["_id"])

    assert (own[0]["result"]["created"]["sessions"], job["result"]["created"]["sessions"]) == (1, 0)
    assert {each["code"] for each in job["errors"]} == {"ALREADY_THERE"}
    assert len((await client.get("/customer/wblock", startDate="2025-01-01", endDate="2025-01-31")).ok()) == 1
