"""Records and their files stay consistent, whatever fails and when: the service, its database connection, the caller."""

from __future__ import annotations

import asyncio
import gc
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from pymongo.errors import AutoReconnect

from coaching_service.core.database import files
from coaching_service.core.database.documents import now, registry
from coaching_service.settings import Settings
from tests.core.test_uploads import fetch, form, picture
from tests.support.client import CoachClient
from tests.support.commands import type_in
from tests.support.database_proxy import Moment
from tests.support.other_process import Proxied, proxied, running
from tests.support.own_application import OwnApplication
from tests.support.pdf_files import make_pdf
from tests.support.sampled import some

LONG = make_pdf(size=700_000)
BEFORE, AFTER = picture("PNG", (300, 300)), picture("PNG", (500, 500))


def moments() -> dict[str, Moment]:
    """The steps of replacing a photo."""
    return {
        "before the first byte": Moment("insert", "fs.files"),
        "in the middle of the bytes": Moment("insert", "fs.chunks", count=2),
        "between picture and thumbnail": Moment("insert", "fs.files", count=2),
        "before the record": Moment("findAndModify", "progressPhotos"),
        "after the record": Moment("findAndModify", "progressPhotos", done=True),
        "when the old bytes are deleted": Moment("delete", "fs.chunks"),
        "before the commit": Moment("commitTransaction", of="progressPhotos"),
        "after the commit, before its response": Moment("commitTransaction", done=True, of="progressPhotos"),
    }


FATAL = (
    "in the middle of the bytes",
    "before the record",
    "before the commit",
    "after the commit, before its response",
)


@pytest.fixture(scope="module")
async def other(application: OwnApplication) -> AsyncIterator[Proxied]:
    """Another application on the same database, through a proxy."""
    async with proxied(application.settings, None) as another:
        yield another


@pytest.fixture
async def ana(coach: CoachClient) -> str:
    """A client's path."""
    return f"/coach/customers/{(await coach.create_customer())['_id']}"


@pytest.fixture
async def record(coach: CoachClient, ana: str) -> dict[str, Any]:
    """A photo record of the client."""
    data = form(BEFORE, createdAt="2026-03-02", imageSideIndex="1")
    response: dict[str, Any] = (await coach.send("POST", f"{ana}/progress-photos", data=data)).ok(201)
    return response


async def consistent(coach: CoachClient) -> int:
    """Assert that every file named by a record of the company is complete, and return the number of files."""
    db, named = coach.ctx.db, set()
    for name, collection in registry.items():
        if collection.client_field:
            async for document in db[name].find({"companyId": coach.ctx.company_id}):
                named |= set(_files_in(document))
    referenced = {"_id": {"$in": list(named)}, "pending": {"$ne": True}}
    files = await db["fs.files"].find(referenced).to_list(None)
    assert {file["_id"] for file in files} == named
    for file in files:
        chunks = await db["fs.chunks"].find({"files_id": file["_id"]}, sort=[("n", 1)]).to_list(None)
        assert sum(len(chunk["data"]) for chunk in chunks) == file["length"]
    return len(named)


def _files_in(value: Any) -> list[Any]:
    if isinstance(value, list):
        return [file_id for each in value for file_id in _files_in(each)]
    if not isinstance(value, dict):
        return []
    own = [value[key] for key in ("fileId", "thumbnailId") if value.get(key)]
    return own + [file_id for each in value.values() for file_id in _files_in(each)]


async def clean(settings: Settings, *options: str) -> str:
    """Run `gc-files` and return its output."""
    database = {"MONGODB_URI": str(settings.mongodb_uri), "MONGODB_DATABASE": settings.mongodb_database}
    keys = ",".join(settings.secret_keys)
    return (await asyncio.to_thread(type_in, "gc-files", *options, SECRET_KEYS=keys, **database)).ok()


async def backdate_pending_files(coach: CoachClient) -> None:
    """Date pending files back by two hours."""
    where = {"companyId": coach.ctx.company_id, "pending": True}
    await coach.ctx.db["fs.files"].update_many(where, {"$set": {"uploadDate": now() - timedelta(hours=2)}})


