"""Erasing a client hides it at once and deletes all of its data, also if the service is killed in between."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from coaching_service.core.database import files
from coaching_service.core.database.context import Context, in_transaction
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.lifecycle import erasure
from coaching_service.people import api_keys, file_links, team
from coaching_service.people.customers import batch
from coaching_service.settings import Settings
from tests.core.test_jobs import naming
from tests.support.client_data import insert_in_every_collection, list_client_collections
from tests.support.database_proxy import Moment
from tests.support.databases import new_database
from tests.support.drill import database_of, require_whole
from tests.support.other_process import OtherProcess, running
from tests.support.service_process import until
from tests.support.stored import stored_document

FILES = 45  # three steps


@dataclass
class Company:
    """A company on a database of its own, and two of its clients."""

    settings: Settings
    ctx: Context
    key: str
    erased: ObjectId
    remaining: ObjectId

    async def expire_lease(self, **arguments: object) -> None:
        """End the lease of a job, so that the next worker claims it at once."""
        jobs = self.ctx.db["jobs"]
        where = {"kind": erasure.ERASE_CUSTOMER, **{f"arguments.{name}": value for name, value in arguments.items()}}
        await until(lambda: jobs.find_one(where), "the job is there")
        await jobs.update_one(where, {"$set": {"runAfter": now()}})


@pytest.fixture
async def company(settings: Settings) -> AsyncIterator[Company]:
    """Both clients have a document in every collection with data of clients, and many files."""
    async with new_database(settings, "erasing") as (own, services):
        owner = await team.create_company(Context(services), "One", "Olga", "olga@erasing.test", "no hash")
        ctx = Context(services).acting_as(owner)
        key = str((await api_keys.create(ctx, "Test"))["key"])
        clients = [(await batch.create_customer(ctx, {"name": name}))["_id"] for name in ("Zebulon", "Yolanda")]
        for client, name, number in zip(clients, ("zebulon", "yolanda"), (FILES, 2), strict=True):
            await _fill(ctx, client, name, number)
        yield Company(own, ctx, key, *clients)


async def _fill(ctx: Context, client: ObjectId, name: str, number: int) -> None:
    await insert_in_every_collection(ctx, client, name)
    for _ in range(number):
        source = io.BytesIO(name.encode() * 10)
        file = await files.store(ctx, source, name=name, content_type="image/png", customer_id=client)
        await in_transaction(ctx, partial(files.attach, file=file))


async def test_erasure_continues_after_its_process_is_killed(company: Company, tmp_path: Path) -> None:
    db, services, path = company.ctx.db, company.ctx.services, f"/coach/customers/{company.erased}"
    everywhere = await naming(services, str(company.remaining), "yolanda")
    assert set(everywhere) == {*list_client_collections(), "customers", "fs.files", "fs.chunks"}
    file = await stored_document(db["fs.files"], {"customerId": company.erased}, sort=[("_id", -1)])
    link = str(file_links.file_url(Context(services), file["_id"])).partition("/files/")[2]

    async with running(company.settings, company.key, tmp_path / "first") as first:
        assert await first.send("GET", f"/files/{link}") == 200
        first.proxy.wait_for(Moment("delete", "fs.chunks", count=2), first.kill)
        assert await first.send("DELETE", path) == 204
        await until(lambda: first.process.poll() is not None, "it is killed in the second step")
    assert await db["fs.files"].count_documents({"customerId": company.erased}) == FILES - 20
    assert await db["fs.files"].find_one({"_id": file["_id"]}), "its bytes are still there"

    async with running(company.settings, company.key, tmp_path / "second") as second:
        await assert_hidden_from_every_reader(second, path, link)
        await company.expire_lease()
        await company.expire_lease(isSecondPass=True)
        await until(lambda: _none_left(company), "the job is done")
        await assert_hidden_from_every_reader(second, path, link)

    assert await naming(services, str(company.erased)) == ["audit", "changes", "erasures"], "that the client was erased"
    assert await naming(services, "zebulon") == []
    assert await db["audit"].distinct("action", {"target._id": company.erased}) == ["client.erased"]
    assert await db["fs.chunks"].count_documents({}) == await db["fs.files"].count_documents({}) == 2
    left = [name for name in await naming(services, str(company.remaining), "yolanda") if name != "failures"]
    assert left == everywhere, (
        "but for the figures that follow from the documents of this test, which no service stores"
    )

    async with running(company.settings, company.key, tmp_path / "third") as third:
        assert await third.send("DELETE", f"/coach/customers/{company.remaining}") == 204
        await company.expire_lease()
        await company.expire_lease(isSecondPass=True)
        await until(lambda: _none_left(company), "the other one is erased too")
        assert await db["fs.chunks"].count_documents({}) == await db["fs.files"].count_documents({}) == 0
        await require_whole(third.base_url, company.key, **database_of(company.settings))


async def _none_left(company: Company) -> bool:
    return await company.ctx.db["jobs"].count_documents({"kind": erasure.ERASE_CUSTOMER}) == 0


async def assert_hidden_from_every_reader(service: OtherProcess, path: str, link: str) -> None:
    for address in (path, f"{path}/export", f"{path}/progress-photos?pageSize=1&pageNum=1", f"/files/{link}"):
        assert await service.send("GET", address) == 404
    assert await service.send("GET", "/coach/customers?archived=false&pageSize=1&pageNum=1") == 200
