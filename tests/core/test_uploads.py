"""Photos and plans: validated by content, re-encoded and stored with their record."""

from __future__ import annotations

import asyncio
import io
import re
from typing import Any

import aiohttp
import pytest
from PIL import Image

from coaching_service.core.http.request_parsing import clean_file_name
from tests.support.client import UNKNOWN, CoachClient
from tests.support.pdf_files import make_pdf
from tests.support.service_process import until

PDF = make_pdf()


def picture(kind: str = "JPEG", size: tuple[int, int] = (60, 40), **options: Any) -> bytes:
    out = io.BytesIO()
    Image.effect_noise(size, 80).convert("RGB").save(out, kind, **options)
    return out.getvalue()


def form(file: bytes | None = None, field: str = "imageFile", name: str = "me.jpg", **texts: str) -> aiohttp.FormData:
    data = aiohttp.FormData(default_to_multipart=True)
    if file is not None:
        data.add_field(field, io.BytesIO(file), filename=name)
    for key, value in texts.items():
        data.add_field(key, value)
    return data


@pytest.fixture
async def ana(coach: CoachClient) -> str:
    """A client's path."""
    return f"/coach/customers/{(await coach.create_customer())['_id']}"


async def add(coach: CoachClient, ana: str, file: bytes | None, side: str = "1", date: str = "2026-03-02") -> Any:
    return await coach.send("POST", f"{ana}/progress-photos", data=form(file, createdAt=date, imageSideIndex=side))


async def stored(coach: CoachClient) -> tuple[int, int]:
    """Return the number of files of the company and the number of files with chunks but no file document."""
    db = coach.ctx.db
    ids = [f["_id"] async for f in db["fs.files"].find({"companyId": coach.ctx.company_id})]
    of_files = await db["fs.chunks"].distinct("files_id", {"files_id": {"$in": ids}})
    assert set(of_files) == set(ids), "every file has its bytes"
    all_ids = {f["_id"] async for f in db["fs.files"].find({}, {"_id": 1})}
    return len(ids), len(set(await db["fs.chunks"].distinct("files_id")) - all_ids)


async def fetch(coach: CoachClient, url: str, **headers: str) -> Any:
    return await coach.send("GET", url.removeprefix("http://coaching.test"), headers=headers)


async def test_photos_of_one_date_share_a_record(coach: CoachClient, ana: str) -> None:
    front = (await add(coach, ana, picture())).ok(201)
    both = (await add(coach, ana, picture("PNG"), "2", "2026-03-02T10:30:00Z")).ok(201)

    assert both["_id"] == front["_id"], "one record a date"
    assert both["createdAt"] == "2026-03-02"
    assert both["photos"]["frontKey"] == front["photos"]["frontKey"]
    assert both["photos"]["backUrl"].startswith("http://coaching.test/files/")
    assert (both["photos"]["sideKey"], both["photos"]["sideUrl"]) == (None, None)
    later = (await add(coach, ana, picture("WEBP"), "3", "2026-04-01")).ok(201)
    page = (await coach.get(f"{ana}/progress-photos", pageSize=10, pageNum=1)).ok()
    assert [record["_id"] for record in page["docs"]] == [later["_id"], both["_id"]]
    shown = await fetch(coach, both["photos"]["backUrl"])
    assert (shown.status, shown.headers["Content-Type"]) == (200, "image/png")


@pytest.mark.parametrize(
    ("moment", "date"),
    [
        ("2026-11-11T04:30:00Z", "2026-11-10"),
        ("2026-11-11T23:30:00-08:00", "2026-11-11"),
        ("2026-11-11T04:30:00", "2026-11-11"),
    ],
)
async def test_instant_is_converted_to_the_local_date_of_the_client(
    coach: CoachClient, ana: str, moment: str, date: str
) -> None:
    """Contract 1: dates are the client's local dates."""
    (await coach.patch(ana, {"timezone": "America/Los_Angeles"})).ok()
    assert (await add(coach, ana, None, "1", moment)).ok(201)["createdAt"] == date


@pytest.mark.parametrize(("others", "status"), [(18, 201), (19, 400)])
async def test_a_body_has_at_most_twenty_parts(coach: CoachClient, ana: str, others: int, status: int) -> None:
    texts = {"createdAt": "2026-03-02", "imageSideIndex": "1", **{f"other{n}": "text" for n in range(others)}}
    reply = await coach.send("POST", f"{ana}/progress-photos", data=form(None, **texts))
    assert (reply.status, reply.json.get("code")) == (status, None if status == 201 else "TOO_MANY_PARTS")


