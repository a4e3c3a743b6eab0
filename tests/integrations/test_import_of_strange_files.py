"""Imports of files that are damaged, too large when inflated, or made to harm."""

from __future__ import annotations

import asyncio
import io
import json
import math
import struct
import warnings
import zipfile
from typing import Any

import pytest

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.company_import import _archive_reader
from coaching_service.people import jobs
from tests.conftest import NewCompany
from tests.core.test_uploads import PDF, add, form, picture
from tests.support.client import MONDAY, UNKNOWN, CoachClient
from tests.support.training import block_with, client_path, exercise_of, log, metric_set
from tests.support.transfer import Entries, export, import_file, make_zip, pick, records, send, with_records, with_sums


@pytest.fixture(scope="module")
async def entries(new_company: NewCompany) -> Entries:
    """The export of a company with a record of each kind that the tests change."""
    coach = await new_company()
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    await block_with(coach, ana, exercise_of(squat))
    (await add(coach, client_path(ana), picture())).ok(201)
    (await coach.send("POST", client_path(ana, "nutrition-plans"), data=form(PDF, "file", "plan.pdf"))).ok(201)
    best = {"exerciseId": squat["_id"], "type": "heaviest_load", "value": 20, "date": MONDAY}
    for path, fields in (("notes", {"content": "Hello"}), ("messages", {"text": "Hello"}), ("personal-records", best)):
        (await coach.post(client_path(ana, path), fields)).ok(201)
    (await coach.post("/coach/forms", {"name": "Check-in", "questions": [{"label": "Well?"}]})).ok(201)
    await metric_set(coach, "Weight")
    return await export(coach)


@pytest.fixture
async def target(new_company: NewCompany) -> CoachClient:
    """An empty company."""
    return await new_company()


async def failure(target: CoachClient, content: bytes) -> dict[str, Any]:
    """The error of an import that fails."""
    job = await import_file(target, content)
    assert job["status"] == "failed"
    error: dict[str, Any] = job["errors"][-1]
    return error


async def problems(target: CoachClient, entries: Entries) -> list[tuple[str, str | None]]:
    """Where the problems of an import are that goes on to its end."""
    job = await import_file(target, make_zip(entries))
    assert job["status"] == "done"
    return [(error["entry"], error["field"]) for error in job["errors"]]


async def test_a_file_that_is_neither_zip_nor_csv_is_refused(target: CoachClient) -> None:
    error = (await send(target, b"\x89PNG\r\n\x1a\n" + bytes(100))).refused(400)
    assert error["errors"][0]["code"] == "UNSUPPORTED_FILE_TYPE"
    assert (await target.send("POST", "/coach/import")).refused(400)["errors"][0]["code"] == "REQUIRED"


@pytest.mark.parametrize("text", ["True", "TRUE", "maybe", "1", "yes", " true", ""])
async def test_a_dry_run_is_true_or_false_and_nothing_else(target: CoachClient, text: str) -> None:
    error = (await send(target, b"name\nAna\n", name="clients.csv", dryRun=text)).refused(400)
    assert pick(error["errors"], "field", "code") == [("dryRun", "INVALID")]
    assert await target.ctx.db["companyJobs"].count_documents({"companyId": target.ctx.company_id}) == 0


async def test_a_damaged_archive_stores_nothing(target: CoachClient, entries: Entries) -> None:
    content = make_zip(entries)
    middle = len(content) // 2
    for damaged in (
        content[:middle],
        content[:middle] + b"\0" * 400 + content[middle + 400 :],
        b"PK\x03\x04" + bytes(9),
    ):
        await failure(target, damaged)
    assert (await target.customers())["totalDocs"] == 0


