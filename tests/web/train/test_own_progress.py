"""A client's progress: exercises with records, measurements and photos."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.core.test_uploads import picture, stored
from tests.support import training
from tests.support.client import UNKNOWN, CoachClient
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import ClientPage

Json = dict[str, Any]
PHOTO = ("front.jpg", picture())


@pytest.fixture
async def ana(coach: CoachClient) -> Json:
    return await coach.create_customer("Ana")


@pytest.fixture
async def ana_page(coach: CoachClient, client_page: ClientPage, ana: Json) -> Visitor:
    return await client_page(coach, ana)


async def train(coach: CoachClient, ana: Json, exercise: Json, date: str, load: float, *, reps: int = 5) -> None:
    """Schedule an exercise and log two sets of it."""
    block = await coach.schedule(ana, date)
    path = f"/coach/customers/{ana['_id']}/wblocks/{block['_id']}/witems"
    item = (await coach.post(path, training.exercise_of(exercise))).ok(201)
    sets = [{"index": at, "reps": reps, "load": load, "isCompleted": True} for at in (1, 2)]
    (await coach.put(f"{path}/{item['_id']}/log", {"isCompleted": True, "customerSets": sets})).ok()


def days_ago(coach: CoachClient, days: int) -> str:
    return str(coach.ctx.caller.today() - timedelta(days=days))


async def hide(coach: CoachClient, ana: Json, day: str) -> None:
    body = {"startDate": day, "endDate": day, "isVisible": False}
    (await coach.put(f"/coach/customers/{ana['_id']}/visibility", body)).ok()


async def test_exercises_show_records_trend_and_sets_but_nothing_of_hidden_days(
    coach: CoachClient, ana_page: Visitor, ana: Json
) -> None:
    (await ana_page.get("/train/progress")).ok().says("No exercises done yet")
    squat, press = await coach.create_exercise("Squat"), await coach.create_exercise("Press")
    for days, load in ((21, 80), (14, 90), (7, 100)):
        await train(coach, ana, squat, days_ago(coach, days), load)
    await train(coach, ana, squat, days_ago(coach, 3), 44)
    await train(coach, ana, press, days_ago(coach, 3), 55)
    await hide(coach, ana, days_ago(coach, 3))

    progress = (await ana_page.get("/train/progress")).ok()
    progress.says("Squat", "Heaviest", "100 kg × 5", "116.7 kg", "3 workouts")
    assert 'aria-label="Estimated 1RM in the last 6 months"' in progress.html
    path = f"/train/exercises/{squat['_id']}"
    assert path in progress.links
    page = (await ana_page.get(path)).ok()
    page.says("My records", "100 kg × 5", "Top load", "Volume (load × reps)", "Progress by workout", "5 × 90 kg")
    assert page.html.count('<svg class="chart"') == 3
    for seen in (progress, page, await ana_page.get(f"{path}?months=120")):
        assert "44 kg" not in seen.text
        assert "Press" not in seen.text
    (await ana_page.get(f"/train/exercises/{press['_id']}")).ok().says("Not done yet")
    (await coach.delete(f"/exercises/{squat['_id']}")).ok(204)
    gone = (await ana_page.get("/train/progress")).ok().says("Squat", "100 kg × 5")
    assert path not in gone.links, "a deleted exercise has no page"


async def test_exercise_explains_itself_and_links_open_outside(coach: CoachClient, ana_page: Visitor) -> None:
    link = {"type": "link", "url": "https://media.example.com/plank"}
    plank = await coach.create_exercise(
        "Plank", defaultInstructions="Elbows under shoulders.", videoLink="https://video.example.com/p", media=[link]
    )
    page = (await ana_page.get(f"/train/exercises/{plank['_id']}")).ok().says("Elbows under shoulders.", "Not done yet")
    for url in ("https://video.example.com/p", "https://media.example.com/plank"):
        assert f'href="{url}" target="_blank" rel="noopener noreferrer"' in page.html
    (await coach.delete(f"/exercises/{plank['_id']}")).ok(204)
    for unknown in (plank["_id"], UNKNOWN):
        (await ana_page.get(f"/train/exercises/{unknown}")).ok(404)


async def assign_body(coach: CoachClient, ana: Json) -> Json:
    units = {unit["shortName"]: unit["_id"] for unit in (await coach.get("/metrics-units")).ok()}
    metrics = [{"name": "Weight", "metricUnitId": units["kg"]}, {"name": "Waist", "metricUnitId": units["cm"]}]
    body: Json = (await coach.post("/coach/metrics-sets", {"name": "Body", "metrics": metrics})).ok(201)
    (await coach.post(f"/coach/customers/{ana['_id']}/metrics-sets", {"metricsSetId": body["_id"]})).ok(201)
    return body


async def test_values_are_entered_and_shown_over_time(coach: CoachClient, ana_page: Visitor, ana: Json) -> None:
    (await ana_page.get("/train/measurements")).ok().says("Nothing to measure yet")
    body = await assign_body(coach, ana)
    page = (await ana_page.get("/train/measurements")).ok().says("Body", "Weight", "Waist", "No value yet")
    earlier = days_ago(coach, 10)
    page = await ana_page.submit(page, "/train/measurements", date=earlier, values__0__value="80,5")
    page.ok().says("1 value saved.", "Last: 80.5 kg")
    page = await ana_page.submit(page, "/train/measurements", values__0__value="79", values__1__value="82.25")
    page.ok().says("2 values saved.", "Last: 79 kg", "Last: 82.25 cm")

    history = f"/train/measurements/{body['_id']}/{body['metrics'][0]['_id']}"
    assert history in page.links
    shown = (await ana_page.get(history)).ok().says("79 kg", "−1.5 kg", "80.5 kg")
    assert 'aria-label="Weight in kg by date"' in shown.html
    (await ana_page.get("/train/progress")).says("Weight", "79 kg", "−1.5 kg since")
    (await ana_page.get(f"/train/measurements/{UNKNOWN}/{body['metrics'][0]['_id']}")).ok(404)


async def test_rejected_values_stay_in_their_fields(coach: CoachClient, ana_page: Visitor, ana: Json) -> None:
    body = await assign_body(coach, ana)
    page = await ana_page.get("/train/measurements")
    tomorrow = days_ago(coach, -2)
    for typed, sentence in (
        ({"values__0__value": "heavy", "values__1__value": "82"}, "This must be a number such as 77.5 or 77,5"),
        ({"values__0__value": "", "values__1__value": ""}, "Enter at least one value."),
        ({"values__0__value": "80", "date": tomorrow}, "This must be a date from 1950 on and not after today."),
    ):
        rejected = (await ana_page.submit(page, "/train/measurements", **typed)).ok(400).says(sentence)
        controls = rejected.form("/train/measurements").controls
        assert {name: controls[name.replace("__", ".")]["value"] for name in typed} == typed
    (await coach.delete(f"/coach/customers/{ana['_id']}/metrics-sets/{body['_id']}")).ok(204)
    gone = await ana_page.submit(page, "/train/measurements", values__0__value="80")
    gone.ok(409)
    values = (await coach.get(f"/coach/customers/{ana['_id']}/metrics-sets")).ok()
    assert values == []


async def add_photo(visitor: Visitor, page: HtmlPage, file: tuple[str, bytes] = PHOTO, **typed: Any) -> HtmlPage:
    return await visitor.submit(page, "/train/photos", **{"front": file} | typed)


async def test_photos_are_added_compared_with_the_weight_and_deleted(
    coach: CoachClient, ana_page: Visitor, ana: Json
) -> None:
    await assign_body(coach, ana)
    first, last = days_ago(coach, 30), days_ago(coach, 0)
    for day, weight in ((days_ago(coach, 32), "82"), (last, "79")):
        page = await ana_page.get(f"/train/measurements?date={day}")
        (await ana_page.submit(page, "/train/measurements", values__0__value=weight)).ok()
    page = (await ana_page.get("/train/photos")).ok()
    page = (await add_photo(ana_page, page, createdAt=first)).ok().says("Front photo saved.")
    assert page.form("/train/photos").controls["createdAt"]["value"] == first
    (await add_photo(ana_page, page, ("", b""), side=PHOTO, back=PHOTO)).says("Side and back photos saved.")
    await add_photo(ana_page, await ana_page.get("/train/photos"), createdAt=last)

    compared = (await ana_page.get(f"/train/photos?left={first}&right={last}&side=front")).ok()
    compared.says("Compare", "82 kg", "79 kg", "Change in weight: −3 kg")
    pictures = [link for link in compared.links if link.endswith("picture?side=front")]
    shown = await ana_page._http.get(pictures[0])
    assert (shown.status, shown.content_type, shown.headers["Cache-Control"]) == (200, "image/jpeg", "no-store")
    delete = next(link for link in compared.links if link.endswith("/delete"))
    confirmation = (await ana_page.get(delete)).ok().says("This cannot be undone.")
    (await ana_page.submit(confirmation, delete)).ok().says("Photos deleted.")
    assert await stored(coach) == (6, 0)


async def test_photos_of_others_are_not_found_and_wrong_files_are_reported(
    coach: CoachClient, ana_page: Visitor, client_page: ClientPage
) -> None:
    page = await ana_page.get("/train/photos")
    rejected = await add_photo(ana_page, page, ("notes.txt", b"text"), createdAt=days_ago(coach, 5))
    rejected.ok(400).says("This must be a JPEG, PNG, WebP or HEIC picture.", "Choose the files again")
    assert rejected.form("/train/photos").controls["createdAt"]["value"] == days_ago(coach, 5)
    (await add_photo(ana_page, page, createdAt=days_ago(coach, -2))).ok(400).says("not after today")

    saved = (await add_photo(ana_page, page)).ok()
    other = await client_page(coach, await coach.create_customer("Bea"))
    for link in [link for link in saved.links if link.startswith("/train/photos/")]:
        (await other.get(link)).ok(404)
    assert "/train/photos/" not in (await other.get("/train/photos")).html.replace('"/train/photos"', "")
