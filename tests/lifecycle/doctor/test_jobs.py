"""Jobs and imports that do not continue are reported."""

from __future__ import annotations

import io
from datetime import timedelta

import pytest

from coaching_service.core.database import files
from coaching_service.core.database.context import Context, in_transaction
from coaching_service.core.database.documents import now
from coaching_service.core.database.files import StoredFile, storing
from coaching_service.core.errors import Conflict
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import CSV
from coaching_service.integrations.company_import import service as company_import
from coaching_service.lifecycle.erasure import ERASE_CUSTOMER
from coaching_service.people import jobs
from coaching_service.people.account import ERASE as ERASE_COMPANY
from coaching_service.people.jobs import StoredJob
from tests.support.doctor import (
    LONG_AGO,
    Restored,
    check,
    findings_of,
    new_job,
    reported,
)


async def test_stuck_jobs_are_reported(ctx: Context, restored: Restored) -> None:
    for fields in (
        {"runAfter": LONG_AGO},
        {"attempts": 7, "runAfter": now() + timedelta(minutes=5)},
        {"kind": "of_a_later_version"},
    ):
        await restored.insert("jobs", new_job(ctx, **fields))
    for name in ("jobs-late", "jobs-failing", "jobs-unknown"):
        [finding] = await reported(ctx, name)
        assert finding.count == 1, name


async def test_stuck_erasures_and_imports_are_reported(ctx: Context, restored: Restored) -> None:
    """As jobs; or, without a job, by what is left."""
    for kind in (ERASE_CUSTOMER, ERASE_COMPANY, company_import.IMPORT):
        await restored.insert("jobs", new_job(ctx, kind=kind, runAfter=LONG_AGO, arguments={"companyId": ObjectId()}))
    [late] = await reported(ctx, "jobs-late")
    assert late.count == 3

    note = await ctx.db["notes"].find_one({})
    assert note is not None
    await restored.delete("customers", {"_id": note["customerId"]})
    problems = [finding.problem for finding in await reported(ctx, "references")]
    assert "Documents of notes whose customerId is not in customers" in problems
    await restored.delete("companies", {"_id": ctx.company_id})
    problems = [finding.problem for finding in await reported(ctx, "companies")]
    assert "Documents of notes whose company does not exist" in problems


async def test_import_that_no_job_continues_ends_so_that_another_can_begin(ctx: Context) -> None:
    async def begin(tx: Context, file: StoredFile) -> StoredJob:
        job = await company_import.begin(tx, file, dry_run=False)
        await files.attach(tx, file)
        return job

    async def upload() -> StoredJob:
        name = "clients.csv"
        async with storing(
            ctx, io.BytesIO(b"name\nAna\n"), name=name, content_types=(CSV,), customer_id=None, max_pixels=1
        ) as file:
            return await in_transaction(ctx, lambda tx: begin(tx, file))

    job = await upload()
    assert findings_of(await check(ctx.services, "imports")) == [], "its job is queued"
    await ctx.db["jobs"].delete_one({"arguments.jobId": job["_id"]})
    with pytest.raises(Conflict):
        await upload()
    [(_, finding)] = findings_of(await check(ctx.services, "imports"))
    assert (finding.count, finding.example) == (1, str(job["_id"]))

    [result] = await check(ctx.services, "imports", repairing=True)
    assert (result.findings, result.repaired) == ([], [finding])
    ended = await jobs.get_complete(ctx, job["_id"])
    assert (ended["status"], len(ended["errors"])) == ("failed", 1)
    assert ended["work"].get("fileId", "missing") is None
    assert await ctx.db["fs.files"].count_documents({"contentType": CSV}) == 0
    await company_import.end_abandoned(ctx.services)
    again = await upload()
    await ctx.db["jobs"].delete_one({"arguments.jobId": again["_id"]})
    await company_import.end_abandoned(ctx.services)
    assert findings_of(await check(ctx.services, "imports", "files-missing", "files-unreferenced", "file-totals")) == []
