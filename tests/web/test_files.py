"""The pages of photos and nutrition plans: uploading, replacing, rejecting and deleting files."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pikepdf
import pytest
from aiohttp.test_utils import TestServer

from coaching_service.app import create_app
from coaching_service.core.database.context import Services
from coaching_service.people import team
from coaching_service.settings import Settings
from tests.conftest import PASSWORD
from tests.core.test_uploads import PDF, fetch, picture, stored
from tests.support import training
from tests.support.client import CoachClient
from tests.support.pdf_files import new_pdf, written
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import NewVisitor

PHOTO = ("front.jpg", picture())


@pytest.fixture
async def ana(coach: CoachClient) -> str:
    """The path of a client's pages."""
    return f"/app/customers/{(await coach.create_customer('Ana'))['_id']}"


async def photos(coach: CoachClient, ana: str) -> Any:
    path = ana.replace("/app/", "/coach/") + "/progress-photos?pageSize=50&pageNum=1"
    return (await coach.get(path)).ok()["docs"]


async def upload(visitor: Visitor, ana: str, file: tuple[str, bytes], **typed: Any) -> HtmlPage:
    page = await visitor.get(f"{ana}/photos")
    return await visitor.submit(page, f"{ana}/photos", **{"createdAt": "2026-03-02", "front": file} | typed)


async def test_photo_is_uploaded_replaced_and_deleted(coach: CoachClient, owner_page: Visitor, ana: str) -> None:
    saved = (await upload(owner_page, ana, PHOTO)).ok().says("Front photo saved.", "Front", "Mon 2 Mar 2026")
    assert 'alt="Ana, front, Mon 2 Mar 2026"' in saved.html
    (await upload(owner_page, ana, ("other.png", picture("PNG")))).says("Front photo saved.")
    (await upload(owner_page, ana, ("", b""), side=PHOTO)).says("Side photo saved.")
    (record,) = await photos(coach, ana)
    assert (await fetch(coach, record["photos"]["frontUrl"])).headers["Content-Type"] == "image/png"
    assert await stored(coach) == (4, 0), "two pictures, two thumbnails, and nothing left of the replaced one"

    delete = f"{ana}/photos/{record['_id']}/delete"
    confirmation = (await owner_page.get(delete)).says(
        "Delete the photos of Mon 2 Mar 2026?", "Front, side: these photos will be deleted permanently."
    )
    (await owner_page.submit(confirmation, delete)).ok().says("Photos deleted.", "No photos yet")
    assert await stored(coach) == (0, 0)


async def test_invalid_photo_is_reported_at_its_field_and_input_is_preserved(
    coach: CoachClient, owner_page: Visitor, ana: str
) -> None:
    for file, sentence in (
        (("notes.txt", b"not a picture"), "This must be a JPEG, PNG, WebP or HEIC picture."),
        (
            ("cut.jpg", picture(size=(900, 900))[:-400]),
            "This is incomplete or damaged: choose another file.",
        ),
        (("empty.jpg", b""), "This must be a JPEG, PNG, WebP or HEIC picture."),
    ):
        rejected = (await upload(owner_page, ana, file, createdAt="2026-02-03")).ok(400)
        rejected.says(sentence, "Choose the files again")
        form = rejected.form(f"{ana}/photos")
        assert form.controls["createdAt"]["value"] == "2026-02-03"
        assert form.controls["front"]["aria-invalid"] == "true"
        assert "aria-invalid" not in form.controls["side"]
    (await upload(owner_page, ana, ("", b""))).ok(400).says("Choose at least one file.")
    rejected = (await upload(owner_page, ana, PHOTO, createdAt="soon")).ok(400)
    rejected.says("This must be a date that exists.")
    assert await stored(coach) == (0, 0)
    assert await photos(coach, ana) == []


