"""The stored number and size of a company's files, and how much it may store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.app import create_app
from coaching_service.core.database import files
from coaching_service.core.database.context import Context, Services
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job
from coaching_service.core.media import StorageQuota
from coaching_service.installation import migrations
from coaching_service.lifecycle import erasure
from coaching_service.settings import Settings
from tests.core.test_uploads import PDF, form, picture
from tests.support.client import CoachClient

FILES = 3


@pytest.fixture
async def limited(settings: Settings, services: Services, coach: CoachClient) -> AsyncIterator[CoachClient]:
    """The same company on a server where it may store three files."""
    app = create_app(settings, replace(services, storage_quota=StorageQuota(files=FILES, bytes=10_000_000)))
    async with TestServer(app) as server:
        client = CoachClient(server, coach.key, coach.ctx)
        yield client
        await client.close()


async def stored_files(ctx: Context) -> dict[str, int]:
    """Count and size of the files that are attached, as the files say."""
    files = await ctx.db["fs.files"].find({"companyId": ctx.company_id, "pending": {"$ne": True}}).to_list(None)
    return {"files": len(files), "bytes": sum(file["length"] for file in files)}


async def totals(ctx: Context) -> Any:
    """Count and size of the files, as the totals say."""
    return (await files.read_totals(ctx.services, [ctx.company_id])).get(ctx.company_id)


async def test_totals_follow_uploads_replacements_deletions_and_erasure(coach: CoachClient) -> None:
    ctx = coach.ctx
    ana = await coach.create_customer("Ana")
    path = f"/coach/customers/{ana['_id']}"
    plan = (await coach.send("POST", f"{path}/nutrition-plans", data=form(PDF, "file", "plan.pdf"))).ok(201)
    (await coach.send("POST", f"{path}/nutrition-plans", data=form(picture(), "file", "a.jpg"))).ok(201)
    assert await totals(ctx) == await stored_files(ctx)
    assert (await totals(ctx))["files"] == 3, "a picture has a thumbnail"

    await ctx.db["fileTotals"].delete_one({"_id": ctx.company_id})
    await migrations.file_totals(ctx.db, ctx.services.vault)
    assert await totals(ctx) == await stored_files(ctx), "counted by the migration"

    (await coach.delete(f"{path}/plan-versions/{plan['_id']}")).ok(204)
    assert (await totals(ctx))["files"] == 2
    arguments = {"companyId": ctx.company_id, "customerId": ObjectId(ana["_id"])}
    while await erasure.erase_customer(ctx.services, Job(ObjectId(), {**arguments, "isSecondPass": True}, 1)):
        pass
    assert await totals(ctx) == await stored_files(ctx) == {"files": 0, "bytes": 0}


async def test_concurrent_uploads_do_not_exceed_the_quota_together(limited: CoachClient) -> None:
    ana = await limited.create_customer("Ana")
    path = f"/coach/customers/{ana['_id']}"

    async def upload() -> Any:
        return await limited.send("POST", f"{path}/nutrition-plans", data=form(PDF, "file", "plan.pdf"))

    replies = await asyncio.gather(*(upload() for _ in range(2 * FILES)))
    assert sorted(reply.status for reply in replies) == [201] * FILES + [413] * FILES
    refused = (await upload()).refused(413, f"may store {FILES} files")
    assert refused["code"] == "STORAGE_QUOTA_EXCEEDED"
    assert await totals(limited.ctx) == await stored_files(limited.ctx)
    assert await limited.ctx.db["fs.files"].count_documents({"companyId": limited.ctx.company_id}) == FILES

    stored = next(reply.json for reply in replies if reply.status == 201)
    (await limited.delete(f"{path}/plan-versions/{stored['_id']}")).ok(204)
    (await upload()).ok(201)
