"""Loads and measured values that are probably typing errors are saved once they are confirmed, by coaches and clients."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.support import training
from tests.support.client import MONDAY, TUESDAY, CoachClient
from tests.support.training import Json, block_with, client_path, history, metric_set, metrics_of
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import ClientPage

CONFIRM = "The load is right"


async def heavy(coach: CoachClient, *, load: float = 60) -> tuple[str, dict[str, Any]]:
    """Return the path of a workout with a squat and a circuit, and the workout."""
    ana = await coach.create_customer("Ana")
    squat = await coach.create_exercise("Zercher squat")
    planned = {"type": "reps_load", "minPlannedReps": 8, "load": load}
    block = await training.block_with(
        coach, ana, training.exercise_of(squat, planned, planned), training.circuit_of(squat, rounds=2)
    )
    return f"/app/customers/{ana['_id']}/blocks/{block['_id']}", block


async def loads(coach: CoachClient, block: dict[str, Any]) -> list[Any]:
    return [each["load"] for each in (await training.read(coach, block))["items"][0]["exerciseSets"]]


def asked(page: HtmlPage, message: str) -> HtmlPage:
    """Assert that a page asks about a load."""
    return page.ok(400).says(message, CONFIRM)


async def test_planned_loads_are_asked_about(coach: CoachClient, owner_page: Visitor) -> None:
    path, block = await heavy(coach)
    item = f"{path}/items/{block['items'][0]['_id']}"
    page = await owner_page.get(path)
    wrong = asked(
        await owner_page.submit(page, f"{item}/card", sets__1__load="600"),
        "This is unusual: Zercher squat 600 kg: the heaviest in 12 months was 60 kg.",
    )
    assert await loads(coach, block) == [60, 60]
    (await owner_page.submit(wrong, f"{item}/card", confirmed="true")).ok().says("Changes saved.")
    assert await loads(coach, block) == [60, 600]
    page = await owner_page.get(path)
    (await owner_page.submit(page, f"{item}/card", sets__0__load="580")).ok(), "a load like those before"

    page = await owner_page.get(item)
    (await owner_page.submit(page, f"{item}/set-text", setText="1x8 @20kg")).ok()
    page = await owner_page.get(item)
    far = await owner_page.submit(page, f"{item}/set-text", setText="2x8 @31kg")
    asked(far, "Zercher squat 31 kg: the heaviest in 12 months was 20 kg.")
    asked(await owner_page.submit(page, f"{item}/sets", sets__0__load="31"), "Zercher squat 31 kg")
    (await owner_page.submit(page, f"{item}/sets", sets__0__load="30")).ok().says("Changes saved.")
    page = await owner_page.get(item)
    (await owner_page.submit(page, f"{item}/set-text", setText="2x8 @501kg", confirmed="true")).ok()
    assert await loads(coach, block) == [501, 501]


async def test_sets_repetitions_and_times_are_asked_about(coach: CoachClient, owner_page: Visitor) -> None:
    path, block = await heavy(coach)
    item = f"{path}/items/{block['items'][0]['_id']}"
    for text, message in (
        ("21x8", "This is unusual: 21 sets: more than 20."),
        ("2x101", "This is unusual: 101 repetitions: more than 100."),
        ("1x3601s", "This is unusual: 3,601 seconds of a set: more than 3,600."),
    ):
        page = await owner_page.get(item)
        asked(await owner_page.submit(page, f"{item}/set-text", setText=text), message)
    page = await owner_page.get(item)
    (await owner_page.submit(page, f"{item}/set-text", setText="21x8", confirmed="true")).ok()
    page = await owner_page.get(item)
    (await owner_page.submit(page, f"{item}/set-text", setText="21x9")).ok().says("Changes saved.")


async def test_loads_of_circuits_logs_and_maximums_are_asked_about(coach: CoachClient, owner_page: Visitor) -> None:
    path, block = await heavy(coach)
    squat, circuit = block["items"]
    entry = f"{path}/items/{circuit['_id']}/exercises/{squat['exerciseId']}"
    page = await owner_page.get(path)
    asked(await owner_page.submit(page, f"{entry}/card", sets__0__load="91"), "Zercher squat 91 kg")
    asked(await owner_page.submit(await owner_page.get(entry), entry, sets__0__load="91"), "Zercher squat 91 kg")

    log = f"{path}/items/{squat['_id']}/log"
    page = await owner_page.get(log)
    typed = {"customerSets__0__load": "625", "customerSets__0__isCompleted": "true"}
    wrong = asked(await owner_page.submit(page, f"{log}/exercise", **typed), "Zercher squat 625 kg")
    (await owner_page.submit(wrong, f"{log}/exercise", customerSets__0__load="62,5")).ok().says("Log saved.")

    customer = path.partition("/blocks")[0]
    records = f"{customer}/records"
    page = await owner_page.get(f"{records}?exerciseId={squat['exerciseId']}")
    chosen = {"exerciseId": squat["exerciseId"]}
    (await owner_page.submit(page, records, **chosen, value="90")).ok().says("Changes saved.")
    asked(await owner_page.submit(page, records, **chosen, value="900"), "Zercher squat 900 kg")


async def test_loads_of_text_are_asked_about_in_the_unit_of_the_company(
    coach: CoachClient, owner_page: Visitor
) -> None:
    """Those of a client are compared with the client's; of templates and programs they are asked about from 1,100 lb on."""
    (await coach.patch("/coach/account", {"loadUnit": "lb"})).ok()
    path, _ = await heavy(coach, load=800)
    customer = path.partition("/blocks")[0]
    text = "Zercher squat: 3x8 @1201lb"
    for address, action, more, message in (
        (f"{customer}?week={MONDAY}", f"{customer}/blocks", {"name": "Legs"}, "the heaviest in 12 months was 800 lb"),
        (path, f"{path}/text", {}, "the heaviest in 12 months was 800 lb"),
        ("/app/templates", "/app/templates", {"name": "Legs"}, "1,201 lb: more than 1,100 lb"),
    ):
        page = await owner_page.get(address)
        wrong = asked(await owner_page.submit(page, action, text=text, **more), message)
        (await owner_page.submit(wrong, action, text=text.replace("1201", "800"), **more)).ok()
    page = await owner_page.get("/app/programs")
    program = {"name": "Base", "text": f"Day 1: Legs\n{text}"}
    wrong = asked(await owner_page.submit(page, "/app/programs", **program), "1,201 lb: more than 1,100 lb")
    (await owner_page.submit(wrong, "/app/programs", confirmed="true")).ok().says("Base created.")


