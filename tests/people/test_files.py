"""Signed links, exports, and what is left behind: files and documents stay consistent."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from coaching_service.core.database import files
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.lifecycle import consistency
from coaching_service.people import file_links
from tests.core.test_uploads import PDF, form, picture
from tests.support.client import CoachClient
from tests.support.client_data import insert_in_every_collection, list_client_collections
from tests.support.pdf_files import make_pdf
from tests.support.training import employee_key

LONG = make_pdf(size=640_000)


@pytest.fixture
async def ana(coach: CoachClient) -> str:
    """A client's path."""
    return (
        f"/coach/customers/{(await coach.create_customer('Ana', email='ana@example.com', sendInvitation=False))['_id']}"
    )


@pytest.fixture
async def link(coach: CoachClient, ana: str) -> str:
    """A link to a plan of several chunks."""
    created = (await coach.send("POST", f"{ana}/nutrition-plans", data=form(LONG, "file", "long.pdf"))).ok(201)
    return str(created["url"]).removeprefix("http://coaching.test")


async def test_link_needs_no_credential_and_expires_after_two_hours(
    coach: CoachClient, anonymous: CoachClient, link: str
) -> None:
    reply = await anonymous.get(link)
    assert (reply.status, reply.raw) == (200, LONG)
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in reply.headers["Content-Security-Policy"]
    assert reply.headers["Server"] == "coaching-service", "not which library answers, and in which version"
    assert reply.headers["ETag"] == f'"{hashlib.sha256(LONG).hexdigest()}"'

    query = parse_qs(urlsplit(link).query)
    left = int(query["expires"][0]) - datetime.now(UTC).timestamp()
    assert 7100 < left <= 7200
    past = int(query["expires"][0]) - 7300
    file_id = urlsplit(link).path.rpartition("/")[2]
    signature = coach.ctx.services.vault.sign(f"file:{file_id}:{past}")
    (await anonymous.get(f"/files/{file_id}?expires={past}&signature={signature}")).refused(403)


async def test_invalid_link_is_rejected(anonymous: CoachClient, link: str) -> None:
    """Contract 7: a bad or expired signature is 403."""
    for changed in (
        link[:-1] + ("A" if link[-1] != "A" else "B"),
        re.sub(r"expires=(\d+)", lambda report: f"expires={int(report[1]) + 1}", link),
        link.partition("?")[0],
        link.partition("&")[0],
        re.sub(r"expires=\d+", "expires=9e99", link),
        link.replace("signature=", "signature=%00"),
        re.sub(r"/files/\w{23}", "/files/0123456789abcdef0123456", link),
    ):
        (await anonymous.get(changed)).refused(403)


async def test_ranges_are_supported(anonymous: CoachClient, link: str) -> None:
    for requested, start, end in (
        ("bytes=0-9", 0, 10),
        ("bytes=100-", 100, None),
        ("bytes=-5", -5, None),
        ("bytes=261110-261130", 261_110, 261_131),
        ("bytes=5-99999999", 5, None),
        ("bytes=0-0", 0, 1),
        ("bytes=0-", 0, None),
        ("Bytes=-99999999", 0, None),
    ):
        reply = await anonymous.send("GET", link, headers={"Range": requested})
        wanted = LONG[start:end]
        first = start % len(LONG)
        assert (reply.status, reply.raw) == (206, wanted), requested
        assert reply.headers["Content-Range"] == f"bytes {first}-{first + len(wanted) - 1}/{len(LONG)}"


