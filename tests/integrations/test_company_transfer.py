"""Export of a company, and its import into another one."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import aiohttp
import pytest

from coaching_service import features
from coaching_service.core.auth import ALL_PERMISSIONS
from coaching_service.core.database.context import Context
from coaching_service.core.database.declared import NotExported
from coaching_service.core.database.documents import registry
from coaching_service.core.fields import names_of
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.company_export import portable_collections
from coaching_service.integrations.company_import import _archive_reader
from coaching_service.integrations.company_import import service as company_import
from coaching_service.integrations.history_import.importing import Progress
from coaching_service.integrations.history_import.models import ImportWork
from coaching_service.people import jobs
from coaching_service.people.account import AccountDetails
from coaching_service.people.customers import batch
from coaching_service.people.jobs import Superseded
from tests.conftest import NewCompany
from tests.contract.test_examples import train
from tests.support.client import CoachClient
from tests.support.declared_world import World, make_world, small_picture
from tests.support.sampled import some
from tests.support.training import employee_key
from tests.support.transfer import Entries, export, import_file, make_zip, records, run, send, with_records


async def _add_details(coach: CoachClient, world: World) -> None:
    """What `make_world` does not create."""
    client = f"/coach/customers/{world['customerId']}"
    shared = (await coach.get("/exercises/unified", pageSize=1, pageNum=1, keywords="back squat", type="public")).ok()
    override = {"videoLink": "https://video.example.com/squat", "aliases": ["Box squat"]}
    (await coach.put(f"/exercises/{shared['docs'][0]['_id']}/override", override)).ok()
    (await coach.put(f"{client}/training-maxes/{world['exerciseId']}", {"value": 100})).ok()
    (await coach.put(f"/coach/attention/{world['customerId']}", {"reason": "nothing_scheduled"})).ok()
    hidden = {"startDate": "2026-03-02", "endDate": "2026-03-03", "isVisible": False}
    (await coach.put(f"{client}/visibility", hidden)).ok()
    value = {"metricId": world["metricId"], "date": "2026-03-02", "value": 70.5}
    (await coach.post(f"{client}/metrics-sets/{world['metricsSetId']}/entries", value)).ok(201)
    photo = aiohttp.FormData(default_to_multipart=True)
    photo.add_field("profilePhotoFile", small_picture(), filename="me.png")
    (await coach.send("PUT", f"{client}/profile-photo", data=photo)).ok()


@dataclass
class Source:
    """A company with records of every kind, and its export; its tests only read it."""

    coach: CoachClient
    entries: Entries
    feed: list[dict[str, Any]]
    changes: list[dict[str, Any]]
    stranger: dict[str, Any]


@pytest.fixture(scope="module")
async def source(new_company: NewCompany) -> Source:
    """A company with records of every kind, next to another one with a client."""
    stranger = await (await new_company()).create_customer("Stranger")
    coach = await new_company()
    world = await make_world(coach)
    await train(coach, world)
    await _add_details(coach, world)
    last = await coach.post(f"/coach/customers/{world['customerId']}/notes", {"content": "Knee"})
    await coach.wait_until_numbered(last.headers["X-Change-Id"])  # then the history has all changes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("coaching_service.integrations.company_export._PAGE", 4)
        entries = await export(coach)
    feed = (await coach.get("/coach/activity-feed", limit=100)).ok()["docs"]
    changes = (await coach.get("/coach/changes", limit=100)).ok()["docs"]
    return Source(coach, entries, feed, changes, stranger)


def test_exported_collection_without_a_history_needs_a_reason() -> None:
    """Add `history=History(...)` or `no_history_reason="..."` to the declaration of a new collection."""
    with pytest.raises(RuntimeError, match="needs a history"):
        replace(registry["notes"], history=None)
    with pytest.raises(RuntimeError, match="needs a history"):
        replace(registry["planCounters"], no_history_reason="")
    assert {name for name, each in registry.items() if each.no_history_reason} == {
        "conversations",
        "importedNames",
        "planCounters",
    }


def test_every_collection_declares_how_it_is_exported() -> None:
    """Add `transfer=Portable(...)`, or `NotExported(reason)`, to the declaration of a new collection."""
    undeclared = [name for name, each in registry.items() if each.transfer is None]
    assert undeclared == []
    of_clients = {
        name
        for name, each in registry.items()
        if each.client_field and not each.secret and isinstance(each.transfer, NotExported)
    }
    not_exported = {
        "audit",
        "bodyWeights",
        "changes",
        "companyJobs",
        "pendingAttachments",
        "searchTexts",
        "waitingMessages",
    }
    assert of_clients == not_exported, "data of clients that is not exported"


async def test_every_stored_field_is_exported_or_computed_again(source: Source) -> None:
    """A new field of a stored document belongs to its TypedDict, or to `extra` or `computed` of its declaration."""
    for name, collection, portable in portable_collections():
        async for document in collection.stream_own(source.coach.ctx):
            lost = set(document) - set(portable.exported_fields) - set(portable.computed) - _DERIVED - _METADATA
            assert lost == set(), f"{name}: {lost}"


# Fields that are computed when a document is imported, and counters that only make transactions conflict.
_DERIVED = {"sortName", "search", "searchNames", "searchAliases", "suf", "done", "scheduleChanges"}
_METADATA = {"companyId", "updatedAt", "version"}


async def test_an_export_has_no_secrets_and_no_data_of_others(source: Source) -> None:
    entries = source.entries
    text = b"".join(entries.values())

    assert str(source.coach.key).encode() not in text
    for word in (b"hash", b"sealed", b"assword", b"token", b"cs_ak_", source.stranger["_id"].encode(), b"Stranger"):
        assert word not in text, word
    manifest = json.loads(entries["manifest.json"])
    assert (manifest["format"], manifest["version"]) == ("coaching-service-company", 1)
    for entry in manifest["entries"]:
        assert hashlib.sha256(entries[entry["name"]]).hexdigest() == entry["sha256"]
        assert len(entries[entry["name"]]) == entry["bytes"]
    assert {entry["name"] for entry in manifest["entries"]} == entries.keys() - {"manifest.json"}


async def test_an_export_has_all_settings_and_its_import_sends_nothing(
    coach: CoachClient, new_company: NewCompany
) -> None:
    """The settings of the company and of its coaches; what the import changes cannot be undone."""
    changed = {
        "companyName": "Moved",
        "timezone": "Asia/Tokyo",
        "loadUnit": "lb",
        "notifications": {"messages": False},
        "attention": {"inactiveDays": 9, "complianceBelow": 50, "horizonDays": 5},
        "clientsMayImport": False,
        "clientsMayMove": False,
        "clientsMayAdd": False,
    }
    # An import does not require a second factor of coaches who have none there.
    assert {*changed, "requireSecondFactor"} == set(names_of(AccountDetails))
    target = await new_company()
    before = (await target.get("/coach/account")).ok()
    assert not [name for name in changed if before[name] == changed[name]]
    (await coach.patch("/coach/account", changed)).ok()
    await coach.create_customer("Ana", email="ana@example.com", sendInvitation=False)
    session = await coach.interactive()
    (await session.patch("/me", {"notifications": {"digest": {"mail": False}, "digestHour": 9}})).ok()
    entries = await export(coach)
    (owner,) = [json.loads(line) for line in entries["coaches.jsonl"].splitlines()]
    assert owner["notifications"] == (await coach.get("/me")).ok()["notifications"]
    assert owner["notifications"]["digest"] == {"mail": False, "push": True}

    job = await import_file(target, make_zip(entries))

    assert job["status"] == "done"
    after = (await target.get("/coach/account")).ok()
    assert {name: after[name] for name in changed} == changed
    of_target = {"companyId": target.ctx.company_id}
    stored = await target.ctx.db["changes"].find(of_target).to_list(None)
    changes = {(each["operation"], each["undoable"], each["actor"]["type"]) for each in stored}
    assert changes == {("importCompany", False, "key")}
    assert await target.ctx.db["jobs"].count_documents({**of_target, "kind": "send_mail"}) == 0
    assert await target.ctx.db["fs.files"].count_documents(of_target) == 0, "the uploaded archive is deleted"


async def test_an_export_has_activity_and_history_to_read(source: Source) -> None:
    """It was read in pages of four; a page of the API has at most 100."""
    exported = [json.loads(line) for line in source.entries["activity.jsonl"].splitlines()]
    assert exported[:100] == source.feed
    history = [json.loads(line) for line in source.entries["history.jsonl"].splitlines()]
    read = [(each["_id"], each["summary"]) for each in source.changes]
    read = read[[name for name, _ in read].index(history[0]["_id"]) :]  # figures may be renewed after the export
    assert [(each["_id"], each["summary"]) for each in history[: len(read)]] == read
    assert len(exported) > 5 < len(history)


async def test_only_the_owner_may_export_import_and_read_jobs(coach: CoachClient, other_company: CoachClient) -> None:
    employee = coach.with_key(await employee_key(coach, *sorted(ALL_PERMISSIONS), scope="all"))
    job = await import_file(coach, b"name\nAna\n", name="clients.csv")

    (await employee.get("/coach/export")).refused(403)
    (await send(employee, b"PK\x03\x04")).refused(403)
    (await employee.get(f"/coach/jobs/{job['_id']}")).refused(403)
    (await other_company.get(f"/coach/jobs/{job['_id']}")).refused(404)


async def test_authors_are_coaches_with_the_same_address_or_not_in_the_company(
    coach: CoachClient, new_company: NewCompany
) -> None:
    """The importer neither appears as the author of what another person wrote, nor may change such a message."""
    customer = await coach.create_customer()
    (await coach.post(f"/coach/customers/{customer['_id']}/notes", {"content": "Knee"})).ok(201)
    (await coach.post(f"/coach/customers/{customer['_id']}/messages", {"text": "Hello"})).ok(201)
    entries = await export(coach)
    (owner,) = [json.loads(line) for line in entries["coaches.jsonl"].splitlines()]
    for is_same in (False, True):
        target = await new_company()
        (own,) = [json.loads(line) for line in (await export(target))["coaches.jsonl"].splitlines()]
        email = own["email"].upper() if is_same else owner["email"]
        coaches = json.dumps({**owner, "email": email}).encode()
        await import_file(target, make_zip({**entries, "coaches.jsonl": coaches}))
        (imported,) = (await target.customers())["docs"]
        client = f"/coach/customers/{imported['_id']}"
        (note,) = (await target.get(f"{client}/notes")).ok()
        (message,) = (await target.get(f"{client}/messages")).ok()["docs"]
        for author in (note["author"], message["author"]):
            assert (author["name"], author["_id"] == own["_id"]) == (owner["name"], is_same)
        changed = await target.patch(f"{client}/messages/{message['_id']}", {"text": "Hi"})
        assert changed.status == (200 if is_same else 403)


async def test_a_dry_run_reports_the_same_and_stores_nothing(source: Source, new_company: NewCompany) -> None:
    """The activity and the history of the export are not imported."""
    content = make_zip(source.entries)
    target = await new_company()

    preview = await import_file(target, content, dry_run=True)
    assert (await target.customers())["totalDocs"] == 0
    assert await target.ctx.db["fs.files"].count_documents({"companyId": target.ctx.company_id}) == 0
    imported = await import_file(target, content)

    assert preview["status"] == imported["status"] == "done"
    assert preview["result"] == {**imported["result"], "dryRun": True}
    assert preview["errors"] == imported["errors"]
    operations = {each["operation"] for each in (await target.get("/coach/changes", limit=100)).ok()["docs"]}
    assert operations - {*features.STEPS} == {"importCompany"}, "figures may be renewed by now"
    assert (await target.get("/coach/activity-feed", limit=100)).ok()["docs"] == []


@pytest.mark.parametrize("steps", some(["other processes", "one process", "one step"], 1))
async def test_a_dry_run_reports_what_collides_in_the_file_and_in_the_company(
    coach: CoachClient, new_company: NewCompany, monkeypatch: pytest.MonkeyPatch, steps: str
) -> None:
    """With the records that refer to what is left out; also if another process continues it after each record."""
    shared = (await coach.get("/exercises/unified", pageSize=1, pageNum=1, keywords="back squat", type="public")).ok()
    override = f"/exercises/{shared['docs'][0]['_id']}/override"
    target = await new_company()
    for company in (coach, target):
        (await company.put(override, {"aliases": ["Box squat"]})).ok()
        await company.create_customer("Ana", externalId="crm-1")
        await company.create_exercise("Squat", externalId="ex-1")
    taken = (await coach.customers())["docs"][0]
    other = await coach.create_customer("Bo", externalId="crm-2")
    for customer in (taken, other):
        (await coach.post(f"/coach/customers/{customer['_id']}/notes", {"content": "Knee"})).ok(201)
        (await coach.post(f"/coach/customers/{customer['_id']}/messages", {"text": "Hello"})).ok(201)
    entries = await export(coach)
    ana, bo = records(entries, "customers")
    first, second = records(entries, "notes")
    same_external_id, same_id = {**bo, "_id": "a" * 24}, {**bo, "externalId": "crm-3"}
    again, of_left_out = {**second, "_id": first["_id"]}, {**second, "_id": "b" * 24, "customerId": "a" * 24}
    invalid = {**bo, "_id": "c" * 24, "externalId": "crm-4", "email": "no address"}
    valid = {**invalid, "email": None}
    entries = with_records(entries, "customers", ana, bo, same_external_id, same_id, invalid, valid)
    entries = with_records(entries, "notes", first, second, of_left_out, {**again, "customerId": bo["_id"]}, second)
    if steps != "one step":
        monkeypatch.setattr(company_import, "_STEP_SECONDS", 0)
        monkeypatch.setattr("coaching_service.integrations.company_import._archive_import.BATCH", 1)
    if steps == "other processes":
        monkeypatch.setattr(
            company_import._Open, "keep", company_import._Open.close
        )  # another process goes on without the file

    preview = await import_file(target, make_zip(entries), dry_run=True)
    imported = await import_file(target, make_zip(entries))

    assert preview["errors"] == imported["errors"]
    assert preview["result"] == {**imported["result"], "dryRun": True}
    assert [
        (error["entry"], error["field"]) for error in imported["errors"] if error["entry"] != "coaches.jsonl:2"
    ] == [
        ("records/exercises.jsonl:1", "externalId"),
        ("records/exerciseOverrides.jsonl:1", None),
        ("records/customers.jsonl:1", "externalId"),
        ("records/customers.jsonl:3", "externalId"),
        ("records/customers.jsonl:4", "_id"),
        ("records/customers.jsonl:5", "email"),
        ("records/messages.jsonl:1", "customerId"),
        ("records/notes.jsonl:1", "customerId"),
        ("records/notes.jsonl:3", "customerId"),
        ("records/notes.jsonl:5", "_id"),
        ("records/conversations.jsonl:1", "customerId"),
    ]
    assert imported["result"]["imported"] == {"customers": 2, "messages": 1, "notes": 2, "conversations": 1}


def test_the_unique_indexes_of_portable_collections_are_those_that_a_dry_run_understands() -> None:
    for name, collection, _ in portable_collections():
        for index in _archive_reader.unique_indexes(collection):
            assert index.partial_filter in ((), (("externalId", {"$gt": ""}),)), name
            assert not index.ignore_case, name


async def test_an_import_that_is_interrupted_continues_without_doubling(
    coach: CoachClient, new_company: NewCompany, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        await coach.schedule(await coach.create_customer(f"Client {number}"))
    content = make_zip(await export(coach))
    target = await new_company()
    monkeypatch.setattr("coaching_service.integrations.company_import._archive_import.BATCH", 2)
    job = (await send(target, content)).ok(202)
    (await send(target, content)).refused(409, "not finished")
    steps = Interrupted(target)

    while job["status"] in ("queued", "running"):
        await steps.run()
        job = (await target.get(f"/coach/jobs/{job['_id']}")).ok()

    assert steps.interruptions > 2
    assert job["result"]["imported"] == {"customers": 6, "workoutBlocks": 6}
    assert await target.names() == [f"Client {number}" for number in range(6)]
    blocks = await target.ctx.db["workoutBlocks"].count_documents({"companyId": target.ctx.company_id})
    assert blocks == 6
    assert (await target.customers(pageSize=1))["totalDocs"] == 6


class Interrupted:
    """Runs steps of imports that fail in every second transaction, before or after its commit."""

    def __init__(self, coach: CoachClient) -> None:
        self.coach, self.interruptions, self._transactions = coach, 0, 0

    async def run(self) -> None:
        """Run one step until it fails or ends; the job is due again at once."""
        original = Progress._commit

        async def commit(progress: Progress, *arguments: Any) -> None:
            self._transactions += 1
            if self._transactions % 4 == 0:
                self.interruptions += 1
                raise ConnectionError("killed before the commit")
            await original(progress, *arguments)
            if self._transactions % 4 == 2:
                self.interruptions += 1
                raise ConnectionError("killed after the commit")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Progress, "_commit", commit)
            await run(self.coach)
        due = {"$set": {"runAfter": datetime(2020, 1, 1), "attempts": 0}}  # noqa: DTZ001 - stored times are UTC without a time zone
        await self.coach.ctx.db["jobs"].update_many({"kind": "import_company"}, due)


async def test_only_one_of_two_processes_continues_a_job(coach: CoachClient) -> None:
    """Both have read the position of the import; what the second one stores is rolled back."""
    work: ImportWork = {
        "fileId": ObjectId(),
        "fileName": "export.zip",
        "contentType": "application/zip",
        "isDryRun": False,
        "seed": "seed",
        "entry": 0,
        "record": 0,
        "isStarted": True,
        "imported": {},
        "failed": 0,
    }
    stored = await jobs.create(coach.ctx, {"kind": "import", "work": work})
    first, second = [Progress(coach.ctx, await jobs.get_complete(coach.ctx, stored["_id"])) for _ in range(2)]

    async def write(tx: Context) -> None:
        await batch.create_customer(tx, {"name": "Ana"})

    await first.advance((0, 1), 1, {"customers": 1}, (), write)
    with pytest.raises(Superseded):
        await second.advance((0, 1), 1, {"customers": 1}, (), write)

    assert await coach.names() == ["Ana"]
    assert (await coach.get(f"/coach/jobs/{stored['_id']}")).ok()["done"] == 1
