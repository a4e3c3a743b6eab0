"""Settings of a client on /train."""

from __future__ import annotations

import io
import zipfile
from datetime import timedelta

import pytest

from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from tests.conftest import PASSWORD
from tests.core.test_uploads import picture
from tests.support import training
from tests.support.client import CoachClient
from tests.support.stored import stored_document
from tests.support.training import Json, client_path
from tests.support.visitor import Visitor
from tests.web.conftest import ClientPage, NewVisitor

SETTINGS = "/train/settings"
EMAIL = "ana.settings@example.com"


@pytest.fixture
async def customer(coach: CoachClient) -> Json:
    return await coach.create_customer("Ana", surname="García", email=EMAIL, sendInvitation=False)


@pytest.fixture
async def ana(coach: CoachClient, customer: Json, client_page: ClientPage) -> Visitor:
    return await client_page(coach, customer)


async def stored(coach: CoachClient, customer: Json) -> Json:
    profile: Json = await stored_document(coach.ctx.db["customers"], {"_id": ObjectId(customer["_id"])})
    return profile


async def test_profile_is_changed(coach: CoachClient, customer: Json, ana: Visitor) -> None:
    path = f"{SETTINGS}/profile"
    (await ana.get(f"{path}/picture")).ok(404)
    page = (await ana.get(path)).ok().says("Ana García", EMAIL)
    wrong = await ana.submit(page, path, phone="+34 600 000 000", birthday="2090-01-01")
    wrong.ok(400).says("must not be in the future")
    assert 'value="+34 600 000 000"' in wrong.html
    (await ana.submit(wrong, path, birthday="1990-05-17")).ok().says("Changes saved.")
    profile = await stored(coach, customer)
    assert (profile["phone"], profile["birthday"]) == ("+34 600 000 000", "1990-05-17")
    assert "notifications" not in profile, "what is on another page is unchanged"

    outdated = await ana.submit(page, path, phone="1")
    outdated.ok(409).says("+34 600 000 000")
    (await ana.submit(page, f"{path}/photo", profilePhotoFile=("x.exe", b"MZ"))).ok(400).says("must be a JPEG")
    photo = await ana.submit(page, f"{path}/photo", profilePhotoFile=("me.png", picture()))
    photo.ok().says("Photo saved.")
    assert 'alt="Your photo"' in photo.html
    async with ana._http.get(f"{path}/picture") as response:
        assert (response.status, response.headers["Cache-Control"]) == (200, "no-store")
    files = await coach.ctx.db["fs.files"].find({"companyId": coach.ctx.company_id}).to_list(None)
    assert {str(file["customerId"]) for file in files} == {customer["_id"]}


async def test_preferences_are_changed(coach: CoachClient, customer: Json, ana: Visitor) -> None:
    path = f"{SETTINGS}/preferences"
    page = await ana.get(path)
    wrong = await ana.submit(page, path, timezone="Nowhere", language="es")
    wrong.ok(400).says("must be a time zone such as Europe/Madrid")
    assert '<option value="es" selected>' in wrong.html
    (await ana.submit(wrong, path, timezone=" new york ")).ok().says("Changes saved.")
    assert (await stored(coach, customer))["timezone"] == "America/New_York"
    page = await ana.submit(await ana.get(path), path, timezone="Asia/Tokyo")
    page.ok().says("Changes saved.")
    profile = await stored(coach, customer)
    assert (profile["timezone"], profile["language"]) == ("Asia/Tokyo", "es")
    cleared = await ana.submit(page, path, timezone="", language="")
    cleared.ok()
    profile = await stored(coach, customer)
    assert (profile["timezone"], profile["language"]) == (None, None)


async def test_notifications_are_changed(coach: CoachClient, customer: Json, ana: Visitor) -> None:
    path = f"{SETTINGS}/notifications"
    page = await ana.submit(await ana.get(path), path, messages__mail=None)
    page.ok().says("Changes saved.")
    profile = await stored(coach, customer)
    on = {"mail": True, "push": True}
    assert profile["notifications"]["messages"] == on | {"mail": False}
    assert profile["notifications"]["reminders"] == on
    (await ana.submit(page, path, messages__mail="true")).ok()
    assert (await stored(coach, customer))["notifications"]["messages"] == on


async def test_unusual_language_is_kept(coach: CoachClient, customer: Json, ana: Visitor) -> None:
    client = await coach.as_client(customer)
    (await client.patch("/customer/me", {"language": "zh-Hant-TW"})).ok()
    path = f"{SETTINGS}/preferences"
    (await ana.submit(await ana.get(path), path)).ok()
    assert (await stored(coach, customer))["language"] == "zh-Hant-TW"


async def test_password_change_ends_other_sessions(
    coach: CoachClient, customer: Json, client_page: ClientPage, new_visitor: NewVisitor
) -> None:
    session = await coach.interactive()
    (await session.put(client_path(customer, "password"), {"password": PASSWORD})).ok()
    ana, tablet = await client_page(coach, customer), await client_page(coach, customer)
    path = f"{SETTINGS}/password"
    page = await ana.get(path)
    wrong = await ana.submit(page, path, currentPassword="not this one", password="another long password")
    wrong.ok(400).says("This is not your password.")
    assert "another long password" not in wrong.html
    short = await ana.submit(page, path, currentPassword=PASSWORD, password="short")
    short.ok(400).says("must be at least 12 characters long")

    done = await ana.submit(page, path, currentPassword=PASSWORD, password="another long password")
    assert done.ok().says("Password changed.").path == SETTINGS
    assert (await tablet.get("/train")).path.startswith("/app/sign-in")
    again = await new_visitor().sign_in(EMAIL, "another long password")
    assert again.ok().path == "/train"


