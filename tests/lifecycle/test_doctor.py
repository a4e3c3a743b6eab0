"""`coaching-service doctor` (issue 24, point 2): each check sees damage that is planted, and repairs it where it is safe."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from coaching_service import features, runtime
from coaching_service.core.auth.secrets import Vault, new_master_key, parse_master_key
from coaching_service.core.changes import history
from coaching_service.core.changes.numbering.checks import find_unnumbered
from coaching_service.core.changes.numbering.sequencer import sequencing
from coaching_service.core.database import files
from coaching_service.core.database.checks import Check, CheckResult, Finding, run_checks
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import declared_collections, now
from coaching_service.core.database.file_storage import storing
from coaching_service.core.database.files import StoredFile
from coaching_service.core.database.index_checks import find_unused
from coaching_service.core.database.portable import FILE_FIELDS
from coaching_service.core.database.server_versions import remark_on
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.errors import Conflict
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import mail, worker
from coaching_service.core.jobs.worker import ensure_standing_jobs
from coaching_service.core.media import CSV
from coaching_service.demo import ensure_demo
from coaching_service.demo.company import EMAIL
from coaching_service.integrations.background_jobs import service as background_jobs
from coaching_service.integrations.background_jobs.models import StoredCompanyJob
from coaching_service.integrations.company_import import service as company_import
from coaching_service.library.exercises import shared
from coaching_service.lifecycle.consistency.file_checks import holding_collections
from coaching_service.lifecycle.erasure.service import ERASE_CUSTOMER
from coaching_service.people.account.service import ERASE as ERASE_COMPANY
from coaching_service.people.customers import creation
from coaching_service.people.customers import service as customers
from coaching_service.people.identities import service as identities
from coaching_service.people.team import service as team
from coaching_service.settings import Settings
from tests.support.service_process import until

CHECKS = {check.name: check for check in features.CHECKS}
LONG_AGO = now() - timedelta(days=3)
Damage = Callable[[Context], Awaitable[object]]


@pytest.fixture(scope="module")
async def ctx(settings: Settings) -> AsyncIterator[Context]:
    """The owner of the demo company, on a database of its own with numbered changes."""
    own = settings.model_copy(update={"mongodb_database": f"{settings.mongodb_database}_doctor"})
    async with runtime.open_services(own) as services:
        await services.db.client.drop_database(own.mongodb_database)
        await runtime.make_indexes(services)
        await shared.publish(services)
        await ensure_demo(services)
        await ensure_standing_jobs(services, features.STANDING_JOBS)
        async with sequencing(services):
            await until(lambda: _is_numbered(services), "all changes are numbered")
        identity = await identities.find_by_email(services, EMAIL)
        assert identity is not None
        owner = await team.load_principal(services, identity.subject_id)
        assert owner is not None
        yield Context(services).acting_as(owner)
        await services.db.client.drop_database(own.mongodb_database)


@pytest.fixture
async def new_ctx(settings: Settings) -> AsyncIterator[Context]:
    """The owner of a new company with six clients, on a database of its own with numbered changes."""
    own = settings.model_copy(update={"mongodb_database": f"{settings.mongodb_database}_new"})
    async with runtime.open_services(own) as services:
        await services.db.client.drop_database(own.mongodb_database)
        await runtime.make_indexes(services)
        owner = await team.create_company(Context(services), "One", "Olga", "olga@doctor.test", "no hash")
        ctx = Context(services).acting_as(owner)
        for number in range(6):
            await creation.create_customer(ctx, {"name": f"Client {number}"})
        async with sequencing(services):
            await until(lambda: _is_numbered(services), "all changes are numbered")
        assert findings_of(await check(services)) == []
        yield ctx
        await services.db.client.drop_database(own.mongodb_database)


async def _is_numbered(services: Services) -> bool:
    return await services.db["changes"].count_documents({"pending": True}) == 0


async def check(services: Services, *names: str, **options: Any) -> list[CheckResult]:
    return await run_checks(services, [CHECKS[name] for name in names] or features.CHECKS, **options)


def findings_of(results: list[CheckResult]) -> list[tuple[str, Finding]]:
    """All findings by check, except the notice about the mongod that the tests run on."""
    assert [result.error for result in results if result.error] == []
    return [
        (result.check.name, finding)
        for result in results
        for finding in result.findings
        if result.check.name != "database-version"
    ]


async def test_version_of_the_database_is_reported_as_a_notice(ctx: Context) -> None:
    version = (await ctx.db.client.server_info())["version"]
    remark = remark_on(version, now().date())
    expected = [Finding(remark.problem, 1, version, remark.advice, is_notice=True)] if remark else []
    [result] = await check(ctx.services, "database-version")
    assert (result.findings, result.error) == (expected, None)


async def test_demo_company_is_clean(ctx: Context) -> None:
    results = await check(ctx.services)
    assert findings_of(results) == []
    read = {result.check.name for result in results if result.documents}
    assert {"references", "files-missing", "files-bytes", "change-numbers"} <= read


async def test_no_other_collection_refers_to_files(ctx: Context) -> None:
    """Files of a collection that does not declare them would be reported as unreferenced."""
    for name in declared_collections().keys() - set(holding_collections()) - {"changes", "changeParts"}:
        async for document in ctx.db[name].find({}):
            assert not any(f"'{field}'" in str(document) for field in FILE_FIELDS), name


# --- planted damage --------------------------------------------------------------------------------------------------


async def drop_index(ctx: Context) -> None:
    await ctx.db["notes"].drop_index("companyId_customerId_-createdAt_-_id")


async def miscount_clients(ctx: Context) -> None:
    await ctx.db["customerTotals"].update_one({"companyId": ctx.company_id}, {"$inc": {"active": 2, "archived": -1}})


async def miscount_files(ctx: Context) -> None:
    where = {"_id": ctx.company_id, "companyId": ctx.company_id}
    await ctx.db["fileTotals"].update_one(where, {"$inc": {"files": 1, "bytes": -5}}, upsert=True)


async def lose_client_counts(ctx: Context) -> None:
    await ctx.db["customerTotals"].delete_many({"companyId": ctx.company_id})


async def miscount_groups(ctx: Context) -> None:
    await ctx.db["groupTotals"].update_one({"companyId": ctx.company_id}, {"$inc": {"active": 2, "archived": -1}})


async def lose_group_counts(ctx: Context) -> None:
    await ctx.db["groupTotals"].delete_many({"companyId": ctx.company_id})


async def change_totals(ctx: Context) -> None:
    await ctx.db["workoutBlocks"].update_one({"done.sets": {"$gt": 0}}, {"$inc": {"done.sets": 1}})


async def lower_plan_counter(ctx: Context) -> None:
    await ctx.db["planCounters"].update_one({}, {"$set": {"version": -1}})


async def lose_plan_counter(ctx: Context) -> None:
    await ctx.db["planCounters"].delete_many({})


async def miscount_messages(ctx: Context) -> None:
    await ctx.db["conversations"].update_one({}, {"$inc": {"unread.client": 3}})


async def hide_unread_conversation(ctx: Context) -> None:
    await ctx.db["conversations"].update_one({"isUnread": True}, {"$set": {"isUnread": False}})


async def lower_change_counter(ctx: Context) -> None:
    await ctx.db["changeCounters"].update_one({"_id": ctx.company_id}, {"$inc": {"lastSeq": -5}})


async def lose_number(ctx: Context) -> None:
    await ctx.db["changeNumbers"].update_one({"companyId": ctx.company_id}, {"$pop": {"changes": 1}})


async def confuse_number(ctx: Context) -> None:
    await ctx.db["changeNumbers"].update_one({"companyId": ctx.company_id}, {"$inc": {"changes.0.lastSeq": 100_000}})


async def cut_number_batch(ctx: Context) -> None:
    await ctx.db["changeNumbers"].update_one({"companyId": ctx.company_id}, {"$inc": {"last": -1}})


async def block_job(ctx: Context) -> None:
    job = new_job(ctx, attempts=1, lease="of a process that is gone", runAfter=now() + timedelta(days=3))
    await ctx.db["jobs"].insert_one(job)


async def interrupt_upload(ctx: Context) -> None:
    file = await ctx.db["fs.files"].find_one({})
    assert file is not None
    upload = {**file, "_id": ObjectId(), "pending": True, "uploadDate": LONG_AGO}
    await ctx.db["fs.files"].insert_one(upload)
    await ctx.db["fs.chunks"].insert_one({"files_id": upload["_id"], "n": 0, "data": b"x"})


async def leave_chunks(ctx: Context) -> None:
    file_id = ObjectId.from_datetime(LONG_AGO)
    await ctx.db["fs.chunks"].insert_many([{"files_id": file_id, "n": number, "data": b"x"} for number in range(2)])


def new_job(ctx: Context, vault: Vault | None = None, **fields: Any) -> dict[str, Any]:
    """A queued mail that is due in a minute."""
    identifier = ObjectId()
    content: mail.MailContent = {"to": "a@b.test", "subject": "s", "text": "t", "body": None}
    sealed = mail.seal_content(vault or ctx.services.vault, identifier, content)
    return {
        "_id": identifier,
        "companyId": ctx.company_id,
        "about": None,
        "kind": mail.SEND,
        "arguments": {"sealed": sealed, "tries": 0},
        "runAfter": now() + timedelta(minutes=1),
        "attempts": 0,
        "lease": None,
        "createdAt": now(),
    } | fields


REPAIRED: list[tuple[str, Damage, int]] = [
    ("indexes-missing", drop_index, 1),
    ("client-numbers", miscount_clients, 1),
    ("client-numbers", lose_client_counts, 1),
    ("group-numbers", miscount_groups, 1),
    ("group-numbers", lose_group_counts, 1),
    ("file-totals", miscount_files, 1),
    ("workout-totals", change_totals, 1),
    ("plan-numbers", lower_plan_counter, 1),
    ("plan-numbers", lose_plan_counter, 2),
    ("unread-messages", miscount_messages, 1),
    ("unread-messages", hide_unread_conversation, 1),
    ("change-counters", lower_change_counter, 1),
    ("change-order", lose_number, 1),
    ("change-order", confuse_number, 1),
    ("change-order", cut_number_batch, 1),
    ("jobs-blocked", block_job, 1),
    ("files-orphaned", interrupt_upload, 1),
    ("files-orphaned", leave_chunks, 1),
]


@pytest.mark.parametrize(("name", "damage", "count"), REPAIRED, ids=[damage.__name__ for _, damage, _ in REPAIRED])
async def test_damage_is_found_and_repaired(ctx: Context, name: str, damage: Damage, count: int) -> None:
    await damage(ctx)
    [(seen, finding)] = findings_of(await check(ctx.services, name))
    assert (seen, finding.count, finding.is_notice) == (name, count, False)
    assert finding.example
    assert finding.advice

    [result] = await check(ctx.services, name, repairing=True)
    assert (result.findings, result.repaired, result.error) == ([], [finding], None)
    assert findings_of(await check(ctx.services, name)) == []


class Restored:
    """Documents that a test changes and that are stored again at its end."""

    def __init__(self, ctx: Context) -> None:
        self.ctx, self._documents, self._inserted = ctx, list[tuple[str, dict[str, Any]]](), list[tuple[str, Any]]()

    async def change(self, collection: str, where: dict[str, Any], change: dict[str, Any]) -> ObjectId:
        """Change one document, and return its identifier."""
        document = await self.ctx.db[collection].find_one(where)
        assert document is not None, collection
        self._documents.append((collection, document))
        await self.ctx.db[collection].update_one({"_id": document["_id"]}, change)
        return document["_id"]  # type: ignore[no-any-return]

    async def delete(self, collection: str, where: dict[str, Any]) -> ObjectId:
        """Delete one document, and return its identifier."""
        document = await self.ctx.db[collection].find_one_and_delete(where)
        assert document is not None, collection
        self._documents.append((collection, document))
        return document["_id"]  # type: ignore[no-any-return]

    async def insert(self, collection: str, document: dict[str, Any]) -> None:
        """Store a new document."""
        inserted = await self.ctx.db[collection].insert_one(document)
        self._inserted.append((collection, inserted.inserted_id))

    async def restore(self) -> None:
        """Store the documents again as they were."""
        for collection, identifier in self._inserted:
            await self.ctx.db[collection].delete_one({"_id": identifier})
        for collection, document in reversed(self._documents):
            await self.ctx.db[collection].replace_one({"_id": document["_id"]}, document, upsert=True)


@pytest.fixture
async def restored(ctx: Context) -> AsyncIterator[Restored]:
    """Changes that are undone, and leave the database clean."""
    instance = Restored(ctx)
    yield instance
    await instance.restore()
    assert findings_of(await check(ctx.services)) == []


async def reported(ctx: Context, name: str, *, options: dict[str, bool] | None = None) -> list[Finding]:
    """What a check reports, that a repair does not change."""
    findings = [finding for _, finding in findings_of(await check(ctx.services, name))]
    [result] = await check(ctx.services, name, repairing=True, **(options or {}))
    assert (result.findings, result.repaired) == (findings, [])
    return findings


async def test_broken_references_are_reported(ctx: Context, restored: Restored) -> None:
    note = await restored.change("notes", {}, {"$set": {"customerId": ObjectId()}})
    block = await restored.change(
        "workoutBlocks", {"items.type": "EXERCISE"}, {"$set": {"items.0.exerciseId": ObjectId()}}
    )
    of_other_company = {"_id": ObjectId(), "companyId": ObjectId(), "version": 0}
    await restored.insert("metricSets", of_other_company)
    entry = await restored.change("metricEntries", {}, {"$set": {"metricsSetId": of_other_company["_id"]}})
    trainer = await restored.change("customers", {}, {"$set": {"customerRoleData.assignedTo": ObjectId()}})

    findings = await reported(ctx, "references")
    assert {(finding.problem, finding.count, finding.example) for finding in findings} == {
        ("Documents of notes whose customerId is not in customers", 1, str(note)),
        ("Documents of workoutBlocks whose items.exerciseId is not in exercises", 1, str(block)),
        ("Documents of metricEntries whose metricsSetId is not in metricSets", 1, str(entry)),
        ("Documents of customers whose customerRoleData.assignedTo is not in coaches", 1, str(trainer)),
    }
    [company] = await reported(ctx, "companies")
    assert (company.example, company.count) == (str(of_other_company["companyId"]), 1)


async def test_lost_and_damaged_files_are_reported(ctx: Context, restored: Restored) -> None:
    """Files without a record are deleted only when the operator says so."""
    photos = await ctx.db["progressPhotos"].find_one({"sides.front": {"$exists": True}})
    plan = await ctx.db["planVersions"].find_one({})
    assert photos is not None
    assert plan is not None
    await restored.delete("fs.files", {"_id": photos["sides"]["front"]["thumbnailId"]})
    await restored.delete("fs.chunks", {"files_id": plan["fileId"]})

    [missing] = await reported(ctx, "files-missing")
    assert (missing.count, missing.example) == (1, str(photos["_id"]))
    [short] = await reported(ctx, "files-bytes")
    assert (short.count, short.example) == (1, str(plan["fileId"]))


async def test_files_without_a_record_are_deleted_only_on_request(ctx: Context) -> None:
    file = await ctx.db["fs.files"].find_one({})
    assert file is not None
    unreferenced = {**file, "_id": ObjectId(), "uploadDate": LONG_AGO, "length": 1}
    recent = {**unreferenced, "_id": ObjectId(), "uploadDate": now()}
    await ctx.db["fs.files"].insert_many([unreferenced, recent])
    await ctx.db["fs.chunks"].insert_many(
        [{"files_id": each["_id"], "n": 0, "data": b"x"} for each in (unreferenced, recent)]
    )
    [finding] = await reported(ctx, "files-unreferenced")
    assert (finding.count, finding.example) == (1, str(unreferenced["_id"]))

    [result] = await check(ctx.services, "files-unreferenced", repairing=True, deleting_files=True)
    assert (result.findings, result.repaired) == ([], [finding])
    assert await ctx.db["fs.chunks"].count_documents({"files_id": unreferenced["_id"]}) == 0
    assert await ctx.db["fs.files"].count_documents({}) == 1 + len(await ctx.db["fs.chunks"].distinct("files_id")) - 1
    await ctx.db["fs.files"].delete_one({"_id": recent["_id"]})
    await ctx.db["fs.chunks"].delete_one({"files_id": recent["_id"]})


async def test_wrong_numbers_of_changes_are_reported(new_ctx: Context) -> None:
    """A gap is a loss, unless clients were deleted: their changes are erased."""
    changes = new_ctx.db["changes"]
    numbered = await changes.find({}).sort("lastSeq", 1).to_list(None)
    await changes.delete_one({"_id": numbered[2]["_id"]})
    await changes.update_one({"_id": numbered[5]["_id"]}, {"$set": {"seq": numbered[4]["lastSeq"]}})
    lost, repeated = await reported(new_ctx, "change-numbers")
    assert (lost.problem, lost.count, lost.example) == ("Numbers that no change has", 1, str(numbered[3]["_id"]))
    assert (repeated.problem, repeated.example) == ("Numbers that several changes have", str(numbered[5]["_id"]))
    await changes.delete_one({"_id": numbered[-1]["_id"]})
    [ahead] = await reported(new_ctx, "change-counters")
    assert (ahead.problem, ahead.example) == ("Counters ahead of the last number", str(new_ctx.company_id))

    await changes.update_one({"_id": numbered[5]["_id"]}, {"$set": {"seq": numbered[5]["seq"]}})
    deleted = {"collection": "customers", "action": "deleted"}
    await changes.update_one({"_id": numbered[0]["_id"]}, {"$push": {"documents": deleted}})
    [notice] = await reported(new_ctx, "change-numbers")
    assert (notice.is_notice, notice.count) == (True, 1)
    assert await reported(new_ctx, "change-counters") == []


async def test_lost_batches_of_numbers_are_built_again(new_ctx: Context) -> None:
    stored = new_ctx.db["changeNumbers"]
    complete = await history.list_numbered(new_ctx, 0, 10, since=LONG_AGO)
    await stored.delete_many({})
    old = await new_ctx.db["changes"].find_one({}, sort=[("lastSeq", -1)])
    assert old is not None
    gone = {"$set": {"createdAt": now() - timedelta(days=31)}}  # its event is no longer available
    await new_ctx.db["changes"].update_one({"_id": old["_id"]}, gone)
    [(_, finding)] = findings_of(await check(new_ctx.services, "change-order"))
    assert (finding.problem, finding.count) == ("Changes that events leave out", len(complete.changes) - 1)
    [result] = await check(new_ctx.services, "change-order", repairing=True)
    assert (result.findings, result.repaired) == ([], [finding])
    repaired = await history.list_numbered(new_ctx, 0, 10, since=LONG_AGO)
    assert repaired.changes == complete.changes[:-1]
    [batch] = await stored.find({}).to_list(None)
    assert (batch["first"], batch["last"]) == (1, old["seq"] - 1)


async def test_changes_without_a_number_are_reported(new_ctx: Context) -> None:
    change = await creation.create_customer(new_ctx, {"name": "Pending"})
    assert await reported(new_ctx, "change-log") == [], "it is younger than a minute"
    [finding] = [each async for each in find_unnumbered(new_ctx.services, lambda _: None, seconds=-1)]
    assert finding.count == 1
    assert change["_id"]


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
    async def begin(tx: Context, file: StoredFile) -> StoredCompanyJob:
        job = await company_import.begin(tx, file, dry_run=False)
        await files.attach(tx, file)
        return job

    async def upload() -> StoredCompanyJob:
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
    ended = await background_jobs.read_with_work(ctx, job["_id"])
    assert (ended["status"], len(ended["errors"])) == ("failed", 1)
    assert ended["work"]["fileId"] is None
    assert await ctx.db["fs.files"].count_documents({"contentType": CSV}) == 0
    await company_import.end_abandoned(ctx.services)
    again = await upload()
    await ctx.db["jobs"].delete_one({"arguments.jobId": again["_id"]})
    await company_import.end_abandoned(ctx.services)
    assert findings_of(await check(ctx.services, "imports", "files-missing", "files-unreferenced", "file-totals")) == []


async def test_sandboxes_of_no_company_are_reported(ctx: Context, restored: Restored) -> None:
    sandbox = {"_id": ObjectId(), "sandboxOf": ctx.company_id, "createdAt": now()}
    await restored.insert("companies", sandbox | {"companyId": sandbox["_id"]})
    [finding] = await reported(ctx, "sandboxes")
    assert (finding.count, finding.example) == (1, str(sandbox["_id"]))
    await restored.change("companies", {"_id": ctx.company_id}, {"$set": {"sandboxId": sandbox["_id"]}})
    assert await reported(ctx, "sandboxes") == []
    await restored.delete("companies", {"_id": ctx.company_id})
    assert len(await reported(ctx, "sandboxes")) == 1


async def test_secrets_that_no_key_opens_are_reported(ctx: Context, restored: Restored) -> None:
    """Each of them is encrypted with another key; a changed byte is found too."""
    other = Vault([parse_master_key(new_master_key())])
    await restored.insert("jobs", new_job(ctx, other))
    await restored.insert(
        "webhooks", {"companyId": ctx.company_id, "slot": 99, "secrets": [{"sealed": other.seal(b"x", "x")}]}
    )
    await restored.insert("replays", {"companyId": ctx.company_id, "answer": other.seal(b"x", "x"), "createdAt": now()})
    key = await ctx.db["apiKeys"].find_one({})
    assert key is not None
    changed = key["sealed"][:-1] + bytes([key["sealed"][-1] ^ 1])
    await restored.change("apiKeys", {"_id": key["_id"]}, {"$set": {"sealed": changed}})
    for name in ("secrets-mail", "secrets-webhooks", "secrets-responses", "secrets-keys"):
        [finding] = await reported(ctx, name)
        assert finding.count == 1, name


async def test_other_and_unused_indexes_are_reported(ctx: Context) -> None:
    await ctx.db["notes"].create_index("made_by_hand")
    [finding] = await reported(ctx, "indexes-undeclared")
    assert (finding.count, finding.example) == (1, "notes.made_by_hand_1")
    await ctx.db["notes"].drop_index("made_by_hand_1")
    [unused] = [each async for each in find_unused(ctx.services, lambda _: None, timedelta(0))]
    assert unused.is_notice
    assert unused.count > 1


async def test_check_that_cannot_run_does_not_stop_the_others(ctx: Context) -> None:
    async def fail(*_: object) -> AsyncIterator[Finding]:
        raise RuntimeError("no privilege")
        yield  # an iterator

    failing, other = await run_checks(ctx.services, [Check("x", "X", fail), CHECKS["client-numbers"]])
    assert (failing.error, failing.findings, other.error) == ("no privilege", [], None)


async def test_erasures_in_progress_are_no_findings(ctx: Context) -> None:
    """The last of these tests: what a deleted client leaves is erased step by step."""
    note = await ctx.db["notes"].find_one({})
    assert note is not None
    await customers.erase(ctx, note["customerId"])
    erase = {ERASE_CUSTOMER: features.STEPS[ERASE_CUSTOMER]}
    steps = 0
    while await worker.run_due(ctx.services, erase, at=now() + timedelta(minutes=5), limit=1):
        steps += 1
        checked = ("references", "companies", "files-missing", "files-unreferenced", "client-numbers")
        assert findings_of(await check(ctx.services, *checked)) == []
    assert steps > 3
    async with sequencing(ctx.services):
        await until(lambda: _is_numbered(ctx.services), "all changes are numbered")
    [(name, finding)] = findings_of(await check(ctx.services))
    assert (name, finding.is_notice) == ("change-numbers", True)