async def test_photo_record_can_be_created_without_a_file(coach: CoachClient, ana: str) -> None:
    """Contract 4: progress photo creation and profile photo update accept a request without a new file."""
    record = (await add(coach, ana, None)).ok(201)
    assert record["photos"]["frontKey"] is None
    with_file = (await add(coach, ana, picture())).ok(201)
    again = (await add(coach, ana, None)).ok(201)
    assert again["photos"]["frontKey"] == with_file["photos"]["frontKey"]
    assert (again["version"], again["updatedAt"]) == (with_file["version"], with_file["updatedAt"]), "left as it is"


@pytest.mark.parametrize(
    ("texts", "field"),
    [
        ({"imageSideIndex": "1"}, "createdAt"),
        ({"createdAt": "2026-03-02"}, "imageSideIndex"),
        ({"createdAt": "yesterday", "imageSideIndex": "1"}, "createdAt"),
        ({"createdAt": "2026-02-30", "imageSideIndex": "1"}, "createdAt"),
        ({"createdAt": "0001-01-01T00:00:00+05:00", "imageSideIndex": "1"}, "createdAt"),
        ({"createdAt": "2026-03-02", "imageSideIndex": "4"}, "imageSideIndex"),
        ({"createdAt": "2026-03-02", "imageSideIndex": "front"}, "imageSideIndex"),
    ],
)
async def test_text_fields_of_an_upload_are_validated(
    coach: CoachClient, ana: str, texts: dict[str, str], field: str
) -> None:
    reply = await coach.send("POST", f"{ana}/progress-photos", data=form(picture(), **texts))
    assert reply.refused(400)["message"][0].startswith(field)
    assert await stored(coach) == (0, 0)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        (b"<html><script>alert(1)</script></html>", "me.jpg"),
        (b"GIF89a\x01\x00\x01\x00\x00\x00\x00;", "me.gif"),
        (picture()[:200], "me.jpg"),
        (picture("PNG")[:-40], "me.png"),
        (PDF, "me.jpg"),
        (b"", "me.jpg"),
        (b"\xff\xd8\xff\xe0" + b"\x00" * 500, "me.jpg"),
    ],
)
async def test_invalid_picture_is_rejected_and_not_stored(coach: CoachClient, ana: str, file: bytes, name: str) -> None:
    """Contract 7: recognised by content, not by name; anything else is 400 and leaves no chunks behind."""
    data = form(file, name=name, createdAt="2026-03-02", imageSideIndex="1")
    (await coach.send("POST", f"{ana}/progress-photos", data=data)).refused(400)
    assert await stored(coach) == (0, 0)
    assert (await coach.get(f"{ana}/progress-photos", pageSize=10, pageNum=1)).ok()["totalDocs"] == 0


async def test_decompression_bomb_is_rejected(coach: CoachClient, ana: str) -> None:
    out = io.BytesIO()
    Image.new("1", (12_000, 12_000)).save(out, "PNG")
    (await add(coach, ana, out.getvalue())).refused(400, "pixels")
    assert await stored(coach) == (0, 0)


async def test_file_over_the_limit_is_rejected_and_not_stored(coach: CoachClient, ana: str) -> None:
    (await add(coach, ana, b"\xff\xd8" + b"\x00" * 15_000_001)).refused(413)
    assert await stored(coach) == (0, 0)