async def test_an_archive_that_is_no_export_or_of_another_version_is_refused(
    target: CoachClient, entries: Entries
) -> None:
    assert (await failure(target, make_zip({"hello.txt": b"Hello"})))["entry"] == "export.json"
    newer = json.dumps({**json.loads(entries["export.json"]), "version": 2}).encode()
    assert "version" in (await failure(target, make_zip({**entries, "export.json": newer})))["message"]
    broken = json.dumps({**json.loads(entries["account.json"]), "timezone": "Mars"}).encode()
    assert (await failure(target, make_zip({**entries, "account.json": broken})))["entry"] == "account.json"


SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"workoutTime": "7"}, "notifications.workoutTime"),
    ({"messages": True, "quietFrom": "99:99", "quietTo": "07:00"}, "notifications.quietFrom"),
    ({"digestHour": 99}, "notifications.digestHour"),
    ({"messages": None}, "notifications.messages"),
    ({"reminders": {"mail": "x"}}, "notifications.reminders"),
]


async def test_settings_of_notifications_are_validated(coach: CoachClient, target: CoachClient) -> None:
    """Otherwise one client keeps the figures and reminders of a company from being computed."""
    await coach.create_customer()
    entries = await export(coach)
    (client,) = records(entries, "customers")
    clients = [{**client, "_id": str(ObjectId()), "notifications": chosen} for chosen, _ in SETTINGS]
    found = await problems(target, with_records(entries, "customers", *clients))
    assert [entry for entry, _ in found] == [f"records/customers.jsonl:{line}" for line in range(1, len(SETTINGS) + 1)]
    assert all(str(field).startswith(expected) for (_, field), (_, expected) in zip(found, SETTINGS, strict=True))
    assert (await target.customers())["totalDocs"] == 0


async def test_logged_sets_have_the_limits_of_requests(coach: CoachClient, target: CoachClient) -> None:
    block = await block_with(coach, await coach.create_customer(), exercise_of(await coach.create_exercise("Squat")))
    (await log(coach, block, block["items"][0], customerSets=[{"reps": 5, "load": 60}])).ok()
    entries = await export(coach)
    ((block, item, done),) = [
        (block, item, done)
        for block in records(entries, "workoutBlocks")
        for item in block["items"]
        for done in item["customerSets"]
    ]
    amounts = {"reps": 100_001, "load": 100_000.5, "seconds": 86_401, "meters": 10_000_001, "rpe": 10.5, "rir": -1}
    blocks = [
        {**block, "_id": str(ObjectId()), "items": [{**item, "customerSets": [{**done, name: amount}]}]}
        for name, amount in amounts.items()
    ]
    found = await problems(target, with_records(entries, "workoutBlocks", *blocks))
    assert [field for _, field in found] == [f"items.0.customerSets.0.{name}" for name in amounts]