async def test_photos_of_all_sides_are_uploaded_at_once(coach: CoachClient, owner_page: Visitor, ana: str) -> None:
    page = await owner_page.get(f"{ana}/photos")
    sides = {side: (f"{side}.jpg", picture()) for side in ("front", "side", "back")}

    saved = await owner_page.submit(page, f"{ana}/photos", createdAt="2026-03-02", **sides)

    saved.ok().says("Front, side and back photos saved.")
    (record,) = await photos(coach, ana)
    assert all(record["photos"].values())
    again = await owner_page.submit(page, f"{ana}/photos", createdAt="2026-03-02", **sides)
    again.ok().says("The form was sent twice and processed once.")
    other = sides | {"back": ("back.jpg", picture(size=(50, 60)))}
    changed = await owner_page.submit(page, f"{ana}/photos", createdAt="2026-03-02", **other)
    assert "sent twice" not in changed.says("back photos saved.").text
    assert await stored(coach) == (6, 0), "nothing stays of what was replaced or sent twice"


async def test_photos_that_are_accepted_are_saved_without_the_others(
    coach: CoachClient, owner_page: Visitor, ana: str, narrow: TestServer
) -> None:
    broken, text = ("cut.jpg", picture(size=(900, 900))[:-400]), ("notes.txt", b"text")
    saved = await upload(owner_page, ana, PHOTO, side=text, back=broken)
    saved.ok().says(
        "Front photo saved. The side photo was not saved: it must be a JPEG, PNG, WebP or HEIC picture. "
        "The back photo was not saved: it is incomplete or damaged: choose another file."
    )
    (record,) = await photos(coach, ana)
    assert (record["photos"]["sideKey"], record["photos"]["backKey"]) == (None, None)
    assert await stored(coach) == (2, 0)
    rejected = (await upload(owner_page, ana, text, side=broken)).ok(400)
    rejected.says(
        "This must be a JPEG, PNG, WebP or HEIC picture.", "This is incomplete or damaged: choose another file."
    )
    visitor = Visitor(narrow)
    (await visitor.sign_in(str(coach.ctx.caller.email), PASSWORD)).ok()
    saved = await upload(visitor, ana, ("big.jpg", b"\xff" * 100_000), side=PHOTO)
    saved.ok().says("Side photo saved. The front photo was not saved: it must not be larger than 20 kB.")
    await visitor.close()


async def test_photos_are_shown_with_the_weight_of_the_time(coach: CoachClient, owner_page: Visitor, ana: str) -> None:
    body = await training.metric_set(coach, "Body weight")
    api = ana.replace("/app/", "/coach/")
    (await coach.post(f"{api}/metrics-sets", {"metricsSetId": body["_id"]})).ok(201)
    for day, value in (("2026-02-20", 82.5), ("2026-03-02", 80), ("2026-03-03", 79)):
        entry = {"metricId": body["metrics"][0]["_id"], "date": day, "value": value}
        (await coach.post(f"{api}/metrics-sets/{body['_id']}/entries", entry)).ok(201)
    for day in ("2026-02-19", "2026-02-28", "2026-03-02"):
        await upload(owner_page, ana, PHOTO, createdAt=day)

    page = (await owner_page.get(f"{ana}/photos?left=2026-02-28&right=2026-03-02")).ok()
    page.says("Sat 28 Feb 2026 Body weight: 82.5 kg, on Fri 20 Feb 2026", "Mon 2 Mar 2026 Body weight: 80 kg")
    earliest = await owner_page.get(f"{ana}/photos?left=2026-02-19&right=2026-03-02")
    assert earliest.text.count("Body weight") == 1, "no weight was known then"


@pytest.fixture
async def narrow(settings: Settings, services: Services) -> AsyncIterator[TestServer]:
    """The same service with low limits for files."""
    small = settings.model_copy(update={"max_photo_bytes": 20_000, "max_plan_bytes": 30_000})
    server = TestServer(create_app(small, replace(services, upload_limits=small.upload_limits())))
    await server.start_server()
    yield server
    await server.close()


async def test_file_that_is_too_large_is_reported_at_its_field(
    coach: CoachClient, narrow: TestServer, ana: str
) -> None:
    visitor = Visitor(narrow)
    (await visitor.sign_in(str(coach.ctx.caller.email), PASSWORD)).ok()
    for size in (20_001, 5_000_000):
        rejected = (await upload(visitor, ana, ("big.jpg", b"\xff" * size), createdAt="2026-02-03")).ok(400)
        rejected.says("This must not be larger than 20 kB.")
        assert rejected.form(f"{ana}/photos").controls["createdAt"]["value"] == "2026-02-03"
    page = await visitor.get(f"{ana}/plans")
    rejected = await visitor.submit(page, f"{ana}/plans", file=("plan.pdf", PDF + b" " * 30_000))
    rejected.ok(400).says("This must not be larger than 30 kB.")
    await visitor.close()