async def assert_no_other_files(coach: CoachClient, settings: Settings, files: int) -> None:
    """Run `gc-files`, and assert that the company has this many files and that no chunk lacks its file."""
    db = coach.ctx.db
    await backdate_pending_files(coach)
    await clean(settings)
    assert await consistent(coach) == files
    ids = await db["fs.files"].distinct("_id", {"companyId": coach.ctx.company_id})
    assert len(ids) == files
    all_ids = await db["fs.files"].distinct("_id", {})
    assert await db["fs.chunks"].count_documents({"files_id": {"$nin": all_ids}}) == 0


async def shown(coach: CoachClient, ana: str) -> list[tuple[int, int]]:
    """The size of every photo of the client, as it is downloaded by its link."""
    page = (await coach.get(f"{ana}/progress-photos", pageSize=10, pageNum=1)).ok()
    sides = [f"{side}Url" for side in ("front", "back", "side")]
    replies = [
        await fetch(coach, each["photos"][side]) for each in page["docs"] for side in sides if each["photos"][side]
    ]
    return [Image.open(io.BytesIO(reply.raw)).size for reply in replies]


async def replace(other: Proxied, ana: str, record: dict[str, Any]) -> int | None:
    """Replace the first photo with the other; returns the status of the response, if there is one."""
    path = f"{ana}/progress-photos/{record['_id']}"
    return await other.send("PUT", path, data=form(AFTER, imageSideIndex="1"))


@pytest.mark.parametrize("moment", some(FATAL, 1))
async def test_killed_process_leaves_the_old_or_the_new_file(
    application: OwnApplication, coach: CoachClient, ana: str, record: dict[str, Any], moment: str, tmp_path: Path
) -> None:
    async with running(application.settings, coach.key, tmp_path) as process:
        reached = moments()[moment]
        process.proxy.wait_for(reached, process.kill)
        assert await replace(process, ana, record) is None
        assert process.proxy.reached.is_set()
    # What the database does by itself after a minute.
    await coach.ctx.db.client.admin.command("killSessions", [reached.session])
    assert await consistent(coach) == 2
    assert await shown(coach, ana) == [(500, 500) if moment.startswith("after the commit") else (300, 300)]
    await assert_no_other_files(coach, application.settings, 2)


@pytest.mark.parametrize("moment", some([*moments()], 3))
async def test_lost_database_connection_leaves_the_old_or_the_new_file(
    application: OwnApplication,
    coach: CoachClient,
    other: Proxied,
    ana: str,
    record: dict[str, Any],
    moment: str,
) -> None:
    """The driver retries by itself: the stored photo is the one that the response reports."""
    other.act_for(coach)
    other.proxy.wait_for(moments()[moment], other.disconnect)
    status = await replace(other, ana, record)
    assert other.proxy.reached.is_set()
    assert await consistent(coach) == 2
    assert await shown(coach, ana) == [(500, 500) if status == 200 else (300, 300)]
    assert status in (200, 503)
    await assert_no_other_files(coach, application.settings, 2)


async def test_failed_record_write_leaves_no_file(
    application: OwnApplication, coach: CoachClient, ana: str, record: dict[str, Any]
) -> None:
    """The database rejects the record of a replaced photo and of a new plan."""
    db = coach.ctx.db
    for collection, method, path, data in (
        ("progressPhotos", "PUT", f"{ana}/progress-photos/{record['_id']}", form(AFTER, imageSideIndex="1")),
        ("planVersions", "POST", f"{ana}/nutrition-plans", form(LONG, "file")),
    ):
        async with refusing(coach, collection):
            (await coach.send(method, path, data=data)).refused(500)
        assert await db["fs.files"].count_documents({"companyId": coach.ctx.company_id}) == 2
    assert await shown(coach, ana) == [(300, 300)]
    await assert_no_other_files(coach, application.settings, 2)