async def test_an_entry_that_inflates_too_much_is_refused(
    target: CoachClient, entries: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = {**entries, "records/notes.jsonl": b"\n" * 10_000_000}
    error = await failure(target, make_zip(bomb))
    assert (error["entry"], "100 times" in error["message"]) == ("records/notes.jsonl", True)
    monkeypatch.setattr(_archive_reader, "MAX_RECORD_BYTES", 1_000)
    long_line = {**entries, "records/notes.jsonl": json.dumps({"content": "a b" * 1_000}).encode()}
    assert "larger than" in (await failure(target, make_zip(long_line)))["message"]
    assert (await target.customers())["totalDocs"] == 0


def with_entry(entries: Entries, info: zipfile.ZipInfo, content: bytes) -> bytes:
    """A ZIP archive of these entries and another one, whatever its name."""
    out = io.BytesIO(make_zip(entries))
    with zipfile.ZipFile(out, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about names that are there already
        archive.writestr(info, content)
    return out.getvalue()


async def test_entries_that_are_no_plain_files_of_an_export_are_refused(target: CoachClient, entries: Entries) -> None:
    """Names are never used as paths; an archive with such names is not one of ours."""
    link = zipfile.ZipInfo("records/notes.jsonl")
    link.external_attr = 0o120777 << 16
    photo = next(name for name in entries if name.startswith("files/"))
    for info, message in (
        (zipfile.ZipInfo("../../etc/passwd"), "outside"),
        (zipfile.ZipInfo("files/..\\..\\x/y"), "outside"),
        (zipfile.ZipInfo("/etc/passwd"), "outside"),
        (link, "link"),
        (zipfile.ZipInfo("records/customers.jsonl"), "twice"),
        (zipfile.ZipInfo(photo), "twice"),
        (zipfile.ZipInfo(f"{photo}.png"), "twice"),
    ):
        without = {name: content for name, content in entries.items() if info is not link or name != info.filename}
        error = await failure(target, with_entry(without, info, b"/etc/passwd"))
        assert (error["entry"], message in error["message"]) == (info.filename, True), error
    assert (await target.customers())["totalDocs"] == 0


async def test_an_archive_that_was_packed_again_is_read_and_what_it_does_not_know_reported(
    target: CoachClient, entries: Entries
) -> None:
    again = {"records/": b"", **entries, "__MACOSX/._records": b"\0", "records/dances.jsonl": b"{}\n"}
    assert await problems(target, again) == [("records/dances.jsonl", None), ("__MACOSX/._records", None)]


async def test_an_archive_with_a_damaged_file_stores_nothing(target: CoachClient, entries: Entries) -> None:
    """The checksum of the last file is only known once all of it is read."""
    plan = next(content for name, content in entries.items() if name.endswith(".pdf"))
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w", zipfile.ZIP_STORED) as archive:
        for name, own in entries.items():
            archive.writestr(name, own)
    content = stored.getvalue().replace(plan, plan[:-1] + b"!")
    error = await failure(target, content)
    assert (error["entry"].endswith(".pdf"), error["message"]) == (True, "is damaged")
    assert (await target.customers())["totalDocs"] == 0
    assert (await target.get("/coach/forms")).ok() == []


async def test_an_archive_with_other_bytes_than_were_exported_stores_nothing(
    target: CoachClient, entries: Entries
) -> None:
    """Files, records and settings are compared with the manifest, which has to be there."""
    plan = next(name for name in entries if name.endswith(".pdf"))
    for changed in (
        {**entries, "records/customers.jsonl": entries["records/customers.jsonl"].replace(b"Ana", b"Bob")},
        {**entries, plan: entries[plan] + b"!"},
        {**entries, "account.json": entries["account.json"] + b" "},
    ):
        (entry,) = [name for name in entries if entries[name] != changed[name]]
        error = await failure(target, make_zip(changed, renew_sums=False))
        assert (error["entry"], "checksum is another one" in error["message"]) == (entry, True)
    added = {**entries, "records/dances.jsonl": b"{}\n"}
    missing = {name: content for name, content in entries.items() if name != plan}
    unsigned = {name: content for name, content in entries.items() if name != "manifest.json"}
    for changed, entry, message in (
        (added, "records/dances.jsonl", "has no checksum"),
        (missing, plan, "is missing"),
        (unsigned, "manifest.json", "is missing"),
        ({**entries, "manifest.json": b'{"entries": [1]}'}, "manifest.json", "is not a list"),
    ):
        error = await failure(target, make_zip(changed, renew_sums=False))
        assert (error["entry"], message in error["message"]) == (entry, True)
    assert (await target.customers())["totalDocs"] == 0


async def test_overlapping_entries_count_together(target: CoachClient, entries: Entries) -> None:
    """Many entries of the directory may refer to the same bytes."""
    out, collections = io.BytesIO(), ("messages", "programs", "forms", "customers", "exercises", "planVersions")
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        blank = b"\n" * 3_000_000
        single = {name: entries[name] for name in ("export.json", "account.json")}
        lists = {f"records/{name}.jsonl": blank for name in ("notes", *collections)}
        for name, content in with_sums({**single, **lists}).items():
            if name not in lists:
                archive.writestr(name, content)
        archive.writestr("records/notes.jsonl", blank)
        (info,) = [each for each in archive.infolist() if each.filename.startswith("records/")]
        for collection in collections:
            copy = zipfile.ZipInfo(f"records/{collection}.jsonl")
            for field in ("header_offset", "compress_size", "file_size", "CRC", "compress_type", "flag_bits"):
                setattr(copy, field, getattr(info, field))
            archive.filelist.append(copy)
    assert "100 times" in (await failure(target, out.getvalue()))["message"]


@pytest.mark.parametrize("entries_of_directory", [200_001, 65_535])
async def test_a_directory_with_too_many_entries_is_not_read(target: CoachClient, entries_of_directory: int) -> None:
    count = min(entries_of_directory, 65_535)
    end64 = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, *[entries_of_directory * 4] * 2, 1 << 30, 0)
    locator = struct.pack("<IIQI", 0x07064B50, 0, 4, 1)
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, count, count, 0xFFFFFFFF, 0, 0)
    error = await failure(target, b"PK\x03\x04" + end64 + locator + end)
    assert "entries" in error["message"]