async def test_other_ranges_and_known_versions(anonymous: CoachClient, link: str) -> None:
    content_values = await anonymous.get(link)
    tag = content_values.headers["ETag"]

    async def with_headers(**headers: str) -> Any:
        return await anonymous.send("GET", link, headers={name.replace("_", "-"): v for name, v in headers.items()})

    for several in ("bytes=0-1,5-6", "lines=1-2", "bytes=-", "bytes=5-4x"):
        assert (await with_headers(Range=several)).raw == LONG
    assert (await with_headers(Range=f"bytes={len(LONG)}-")).status == 416
    assert (await with_headers(If_None_Match=tag)).status == 304
    assert (await with_headers(Range="bytes=0-4", If_Range=tag)).raw == LONG[:5]
    assert (await with_headers(Range="bytes=0-4", If_Range='"old"')).raw == LONG
    head = await anonymous.send("HEAD", link)
    assert (head.status, head.raw, head.headers["Content-Length"]) == (200, b"", str(len(LONG)))


async def test_export_contains_every_record_and_file(coach: CoachClient, ana: str, link: str) -> None:
    customer = (await coach.get(ana)).ok()
    await coach.schedule(customer)
    await coach.post(f"{ana}/notes", {"content": "<p>Hello</p>"})
    image = picture()
    data = form(image, createdAt="2026-03-02", imageSideIndex="1")
    photo = (await coach.send("POST", f"{ana}/progress-photos", data=data)).ok(201)

    reply = await coach.get(f"{ana}/export")

    assert reply.headers["Content-Type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(reply.raw)) as package:
        assert package.testzip() is None
        manifest = json.loads(package.read("manifest.json"))
        assert manifest["exportedAt"].endswith("Z")
        for entry in manifest["entries"]:
            content = package.read(entry["name"])
            assert (len(content), hashlib.sha256(content).hexdigest()) == (entry["bytes"], entry["sha256"])
        assert {entry["name"] for entry in manifest["entries"]} | {"manifest.json"} == set(package.namelist())

        def records(name: str) -> list[Any]:
            return [json.loads(line) for line in package.read(f"records/{name}.jsonl").splitlines()]

        assert records("customers")[0]["name"] == "Ana"
        assert [block["name"] for block in records("workoutBlocks")] == ["Legs"]
        assert records("notes")[0]["content"] == "<p>Hello</p>"
        assert records("progressPhotos")[0]["sides"]["front"]["fileId"] == photo["photos"]["frontKey"].removesuffix(
            ".jpg"
        )
        plan_id = urlsplit(link).path.rpartition("/")[2]
        assert package.read(f"files/{plan_id}.pdf") == LONG
        assert len([name for name in package.namelist() if name.startswith("files/")]) == 3
        all_files = b"".join(package.read(name) for name in package.namelist())
    for secret in (b"passwordHash", b"firstAccessHash", b"refreshHash", b'"hash"'):
        assert secret not in all_files


async def test_export_contains_every_collection(coach: CoachClient, ana: str) -> None:
    """Every collection that is declared to hold anything of a client's, except tokens and queues; every file."""
    ctx, client = coach.ctx, ObjectId(ana.rpartition("/")[2])
    await insert_in_every_collection(ctx, client, "of Ana's")
    await insert_in_every_collection(ctx, ObjectId(), "of somebody else's")
    (await coach.send("POST", f"{ana}/nutrition-plans", data=form(LONG, "file", "long.pdf"))).ok(201)
    wanted = {}
    for name, collection in list_client_collections().items():
        documents = (
            await ctx.db[name].find({"companyId": ctx.company_id, collection.client_field: client}).to_list(None)
        )
        wanted[f"records/{name}.jsonl"] = sorted(str(each["_id"]) for each in documents)
        if collection.secret:
            del wanted[f"records/{name}.jsonl"]
    wanted["records/customers.jsonl"] = [str(client)]
    files = await ctx.db["fs.files"].find({"customerId": client}).to_list(None)

    with zipfile.ZipFile(io.BytesIO((await coach.get(f"{ana}/export")).raw)) as package:
        manifest = {entry["name"]: entry for entry in json.loads(package.read("manifest.json"))["entries"]}
        records = {
            name: sorted(json.loads(line)["_id"] for line in package.read(name).splitlines())
            for name in manifest
            if name.startswith("records/")
        }
        all_files = b"".join(package.read(name) for name in manifest)
    # The export is in the audit log itself.
    assert len(set(records["records/audit.jsonl"]) - set(wanted["records/audit.jsonl"])) == 1
    assert records == wanted | {"records/audit.jsonl": records["records/audit.jsonl"]}
    assert len(files) == len(manifest) - len(records) == 1
    for file in files:
        entry = manifest[f"files/{file['_id']}.pdf"]
        assert (entry["bytes"], entry["sha256"]) == (file["length"], file["sha256"])
    assert b"somebody else" not in all_files


async def test_export_requires_access_to_the_client(coach: CoachClient, other_company: CoachClient, ana: str) -> None:
    (await other_company.get(f"{ana}/export")).refused(404)
    as_ana = await coach.as_client({"_id": ana.rpartition("/")[2]})
    (await as_ana.get(f"{ana}/export")).refused(403)


async def test_export_requires_permission_for_every_area(coach: CoachClient, ana: str) -> None:
    all_files = ["customers.view", "forms.view", "metrics.view", "nutrition.view"]
    for missing in all_files:
        key = await employee_key(coach, *(each for each in all_files if each != missing), scope="all")
        (await coach.with_key(key).get(f"{ana}/export")).refused(403, missing)
    key = await employee_key(coach, *all_files, scope="all")
    (await coach.with_key(key).get(f"{ana}/export")).ok()


async def test_only_orphans_are_removed(coach: CoachClient, ana: str, link: str) -> None:
    """A process that dies between file and record leaves a file that no record refers to."""
    ctx, customer_id = coach.ctx, ObjectId(ana.rpartition("/")[2])
    db = ctx.db
    lost = await files.store(
        ctx, io.BytesIO(b"lost" * 100_000), name="lost", content_type="image/png", customer_id=customer_id
    )
    long_ago = now() - timedelta(hours=2)
    await db["fs.files"].update_many({"companyId": ctx.company_id}, {"$set": {"uploadDate": long_ago}})
    broken = ObjectId.from_datetime(long_ago)
    await db["fs.chunks"].insert_one({"files_id": broken, "n": 0, "data": b"half"})
    young = ObjectId()
    await db["fs.chunks"].insert_one({"files_id": young, "n": 0, "data": b"on its way"})

    dry = await consistency.collect(ctx.services, remove=False)
    report = await consistency.collect(ctx.services, remove=True)

    assert (dry.orphans, dry.chunks_only, dry.bytes) == (1, 1, lost.size + len(b"half"))
    assert report == dry
    assert await db["fs.files"].count_documents({"_id": lost.id}) == 0
    assert await db["fs.chunks"].count_documents({"files_id": {"$in": [lost.id, broken]}}) == 0
    assert await db["fs.chunks"].count_documents({"files_id": young}) == 1
    assert (await coach.get(link)).raw == LONG
    assert (await consistency.collect(ctx.services, remove=True)).orphans == 0
    await db["fs.chunks"].delete_many({"files_id": young})


async def test_failed_upload_leaves_no_chunks(coach: CoachClient, ana: str) -> None:
    """The document cannot be written: the client is deleted during the upload."""
    missing = ana[:-24] + "0123456789abcdef01234567"
    (await coach.send("POST", f"{missing}/nutrition-plans", data=form(PDF, "file"))).refused(404)
    assert await coach.ctx.db["fs.files"].count_documents({"companyId": coach.ctx.company_id}) == 0


def test_a_signature_is_bound_to_file_and_time(coach: CoachClient) -> None:
    services = coach.ctx.services
    url = file_links.file_url(Context(services), ObjectId())
    assert url is not None
    assert file_links.file_url(Context(services), None) is None
    query = parse_qs(urlsplit(url).query)
    assert not file_links.is_valid_link(services, ObjectId(), int(query["expires"][0]), query["signature"][0])