@asynccontextmanager
async def refusing(coach: CoachClient, collection: str) -> AsyncIterator[None]:
    """The database rejects documents of this collection during the block."""
    await coach.ctx.db.command("collMod", collection, validator={"never": True})
    try:
        yield
    finally:
        await coach.ctx.db.command("collMod", collection, validator={})


async def test_aborted_upload_leaves_no_file(coach: CoachClient, ana: str, other: Proxied) -> None:
    other.act_for(coach)

    async def half() -> AsyncIterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="file"; filename="plan.pdf"\r\n\r\n' + LONG[:300_000]
        raise ConnectionResetError

    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    assert await other.send("POST", f"{ana}/nutrition-plans", data=half(), headers=headers) is None
    assert await other.send("GET", f"{ana}/plan-versions?pageSize=1&pageNum=1") == 200
    assert await coach.ctx.db["fs.files"].count_documents({"companyId": coach.ctx.company_id}) == 0


async def test_gc_files_ignores_uploads_in_progress(
    application: OwnApplication, coach: CoachClient, ana: str, other: Proxied
) -> None:
    """An upload that takes over an hour is abandoned: its record is not written either."""
    other.act_for(coach)
    outputs = []
    for late in (False, True):

        async def meanwhile(late: bool = late) -> bool:
            if late:
                await backdate_pending_files(coach)
            outputs.append((await clean(application.settings, "--dry-run"), await clean(application.settings)))
            return True

        other.proxy.wait_for(Moment("insert", "fs.chunks", count=2), meanwhile)
        status = await other.send("POST", f"{ana}/nutrition-plans", data=form(LONG, "file"))
        assert status == (503 if late else 201)
    assert "found: 0 without a record and 0 with only chunks left, 0 bytes in total" in outputs[0][0]
    assert "removed: 0 without a record" in outputs[0][1]
    assert "found: 1 without a record and 0 with only chunks left, 261120 bytes in total" in outputs[1][0]
    assert "removed: 1 without a record" in outputs[1][1]
    [plan] = (await coach.get(f"{ana}/plan-versions", pageSize=5, pageNum=1)).ok()["docs"]
    assert (await fetch(coach, plan["url"])).raw == LONG
    await assert_no_other_files(coach, application.settings, 1)


async def test_retried_upload_deletes_the_old_file_only_on_success(
    application: OwnApplication, coach: CoachClient, ana: str, record: dict[str, Any]
) -> None:
    """An upload that fails at its last step leaves the old photo; its retry with the same key stores the new one."""

    async def send() -> int:
        data = form(AFTER, createdAt="2026-03-02", imageSideIndex="1")
        reply = await coach.send("POST", f"{ana}/progress-photos", data=data, headers={"Idempotency-Key": "k"})
        return reply.status

    db, key = coach.ctx.db, {"status": 201}  # set in the last step
    await db.command("collMod", "replays", validator={"$nor": [key]})
    try:
        assert await send() == 500
    finally:
        await db.command("collMod", "replays", validator={})
    assert await shown(coach, ana) == [(300, 300)]
    assert (await send(), await send()) == (201, 201)
    assert await shown(coach, ana) == [(500, 500)]
    await assert_no_other_files(coach, application.settings, 2)


async def test_deletion_that_fails_after_its_request_has_ended_is_not_logged(
    coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop logs a traceback of a task whose failure was never retrieved."""
    options: dict[str, Any] = {"name": "a.png", "content_type": "image/png", "customer_id": None}
    file = await files.store(coach.ctx, io.BytesIO(BEFORE), **options)
    begun, fail, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
    gc.freeze()  # the collection below need not look at what earlier tests have left

    async def fails(*_: object) -> None:
        begun.set()
        await fail.wait()
        asyncio.get_running_loop().call_soon(ended.set)
        raise AutoReconnect

    monkeypatch.setattr(files, "_delete_chunks", fails)
    logged: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: logged.append(context))
    request = asyncio.create_task(files.release(coach.ctx.services, file.ids))
    await begun.wait()
    request.cancel()
    with suppress(asyncio.CancelledError):
        await request
    del request
    fail.set()
    await ended.wait()
    gc.collect()
    loop.set_exception_handler(None)
    assert logged == []