async def test_records_that_are_not_valid_are_left_out_with_a_reason(target: CoachClient, entries: Entries) -> None:
    (note,) = records(entries, "notes")
    changed = with_records(
        entries,
        "notes",
        {**note, "content": '<b onclick="x()">Kept</b><script>alert(1)</script>'},
        {**note, "_id": "0" * 24, "content": ["no text"]},
        {**note, "_id": "1" * 24, "customerId": UNKNOWN},
        {**note, "_id": "2" * 24, "author": {"$gt": ""}},
        {**note, "_id": "3" * 24, "isPinned": {"$ne": None}},
        note,
    )
    changed["records/notes.jsonl"] += b"{not JSON\n"

    assert await problems(target, changed) == [
        ("records/notes.jsonl:2", "content"),
        ("records/notes.jsonl:3", "customerId"),
        ("records/notes.jsonl:4", "author._id"),
        ("records/notes.jsonl:5", "isPinned"),
        ("records/notes.jsonl:6", "_id"),
        ("records/notes.jsonl:7", None),
    ]
    (customer,) = (await target.customers())["docs"]
    (stored,) = (await target.get(f"/coach/customers/{customer['_id']}/notes")).ok()
    assert stored["content"] == "<b>Kept</b>"


REFUSED: dict[str, list[dict[str, Any]]] = {
    "exercises": [
        {"videoLink": "javascript:alert(1)"},
        {"name": "Squat\u0000"},
        {"muscleGroups": [{"_id": UNKNOWN, "name": "Chest", "role": "primary"}]},
    ],
    "metricSets": [{"metrics": [{"_id": UNKNOWN, "name": "A", "metricUnitId": UNKNOWN, "isArchived": False}]}],
    "customers": [{"timezone": "Mars"}, {"email": "no address"}, {"birthday": "2026-02-30"}],
    "workoutBlocks": [
        {"date": "2026-02-30"},
        {"position": "first"},
        {"position": math.inf},
        {"items": [{"type": "DANCE"}]},
    ],
    "personalRecords": [{"unit": "<b>"}],
    "messages": [{"author": {"type": "robot", "_id": None, "name": "R"}}],
}


@pytest.mark.parametrize(
    "collections",
    [("exercises", "metricSets", "customers"), ("workoutBlocks", "personalRecords", "messages")],
    ids=["without an owner", "of a client"],
)
async def test_values_that_a_request_could_not_have_stored_are_left_out(
    target: CoachClient, entries: Entries, collections: tuple[str, ...]
) -> None:
    for collection in collections:
        (first, *_) = records(entries, collection)
        changed = [{**first, "_id": str(ObjectId()), **change} for change in REFUSED[collection]]
        entries = with_records(entries, collection, *changed)

    job = await import_file(target, make_zip(entries))

    assert job["status"] == "done"
    found = {(error["entry"], (error["field"] or "").partition(".")[0]) for error in job["errors"]}
    for collection in collections:
        for line, change in enumerate(REFUSED[collection], start=1):
            [field] = [""] if math.inf in change.values() else change  # a line with it is no JSON
            assert (f"records/{collection}.jsonl:{line}", field) in found, job["errors"]
        assert await target.ctx.db[collection].count_documents({"companyId": target.ctx.company_id}) == 0