async def test_repeated_upload_is_stored_once(coach: CoachClient, owner_page: Visitor, ana: str) -> None:
    page = await owner_page.get(f"{ana}/plans")
    first_response = await owner_page.submit(page, f"{ana}/plans", file=("plan.pdf", PDF))
    first_response.ok().says("plan.pdf saved as version 1.")

    repeated = await owner_page.submit(page, f"{ana}/plans", file=("plan.pdf", PDF))
    repeated.ok().says("The form was sent twice and processed once.")
    other = await owner_page.submit(page, f"{ana}/plans", file=("plan.pdf", PDF + b"\n"))
    other.ok().says("plan.pdf saved as version 2.")
    assert await stored(coach) == (2, 0), "nothing stays of the one that was sent twice"


async def test_plan_is_uploaded_and_deleted(coach: CoachClient, owner_page: Visitor, ana: str) -> None:
    page = (await owner_page.get(f"{ana}/plans")).says("No nutrition plan yet")
    invalid = await owner_page.submit(page, f"{ana}/plans", file=("plan.docx", b"PK\x03\x04"))
    invalid.ok(400).says("This must be a PDF, or a JPEG, PNG, WebP or HEIC picture.")
    locked = written(new_pdf(), encryption=pikepdf.Encryption(owner="owner", user="reader"))
    for content, sentence in (
        (locked, "This must not need a password: save a copy without one, and choose that."),
        (PDF[:-10], "This is incomplete or damaged: choose another file."),
    ):
        invalid = (await owner_page.submit(invalid, f"{ana}/plans", file=("Plan.pdf", content))).ok(400).says(sentence)
    (await owner_page.submit(invalid, f"{ana}/plans", file=("Plan März.pdf", PDF))).says("Plan März.pdf saved")
    saved = await owner_page.submit(page, f"{ana}/plans", file=PHOTO)
    delete = next(link for link in saved.links if link.endswith("/delete"))

    confirmation = (await owner_page.get(delete)).says("Delete version 2?", "front.jpg")
    remaining = (await owner_page.submit(confirmation, delete)).ok().says("Version deleted.", "Plan März.pdf")
    assert "front.jpg" not in remaining.text
    assert await stored(coach) == (1, 0)
    (await owner_page.get(delete)).ok(404)


async def test_profile_photo_is_shown_on_the_details_page(coach: CoachClient, owner_page: Visitor, ana: str) -> None:
    page = await owner_page.get(f"{ana}/details")
    invalid = await owner_page.submit(page, f"{ana}/profile-photo", profilePhotoFile=("me.pdf", PDF))
    invalid.ok(400).says("This must be a JPEG, PNG, WebP or HEIC picture.")

    saved = await owner_page.submit(invalid, f"{ana}/profile-photo", profilePhotoFile=PHOTO)

    assert 'class="portrait"' in saved.ok().says("Photo saved.").html
    assert await stored(coach) == (2, 0)


async def test_file_without_csrf_token_is_not_stored(coach: CoachClient, owner_page: Visitor, ana: str) -> None:
    page = await owner_page.get(f"{ana}/photos")
    stale = await owner_page.submit(page, f"{ana}/photos", csrf="x" * 43, front=PHOTO, createdAt="2026-02-03")
    stale.ok(403).says("This page was out of date, so nothing was changed.")
    assert stale.form(f"{ana}/photos").controls["createdAt"]["value"] == "2026-02-03"
    assert await stored(coach) == (0, 0)


async def test_form_is_restored_without_its_file_after_the_session_expired(
    coach: CoachClient, owner_page: Visitor, ana: str
) -> None:
    page = await owner_page.get(f"{ana}/photos")
    await coach.ctx.db["sessions"].delete_many({"companyId": coach.ctx.company_id})

    expired = await owner_page.submit(page, f"{ana}/photos", front=PHOTO, createdAt="2026-02-03")

    expired.ok(401).says("Your session has ended")
    back = await owner_page.submit(
        expired,
        f"{ana}/photos",
        reauthentication__email=str(coach.ctx.caller.email),
        reauthentication__password=PASSWORD,
    )
    back.ok().says("You are signed in again.", "Choose the files again")
    assert await stored(coach) == (0, 0)
    (await owner_page.submit(back, f"{ana}/photos", front=PHOTO)).ok().says("Front photo saved.")
    assert [record["createdAt"] for record in await photos(coach, ana)] == ["2026-02-03"]


