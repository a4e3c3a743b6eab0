"""Measured values in the pages of coaches and clients: those far from the last are confirmed, wrong ones deleted."""

from __future__ import annotations

from datetime import timedelta

from tests.support.client import MONDAY, TUESDAY, CoachClient
from tests.support.declared_world import make_world
from tests.support.training import Json, block_with, client_path, history, metric_set, metrics_of
from tests.support.visitor import Visitor
from tests.web.conftest import ClientPage


async def assigned(coach: CoachClient) -> tuple[Json, Json]:
    """A client and the metric set that they are assigned."""
    ana, body = await coach.create_customer("Ana"), await metric_set(coach, "Weight", "Waist")
    (await coach.post(client_path(ana, "metrics-sets"), {"metricsSetId": body["_id"]})).ok(201)
    return ana, body


def day(coach: CoachClient, ahead: int) -> str:
    """The local date so many days after today."""
    return str(coach.ctx.caller.today() + timedelta(days=ahead))


async def test_pages_ask_about_values_far_from_the_last(
    coach: CoachClient, owner_page: Visitor, client_page: ClientPage
) -> None:
    ana, body = await assigned(coach)
    waist = body["metrics"][1]
    entries = client_path(ana, "metrics-sets", body["_id"], "entries")
    (await coach.post(entries, {"metricId": waist["_id"], "date": MONDAY, "value": 80})).ok(201)

    progress = client_path(ana, "progress").replace("/coach/", "/app/")
    page = await owner_page.get(progress)
    typed = {"metricId": waist["_id"], "date": TUESDAY, "value": "820"}
    asked = (await owner_page.submit(page, progress, **typed)).ok(400)
    asked.says("far from the last value: 80 on Mon 2 Mar 2026", "The value is right")
    (await owner_page.submit(page, progress, **typed | {"date": day(coach, 1)})).ok(400).says("not after today")
    (await owner_page.submit(asked, progress, **typed, confirmed="true")).ok().says("Value saved.")

    own = await client_page(coach, ana)
    asked = await own.submit(await own.get("/train/measurements"), "/train/measurements", values__1__value="80")
    asked.ok(400).says("far from the last value: 820", "The value is right")
    saved = await own.submit(asked, "/train/measurements", values__1__value="80", confirmed="true")
    saved.ok().says("1 value saved.")

    block = await block_with(coach, ana, metrics_of(body), date=day(coach, 0))
    item = block["items"][0]["_id"]
    form = f"/app/customers/{ana['_id']}/blocks/{block['_id']}/items/{item}/log"
    asked = await owner_page.submit(await owner_page.get(form), f"{form}/metrics", values__1__value="8,2")
    asked.ok(400).says("far from the last value: 820", "The value is right")
    workout = f"/train/workouts/{block['_id']}"
    action = f"{workout}/items/{item}/metrics"
    asked = await own.submit(await own.get(workout), action, values__1__value="8.2")
    asked.ok(400).says("far from the last value: 820", "The values are right")
    (await own.submit(asked, action, values__1__value="8.2", confirmed="true")).ok()
    assert [entry["value"] for entry in await history(coach, ana, body, waist)] == [80, 820, 8.2]


async def test_values_are_deleted_in_pages(coach: CoachClient, owner_page: Visitor, client_page: ClientPage) -> None:
    ana, body = await assigned(coach)
    metric = body["metrics"][0]["_id"]
    entries = client_path(ana, "metrics-sets", body["_id"], "entries")
    for date, value in ((MONDAY, 72.5), (TUESDAY, 725)):
        (await coach.post(entries, {"metricId": metric, "date": date, "value": value})).ok(201)

    page = await owner_page.get(client_path(ana, "progress").replace("/coach/", "/app/"))
    values = f"/app/customers/{ana['_id']}/progress/sets/{body['_id']}/metrics/{metric}"
    assert values in page.links
    page = (await owner_page.get(values)).ok().says("725", "72.5")
    (await owner_page.submit(page, f"{values}/delete", date=TUESDAY)).ok().says("Value deleted.")
    own, path = await client_page(coach, ana), f"/train/measurements/{body['_id']}/{metric}"
    (await own.submit(await own.get(path), f"{path}/delete", date=MONDAY)).ok().says("Value deleted.", "No values yet")
    assert await history(coach, ana, body) == []


async def test_progress_page_shows_charts_and_values(coach: CoachClient, owner_page: Visitor) -> None:
    world = await make_world(coach)
    path = f"/coach/customers/{world['customerId']}/metrics-sets/{world['metricsSetId']}/entries"
    today = coach.ctx.caller.today()
    for days, value in ((30, 82), (10, 80.5)):
        entry = {"metricId": world["metricId"], "date": str(today - timedelta(days=days)), "value": value}
        (await coach.post(path, entry)).ok(201)
    here = f"/app/customers/{world['customerId']}/progress"

    page = (await owner_page.get(here)).ok().says("80.5", "-1.5", "since")
    assert page.html.count('<svg class="chart"') == 2, "the metric and the calendar; no session is logged yet"
    assert '<path class="line"' in page.html
    saved = await owner_page.submit(page, here, date=str(today), value="80")
    saved.says("Value saved.", "80", "-2")
    (await owner_page.submit(page, here, date=str(today), value="heavy")).ok(400).says(
        "This must be a number such as 77.5 or 77,5"
    )
    for weeks in ("4", "26", "52", "nonsense"):
        (await owner_page.get(f"{here}?weeks={weeks}")).ok()