BOMB = make_zip({"zeros": bytes(5_000_000)})  # nested: what is in it is not inflated


@pytest.mark.parametrize(
    "content", [b"<script>alert(1)</script>", BOMB, None], ids=["of another type", "an archive", "missing"]
)
async def test_files_are_checked_again(target: CoachClient, entries: Entries, content: bytes | None) -> None:
    (plan,) = [name for name in entries if name.startswith("files/") and name.endswith(".pdf")]
    changed = {name: own for name, own in entries.items() if name != plan} | ({plan: content} if content else {})
    assert ("records/planVersions.jsonl:1", "fileId") in await problems(target, changed)
    assert await target.ctx.db["planVersions"].count_documents({"companyId": target.ctx.company_id}) == 0


async def test_records_cannot_refer_to_another_company(
    coach: CoachClient, target: CoachClient, other_company: CoachClient
) -> None:
    """Every identifier is a new one, those of another company's documents included."""
    squat, customer = await other_company.create_exercise("Secret"), await other_company.create_customer("Stranger")
    own = await coach.create_customer()
    await block_with(coach, own, exercise_of(await coach.create_exercise("Squat")))
    entries = await export(coach)
    (block,) = records(entries, "workoutBlocks")
    item = {**block["items"][0], "exerciseId": squat["_id"]}
    job = await import_file(
        target,
        make_zip(
            with_records(
                entries,
                "workoutBlocks",
                {**block, "items": [item]},
                {**block, "_id": UNKNOWN, "customerId": customer["_id"]},
                {**block, "companyId": str(other_company.ctx.company_id), "_id": "1" * 24},
            )
        ),
    )

    assert [error["field"] for error in job["errors"]] == ["items.exerciseId", "customerId"]
    assert job["result"]["imported"]["workoutBlocks"] == 1
    (imported,) = (await target.customers())["docs"]
    assert len(await target.calendar(imported)) == 1
    assert await other_company.calendar(customer) == []


async def test_a_company_with_loads_refuses_those_in_another_unit(coach: CoachClient, new_company: NewCompany) -> None:
    pounds = await new_company(load_unit="lb")
    for company in (coach, pounds):
        customer = await company.create_customer()
        await block_with(company, customer, exercise_of(await company.create_exercise("Squat")))
    before = (await pounds.get("/coach/account")).ok()

    error = await failure(pounds, make_zip(await export(coach)))

    assert (error["entry"], "has loads in kg" in error["message"]) == ("account.json", True)
    assert (await pounds.get("/coach/account")).ok() == before


async def test_of_two_imports_at_once_one_is_refused(
    target: CoachClient, entries: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both find that no other one is running."""
    original, calls, both = jobs.has_unfinished, 0, asyncio.Event()

    async def has_unfinished(ctx: Context, kind: str, owner: Filter) -> bool:
        nonlocal calls
        is_running, calls = await original(ctx, kind, owner), calls + 1
        if calls == 2:
            both.set()
        await both.wait()
        return is_running

    monkeypatch.setattr(jobs, "has_unfinished", has_unfinished)
    content = make_zip(entries)
    replies = await asyncio.gather(*(send(target, content) for _ in range(2)))
    assert sorted(reply.status for reply in replies) == [202, 409]


async def test_an_import_adds_to_a_company_that_has_clients(coach: CoachClient, new_company: NewCompany) -> None:
    target = await new_company(timezone="Europe/Madrid")
    await target.create_customer("First")
    await coach.create_customer("Second")
    content = make_zip(await export(coach))

    await import_file(target, content)
    await import_file(target, content)

    assert await target.names() == ["First", "Second", "Second"]
    assert (await target.get("/coach/account")).ok()["timezone"] == "Europe/Madrid"