PLANNED = {"type": "reps_load", "minPlannedReps": 5, "maxPlannedReps": 5, "load": 20}


async def test_unusual_load_is_saved_once_it_is_confirmed(coach: CoachClient, client_page: ClientPage) -> None:
    """More than 10 kg and a half above the heaviest of this exercise; where there is none, above 60 kg."""
    ana, squat, row = (
        await coach.create_customer("Ana"),
        await coach.create_exercise(),
        await coach.create_exercise("Row"),
    )
    today = str(coach.ctx.caller.today())
    circuit = training.circuit_of(squat, row)
    circuit["circuitExercises"][0]["sets"] = [PLANNED]
    block = await training.block_with(coach, ana, training.exercise_of(squat, PLANNED), circuit, date=today)
    page, path = await client_page(coach, ana), f"/train/workouts/{block['_id']}"
    opened = await page.get(path)
    assert 'data-usual="30"' in opened.html and 'data-usual="60"' in opened.html
    single, in_circuit = (f"{path}/items/{item['_id']}/sets" for item in block["items"])
    form = {"index": "1", "exerciseId": squat["_id"], "reps": "5", "isCompleted": "true"}

    asked = await page.submit(opened, single, **form, load="31")
    asked.ok(400).says("This is unusual: 31 kg: the heaviest in 12 months was 20 kg.", "This is right, although")
    assert (await training.read(coach, block))["items"][0]["customerSets"] == []
    (await page.submit(asked, single, **form, load="31", confirmed="true")).ok()
    (await page.submit(await page.get(path), single, **form, load="46")).ok()
    assert (await training.read(coach, block))["items"][0]["customerSets"][0]["load"] == 46

    of_row = {**form, "exerciseId": row["_id"], "round": "1"}
    none = (await page.submit(opened, in_circuit, **of_row, load="61")).ok(400)
    none.says("61 kg: no load to compare with in 12 months")
    (await page.submit(opened, in_circuit, **of_row, load="60")).ok()


async def test_limit_is_in_the_unit_of_the_client(coach: CoachClient, client_page: ClientPage) -> None:
    """A set that a script has stored on the device is saved: the script has asked."""
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise()
    (await (await coach.as_client(ana)).patch("/customer/me", {"loadUnit": "lb"})).ok()
    today = str(coach.ctx.caller.today())
    block = await training.block_with(coach, ana, training.exercise_of(squat, {"type": "reps"}), date=today)
    page, path = await client_page(coach, ana), f"/train/workouts/{block['_id']}"
    opened, sets = await page.get(path), f"{path}/items/{block['items'][0]['_id']}/sets"
    assert 'data-usual="132.3"' in opened.html
    form = {"index": "1", "exerciseId": squat["_id"], "reps": "5", "isCompleted": "true"}
    (await page.submit(opened, sets, **form, load="133")).ok(400).says("133 lb: no load to compare with")
    (await page.submit(opened, sets, **form, load="132")).ok()
    later = f"{today}T23:59:00.000Z"
    (await page.submit(opened, sets, **{**form, "index": "2"}, load="1101", loggedAt=later)).ok()


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
    asked.ok(400).says("far from the last value: 80", "The value is right")
    workout = f"/train/workouts/{block['_id']}"
    action = f"{workout}/items/{item}/metrics"
    asked = await own.submit(await own.get(workout), action, values__1__value="8.2")
    asked.ok(400).says("far from the last value: 80", "The values are right")
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
    ana, body = await coach.create_customer("Ana"), await metric_set(coach, "Weight")
    (await coach.post(client_path(ana, "metrics-sets"), {"metricsSetId": body["_id"]})).ok(201)
    path = client_path(ana, "metrics-sets", body["_id"], "entries")
    today = coach.ctx.caller.today()
    for days, value in ((30, 82), (10, 80.5)):
        entry = {"metricId": body["metrics"][0]["_id"], "date": str(today - timedelta(days=days)), "value": value}
        (await coach.post(path, entry)).ok(201)
    here = f"/app/customers/{ana['_id']}/progress"

    page = (await owner_page.get(here)).ok().says("80.5", "-1.5", "since")
    assert page.html.count('<svg class="chart"') == 2, "the metric and the calendar; no session is logged yet"
    assert '<path class="line"' in page.html
    saved = await owner_page.submit(page, here, date=str(today), value="80")
    saved.says("Value saved.", "80", "-2")
    (await owner_page.submit(page, here, date=str(today), value="heavy")).ok(400).says(
        "This must be a number such as 77.5 or 77,5"
    )
    for weeks in ("52", "nonsense"):
        (await owner_page.get(f"{here}?weeks={weeks}")).ok()