async def test_photo_is_rotated_and_its_metadata_removed(coach: CoachClient, ana: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter
    exif.get_ifd(0x8825)[2] = (48.0, 12.0, 30.0)
    record = (await add(coach, ana, picture(size=(60, 40), exif=exif))).ok(201)

    shown = Image.open(io.BytesIO((await fetch(coach, record["photos"]["frontUrl"])).raw))
    assert shown.size == (40, 60)
    assert not shown.getexif()
    small = Image.open(io.BytesIO((await fetch(coach, record["photos"]["frontThumbnailUrl"])).raw))
    assert max(small.size) <= 320


async def test_replacing_a_photo_deletes_its_files(coach: CoachClient, ana: str) -> None:
    record = (await add(coach, ana, picture())).ok(201)
    path = f"{ana}/progress-photos/{record['_id']}"

    changed = (await coach.send("PUT", path, data=form(picture("PNG"), imageSideIndex="1"))).ok()

    assert changed["photos"]["frontKey"] != record["photos"]["frontKey"]
    assert re.fullmatch(r"[0-9a-f]{24}\.jpg", record["photos"]["frontKey"])
    assert re.fullmatch(r"[0-9a-f]{24}\.png", changed["photos"]["frontKey"])
    assert await stored(coach) == (2, 0), "the photo and its thumbnail"
    (await fetch(coach, record["photos"]["frontUrl"])).refused(404)
    (await coach.send("PUT", path, data=form(None, imageSideIndex="1"))).refused(400, "imageFile")
    (await coach.send("PUT", path, data=form(picture()))).refused(400, "imageSideIndex")
    unknown = f"{ana}/progress-photos/{UNKNOWN}"
    (await coach.send("PUT", unknown, data=form(picture(), imageSideIndex="1"))).refused(404)
    assert await stored(coach) == (2, 0)
    (await coach.delete(path)).ok(204)
    assert await stored(coach) == (0, 0)
    (await coach.delete(path)).refused(404)


async def test_profile_photo_can_be_replaced_and_read(coach: CoachClient, ana: str) -> None:
    path = f"{ana}/profile-photo"
    assert (await coach.send("PUT", path)).ok()["profilePhotoUrl"] is None
    first = (await coach.send("PUT", path, data=form(picture(), "profilePhotoFile"))).ok()
    assert (await fetch(coach, first["profilePhotoUrl"])).status == 200
    (await coach.send("PUT", path, data=form(picture("PNG"), "profilePhotoFile"))).ok()
    (await fetch(coach, first["profilePhotoUrl"])).refused(404)
    assert await stored(coach) == (2, 0)
    assert (await coach.customers())["docs"][0]["profilePhotoUrl"] is not None
    (await coach.put(path, {"profilePhotoFile": "x"})).refused(415)


async def test_plans_are_numbered_versions(coach: CoachClient, ana: str) -> None:
    async def upload(file: bytes, name: str) -> Any:
        return await coach.send("POST", f"{ana}/nutrition-plans", data=form(file, "file", name))

    first = (await upload(PDF, "plan – März.pdf")).ok(201)
    second = (await upload(picture(), "../../etc/plan.jpg")).ok(201)

    assert (first["number"], first["contentType"], first["size"]) == (1, "application/pdf", len(PDF))
    assert (second["number"], second["fileName"]) == (2, "plan.jpg")
    page = (await coach.get(f"{ana}/plan-versions", pageSize=10, pageNum=1)).ok()
    assert [plan["number"] for plan in page["docs"]] == [2, 1]
    got = await fetch(coach, first["url"])
    assert (got.raw, got.headers["Content-Type"]) == (PDF, "application/pdf")
    assert got.headers["Content-Disposition"].startswith("attachment")
    (await coach.delete(f"{ana}/plan-versions/{second['_id']}")).ok(204)
    assert (await upload(PDF, "again.pdf")).ok(201)["number"] == 3
    (await upload(PDF[:-10], "cut.pdf")).refused(400)


async def test_plan_upload_without_a_file_returns_500(coach: CoachClient, ana: str) -> None:
    """Contract 3: a nutrition-plan upload without `file` is 500 with `code`, and nothing is written."""
    for data in (None, form(None, other="x"), form(PDF, "anotherField")):
        error = (await coach.send("POST", f"{ana}/nutrition-plans", data=data)).refused(500)
        assert error["code"] == "NUTRITION_PLAN_FILE_MISSING"
        assert set(error) == {"code", "message"}
    assert await stored(coach) == (0, 0)


async def test_retried_upload_is_executed_once(coach: CoachClient, ana: str) -> None:
    file, key = picture(), {"Idempotency-Key": "k"}

    async def send(name: str = "plan.jpg") -> Any:
        data = form(file, "file", name)
        return await coach.send("POST", f"{ana}/nutrition-plans", data=data, headers=key)

    first, second = await send(), await send()
    assert first.ok(201) == second.ok(201)
    assert second.headers["Idempotent-Replayed"] == "true"
    assert await stored(coach) == (2, 0)
    (await send("another.jpg")).refused(409)
    for other in (picture("PNG"), file + b"more"):
        file = other
        (await send()).refused(409)
    assert await stored(coach) == (2, 0)


async def test_erasing_a_client_invalidates_links_and_deletes_files(coach: CoachClient, ana: str) -> None:
    record = (await add(coach, ana, picture())).ok(201)
    (await coach.delete(ana)).ok(204)
    (await fetch(coach, record["photos"]["frontUrl"])).refused(404)

    async def files_deleted() -> bool:
        return await coach.ctx.db["fs.files"].count_documents({"companyId": coach.ctx.company_id}) == 0

    await until(files_deleted, "the files are deleted")
    assert await stored(coach) == (0, 0)


async def test_concurrent_uploads_are_all_stored(coach: CoachClient, ana: str) -> None:
    replies = await asyncio.gather(*(add(coach, ana, picture(), "1", f"2026-01-{day:02}") for day in range(1, 13)))
    assert all(reply.status == 201 for reply in replies)
    assert await stored(coach) == (24, 0)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("x" * 300 + ".pdf", "x" * 196 + ".pdf"),
        ("x" * 196 + ".pdf", "x" * 196 + ".pdf"),
        ("plans/" + "é" * 201 + ".PDF", "é" * 196 + ".PDF"),
        ("x" * 300, "x" * 200),
        ("x" * 300 + "." + "y" * 50, "x" * 190 + "." + "y" * 9),
    ],
)
def test_a_name_that_is_cut_keeps_its_ending(sent: str, kept: str) -> None:
    assert clean_file_name(sent) == kept