async def test_devices_are_listed_and_signed_out(
    coach: CoachClient, customer: Json, ana: Visitor, client_page: ClientPage
) -> None:
    path = f"{SETTINGS}/devices"
    (await ana.get(path)).ok().says("Unknown device This device", "You aren't signed in on any other device.")
    tablet, phone, laptop = [await client_page(coach, customer) for _ in range(3)]
    sessions = coach.ctx.db["sessions"]
    used = {"device": "Mozilla/5.0 (iPad) Safari/605", "lastUsedAt": now() - timedelta(days=9)}
    newest = await stored_document(sessions, {"companyId": coach.ctx.company_id}, sort=[("createdAt", -1)])
    await sessions.update_one({"_id": newest["_id"]}, {"$set": used})

    page = (await ana.get(path)).ok().says("Safari on iPad", "Last used")
    ended = await ana.submit(page, f"{path}/{newest['_id']}/end")
    assert "Safari on iPad" not in ended.ok().says("The device is signed out.").text
    assert (await laptop.get("/train")).path.startswith("/app/sign-in")
    (await ana.submit(ended, f"{path}/end-others")).ok().says("All other devices are signed out.", "any other device")
    for visitor in (tablet, phone):
        assert (await visitor.get("/train")).path.startswith("/app/sign-in")


async def test_data_is_downloaded_and_its_erasure_asked_for(coach: CoachClient, customer: Json, ana: Visitor) -> None:
    path = f"{SETTINGS}/data"
    page = (await ana.get(path)).ok()
    async with ana._http.get(f"{path}/my-training.zip") as response:
        assert response.status == 200
        assert "my-training.zip" in response.headers["Content-Disposition"]
        names = zipfile.ZipFile(io.BytesIO(await response.read())).namelist()
    assert "records/profile.jsonl" in names

    assert f"{path}/erasure" in page.links
    confirmation = (await ana.get(f"{path}/erasure")).ok().says("deleted permanently")
    assert "erasureRequestedAt" not in await stored(coach, customer), "opening the page asks for nothing"
    asked = await ana.submit(confirmation, f"{path}/erasure")
    asked.ok().says("Your coach has been asked to delete your data.", "You requested deletion of your data on")
    assert "erasureRequestedAt" in await stored(coach, customer)
    assert (await ana.get(f"{path}/erasure")).path == path


async def test_client_signs_out(coach: CoachClient, ana: Visitor) -> None:
    out = await ana.submit(await ana.get(SETTINGS), "/app/sign-out")
    out.ok().says("You are signed out.")
    assert (await ana.get(SETTINGS)).path == "/app/sign-in?next=/train/settings"


PLANNED = {"type": "reps_load", "minPlannedReps": 5, "maxPlannedReps": 5, "load": 100}


async def test_client_reads_and_enters_loads_in_their_own_unit(coach: CoachClient, client_page: ClientPage) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise()
    today = str(coach.ctx.caller.today())
    block = await training.block_with(coach, ana, training.exercise_of(squat, PLANNED), date=today)
    own = await coach.as_client(ana)
    assert (await own.get("/customer/me")).ok()["loadUnit"] is None
    (await own.patch("/customer/me", {"loadUnit": "stone"})).refused(400, "loadUnit")
    assert (await own.patch("/customer/me", {"loadUnit": "lb"})).ok()["loadUnit"] == "lb"

    page, path = await client_page(coach, ana), f"/train/workouts/{block['_id']}"
    workout = (await page.get(path)).ok().says("220.5 lb")
    item = block["items"][0]["_id"]
    form = {"index": "1", "exerciseId": squat["_id"], "reps": "5", "load": "222,5", "isCompleted": "true"}
    (await page.submit(workout, f"{path}/items/{item}/sets", **form)).ok()
    stored = (await training.read(coach, block))["items"][0]
    assert stored["customerSets"][0]["load"] == 100.92, "222.5 lb"
    assert stored["exerciseSets"][0]["load"] == 100
    shown = (await page.get(path)).ok()
    assert shown.form(f"{path}/items/{item}/sets").controls["load"]["value"] == "222.5"
    (await page.get(f"{path}/summary")).ok().says("1,112 lb")
    (await page.get(f"/train/exercises/{squat['_id']}")).ok().says("222.5 lb")
    (await page.get("/train/progress")).ok().says("lb")

    settings = await page.get("/train/settings/preferences")
    (await page.submit(settings, "/train/settings/preferences", loadUnit="")).ok().says("Changes saved.")
    (await page.get(path)).ok().says("100 kg")


async def test_set_of_a_page_from_before_has_the_unit_of_that_page(coach: CoachClient, client_page: ClientPage) -> None:
    """A set that waited on the device is sent with the unit in which it was entered."""
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise()
    today = str(coach.ctx.caller.today())
    block = await training.block_with(coach, ana, training.exercise_of(squat, PLANNED), date=today)
    page, path = await client_page(coach, ana), f"/train/workouts/{block['_id']}"
    opened = await page.get(path)
    (await (await coach.as_client(ana)).patch("/customer/me", {"loadUnit": "lb"})).ok()
    item = block["items"][0]["_id"]
    form = {"index": "1", "exerciseId": squat["_id"], "reps": "5", "load": "105", "isCompleted": "true"}
    (await page.submit(opened, f"{path}/items/{item}/sets", **form)).ok()
    assert (await training.read(coach, block))["items"][0]["customerSets"][0]["load"] == 105