async def test_upload_forms_are_hidden_without_permission(
    coach: CoachClient, owner_page: Visitor, ana: str, new_visitor: NewVisitor, password_hash: str
) -> None:
    (await upload(owner_page, ana, PHOTO)).ok()
    await owner_page.submit(await owner_page.get(f"{ana}/plans"), f"{ana}/plans", file=("plan.pdf", PDF))
    email = f"eli-{secrets.token_hex(6)}@example.com"
    await team.create(coach.ctx, "Eli", email, ["customers.view", "nutrition.view"], "all", password_hash)
    eli = new_visitor()
    (await eli.sign_in(email, PASSWORD)).ok()

    for page in ("photos", "plans", "details"):
        response = (await eli.get(f"{ana}/{page}")).ok()
        assert [form.action for form in response.forms if form.multipart] == []
        assert [link for link in response.links if link.endswith("/delete")] == []


async def test_thumbnails_link_to_the_full_photos(coach: CoachClient, owner_page: Visitor, ana: str) -> None:
    compared = await upload(owner_page, ana, ("front.jpg", picture(size=(900, 600))))
    compared.says("JPEG, PNG, WebP or HEIC, up to 15 MB")
    (record,) = await photos(coach, ana)
    assert linked_and_shown(compared) == [
        record["photos"]["frontKey"].removesuffix(".jpg"),
        str(await thumbnail(coach, "front")),
    ]

    page = await owner_page.get(f"{ana}/details")
    await owner_page.submit(page, f"{ana}/profile-photo", profilePhotoFile=("me.jpg", picture(size=(900, 600))))

    small = str(await thumbnail(coach, "me"))
    assert linked_and_shown(await owner_page.get(f"{ana}/details"))[1] == small
    for tab in ("", "/progress", "/photos", "/notes", "/records", "/delete"):
        assert f'<img src="/files/{small}' in (await owner_page.get(f"{ana}{tab}")).ok().html, tab


async def thumbnail(coach: CoachClient, name: str) -> Any:
    query = {"companyId": coach.ctx.company_id, "filename": f"thumbnail of {name}.jpg"}
    match = await coach.ctx.db["fs.files"].find_one(query)
    assert match
    return match["_id"]


def linked_and_shown(page: HtmlPage) -> list[str]:
    """The file identifiers of the first image link and of the image in it."""
    match = re.search(r'<a href="/files/(\w+)[^>]*><img [^>]*src="/files/(\w+)', page.html)
    assert match
    return list(match.groups())


async def test_implausible_date_is_rejected(coach: CoachClient, owner_page: Visitor, ana: str) -> None:
    body = await training.metric_set(coach, "Waist")
    await coach.post(ana.replace("/app/", "/coach/") + "/metrics-sets", {"metricsSetId": body["_id"]})
    page = await owner_page.get(f"{ana}/progress")
    message = "must be a date from 1950 on and not after"
    today = coach.ctx.caller.today()
    tomorrow = str(today + timedelta(days=1))
    for day in ("0001-01-01", "1949-12-31", "9999-12-31", str(today + timedelta(days=3))):
        (await upload(owner_page, ana, PHOTO, createdAt=day)).ok(400).says(f"This {message} tomorrow.")
    for day in ("0001-01-01", "1949-12-31", "9999-12-31"):
        rejected = await owner_page.submit(page, f"{ana}/progress", date=day, value="80")
        rejected.ok(400).says("Date: This must be from 1950-01-01 to 20")
    rejected = await owner_page.submit(page, f"{ana}/progress", date=tomorrow, value="80")
    rejected.ok(400).says(f"Date: This {message} today.")
    assert await photos(coach, ana) == []

    (await upload(owner_page, ana, PHOTO, createdAt=tomorrow)).ok().says("Front photo saved.")
    (await owner_page.submit(page, f"{ana}/progress", date=str(today), value="80")).ok().says("Value saved.")
