"""The pages of notes, recent activity, personal records and metrics."""

from __future__ import annotations

import json
import re
from datetime import timedelta

from coaching_service.web.formatting import format_date
from tests.conftest import PASSWORD
from tests.support import training
from tests.support.client import MONDAY, UNKNOWN, CoachClient
from tests.support.training import Json, block_with, exercise_of, log
from tests.support.visitor import Visitor
from tests.web.conftest import ClientPage


async def test_markup_in_notes_is_escaped(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    path = f"/app/customers/{ana['_id']}/notes"
    page = await owner_page.get(path)

    saved = await owner_page.submit(page, path, content="Knee <script>alert(1)</script>\n\nGo easy\r\n& slow")

    saved.ok().says("Note added.", "Knee <script>alert(1)</script>", "Go easy & slow")
    assert "<p>Go easy<br>&amp; slow</p>" in saved.html
    assert "<script>alert" not in saved.html
    (note,) = (await coach.get(f"/coach/customers/{ana['_id']}/notes")).ok()
    confirmation = await owner_page.get(f"{path}/{note['_id']}/delete")
    (await owner_page.submit(confirmation, f"{path}/{note['_id']}/delete")).ok().says("Note deleted.", "No notes yet")


async def test_note_is_changed_in_place(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    path, notes = f"/app/customers/{ana['_id']}/notes", f"/coach/customers/{ana['_id']}/notes"
    plain = (await coach.post(notes, {"content": "<p>Knee &amp; hip<br>easy</p><p>Second</p>"})).ok(201)
    listed = (await coach.post(notes, {"content": "<ul><li><b>Row</b></li><li>Run</li></ul>"})).ok(201)
    edit, edit_listed = f"{path}/{plain['_id']}", f"{path}/{listed['_id']}"
    page = (await owner_page.get(path)).ok()
    assert {edit, edit_listed} <= {link.partition("#")[0] for link in page.links}

    page = (await owner_page.get(edit)).ok()

    assert dict(page.form(edit).fields)["content"] == "Knee & hip\neasy\n\nSecond"
    assert "formatting" not in page.text
    (await owner_page.submit(page, edit, content=" ")).ok(400).says("This should not be empty.")
    saved = await owner_page.submit(page, edit, content="Knee\n\nbetter", isHealth="true")
    saved.ok().says("Note changed.", "Knee better", "Health")
    (await owner_page.submit(page, edit, content="Too late")).ok(409).says("has been changed since", "Saved value")
    page = (await owner_page.get(edit_listed)).ok().says("its formatting is removed")
    assert dict(page.form(edit_listed).fields)["content"] == "- Row\n- Run"
    (await owner_page.submit(page, edit_listed, isPinned="true")).ok().says("Note changed.", "Pinned")
    by_id = {note["_id"]: note for note in (await coach.get(notes)).ok()}
    assert by_id[plain["_id"]]["content"] == "<p>Knee</p><p>better</p>"
    assert (by_id[listed["_id"]]["content"], by_id[listed["_id"]]["isPinned"]) == (listed["content"], True)


async def test_training_maximum_is_set_and_removed(coach: CoachClient, owner_page: Visitor) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    half = {"type": "reps_load", "minPlannedReps": 5, "loadPercent": 50}
    block = await training.block_with(coach, ana, training.exercise_of(squat, half))
    workout, path = f"/app/customers/{ana['_id']}/blocks/{block['_id']}", f"/app/customers/{ana['_id']}/records"
    page = (await owner_page.get(f"{workout}/items/{block['items'][0]['_id']}")).ok()
    (link,) = (link for link in page.links if f"{path}?exerciseId={squat['_id']}" in link)
    page = (await owner_page.get(link.partition("#")[0])).ok()

    page = await owner_page.submit(page, path, value="142,5")

    page.ok().says("Changes saved.", "Squat 142.5 kg")
    (await owner_page.get(workout)).says("1 × 5 × 50 % (72.5 kg)")  # 71.25 is 28.5 steps of 2.5
    invalid = await owner_page.submit(page, path, exerciseId=squat["_id"], value="-1")
    invalid.ok(400).says("This must not be less than 0.")
    (await owner_page.submit(page, path, exerciseId=squat["_id"], value="")).ok().says("Changes saved.")
    assert (await coach.get(training.client_path(ana, "training-maxes"))).ok() == []


async def test_invalid_note_is_reported_at_its_field(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    path = f"/app/customers/{ana['_id']}/notes"
    page = await owner_page.get(path)

    (await owner_page.submit(page, path, content="   ")).ok(400).says("This should not be empty.")
    long = await owner_page.submit(page, path, content="x" * 10_001)
    long.ok(400).says("This must not be longer than 10000 characters.")
    for fits in ("x\r\n" * 5_000, "\N{PERSON CLIMBING}" * 10_000):
        (await owner_page.submit(page, path, content=fits.strip())).ok().says("Note added.")


async def test_recent_activity_describes_events(coach: CoachClient, owner_page: Visitor) -> None:
    ana, body = await coach.create_customer("Ana"), await training.metric_set(coach)
    squat = await coach.create_exercise("Squat")
    earlier = await training.block_with(coach, ana, training.exercise_of(squat), date="2026-02-23")
    (await training.log(coach, earlier, earlier["items"][0], customerSets=[{"reps": 4, "load": 70}])).ok()
    block = await training.block_with(coach, ana, training.exercise_of(squat), training.metrics_of(body))
    lift, measure = block["items"]
    (await training.log(coach, block, lift, customerSets=[{"reps": 5, "load": 80}])).ok()
    (await training.log(coach, block, measure, values=[{"metricId": body["metrics"][0]["_id"], "value": 80}])).ok()
    (await coach.post(training.client_path(ana, "metrics-sets"), {"metricsSetId": body["_id"]})).ok(201)
    entry = {"metricId": body["metrics"][0]["_id"], "date": MONDAY, "value": 79.5}
    (await coach.post(training.client_path(ana, "metrics-sets", body["_id"], "entries"), entry)).ok(201)
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "One", "day": 1})).ok(201)
    assign = {"customerId": ana["_id"], "startDate": MONDAY}
    (await coach.post(f"/coach/programs/{program['_id']}/assign", assign)).ok(201)

    page = (await owner_page.get(f"/app/customers/{ana['_id']}/notes")).ok()

    page.says("Completed Legs", "Logged Squat in Legs", "Recorded Body in Legs", "Body weight: 79.5 kg")
    page.says("Personal record in Squat. Most reps: 5 reps")
    (await owner_page.get(f"/app/customers/{ana['_id']}/records")).says("Most reps 5 reps")
    page.says(
        "Personal record in Squat. Heaviest load: 80 kg", "Program Base assigned, 1 workout", "for Mon 2 Mar 2026"
    )


async def test_metric_value_may_have_a_decimal_comma(coach: CoachClient, owner_page: Visitor) -> None:
    ana, body = await coach.create_customer("Ana"), await training.metric_set(coach)
    (await coach.post(training.client_path(ana, "metrics-sets"), {"metricsSetId": body["_id"]})).ok(201)
    path = f"/app/customers/{ana['_id']}/progress"
    page = await owner_page.get(path)
    assert page.form(path).controls["value"]["inputmode"] == "decimal"

    (await owner_page.submit(page, path, value="79,4", date=MONDAY)).ok().says("Value saved.")

    assert [each["value"] for each in await training.history(coach, ana, body)] == [79.4]


async def test_deleted_metric_set_is_a_bad_request(coach: CoachClient, owner_page: Visitor) -> None:
    ana, body = await coach.create_customer("Ana"), await training.metric_set(coach)
    (await coach.post(training.client_path(ana, "metrics-sets"), {"metricsSetId": body["_id"]})).ok(201)
    path = f"/app/customers/{ana['_id']}/progress"
    page = await owner_page.get(path)

    rejected = await owner_page.submit(page, path, metricsSetId=UNKNOWN, value="79", date=MONDAY)

    rejected.ok(400).says("The metrics set does not exist.", "Progress")


async def test_future_value_is_listed_separately(coach: CoachClient, owner_page: Visitor) -> None:
    """Earlier versions accepted values of the future."""
    ana, body = await coach.create_customer("Ana"), await training.metric_set(coach)
    (await coach.post(training.client_path(ana, "metrics-sets"), {"metricsSetId": body["_id"]})).ok(201)
    for day, value in ((str(coach.ctx.caller.today()), 80), (MONDAY, 99)):
        entry = {"metricId": body["metrics"][0]["_id"], "date": day, "value": value}
        (await coach.post(training.client_path(ana, "metrics-sets", body["_id"], "entries"), entry)).ok(201)
    where = {"companyId": coach.ctx.company_id, "value": 99}
    await coach.ctx.db["metricEntries"].update_one(where, {"$set": {"date": "2062-03-01"}})

    page = (await owner_page.get(f"/app/customers/{ana['_id']}/progress")).ok()

    page.says("80 kg latest", "Not in the chart because dated after today: 99 kg on Wed 1 Mar 2062.")
    assert "+19" not in page.text


async def test_metric_change_states_the_date_of_the_first_value(coach: CoachClient, owner_page: Visitor) -> None:
    ana, body = await coach.create_customer("Ana"), await training.metric_set(coach)
    (await coach.post(training.client_path(ana, "metrics-sets"), {"metricsSetId": body["_id"]})).ok(201)
    today = coach.ctx.caller.today()
    first = today - timedelta(days=20)
    for day, value in ((first, 82.6), (today, 80)):
        entry = {"metricId": body["metrics"][0]["_id"], "date": str(day), "value": value}
        (await coach.post(training.client_path(ana, "metrics-sets", body["_id"], "entries"), entry)).ok(201)

    page = (await owner_page.get(f"/app/customers/{ana['_id']}/progress?weeks=26")).ok()

    page.says(f"-2.6 kg since {first:%a} {first.day} {first:%b %Y}")
    assert "in 26 weeks" not in page.text


async def test_compliance_counts_past_days_and_completed_todays(coach: CoachClient, owner_page: Visitor) -> None:
    """Contract 7: the page has the same figures as the response over REST."""
    ana, today = await coach.create_customer("Ana"), coach.ctx.caller.today()
    for offset, completed in ((-2, True), (-1, False), (0, False), (1, False)):
        date = str(today + timedelta(days=offset))
        block = await training.block_with(coach, ana, training.task(), date=date)
        if completed:
            (await training.log(coach, block, block["items"][0])).ok()

    page = (await owner_page.get(f"/app/customers/{ana['_id']}/progress?weeks=26")).ok()

    page.says("50 % of workout days completed", "1 of 2 workout days so far")


async def test_recent_activity_names_the_items_and_the_author(
    coach: CoachClient, owner_page: Visitor, anonymous: CoachClient
) -> None:
    ana = await coach.create_customer("Ana", surname="Flores", email=f"ana@{coach.ctx.company_id}.test")
    squat, row = await coach.create_exercise("Squat"), await coach.create_exercise("Row")
    block = await training.block_with(
        coach, ana, training.exercise_of(squat), training.circuit_of(row), training.task("Stretch"), training.form_of()
    )
    first_access = {"token": ana["firstAccessToken"], "password": PASSWORD}
    tokens = (await anonymous.post("/auth/first-access", first_access)).ok()
    client = anonymous.with_bearer(tokens["accessToken"])
    (await training.log(coach, block, block["items"][0])).ok()
    for item in block["items"][1:]:
        (await training.own_log(client, block, item, isCompleted=True)).ok()

    page = (await owner_page.get(f"/app/customers/{ana['_id']}/notes")).ok()

    events = re.findall(r"<li><b>(?:<a [^>]*>)?(.*?)(?:</a>)?</b><small>(.*?)</small>", page.html)
    authors = {description: details.partition(" · ")[0] for description, details in events}
    assert authors == {
        "Logged Squat in Legs": "Olga Owner (API key)",
        "Logged Finisher in Legs": "Ana",
        "Logged Stretch in Legs": "Ana",
        "Completed form: Check-in": "Ana",
        "Completed Legs": "Ana",
    }


FIRST, SECOND = "2026-03-02", "2026-03-04"


async def train(coach: CoachClient, customer: Json, exercise: Json, date: str, *sets: Json) -> None:
    """Log sets of an exercise."""
    block = await block_with(coach, customer, exercise_of(exercise), date=date)
    (await log(coach, block, block["items"][0], customerSets=list(sets))).ok()


async def test_times_distances_and_assistance_are_shown(
    coach: CoachClient, owner_page: Visitor, client_page: ClientPage
) -> None:
    ana = await coach.create_customer("Ana")
    plank, run = await coach.create_exercise("Plank"), await coach.create_exercise("Run")
    pull_up = await coach.create_exercise("Pull-up", loadType="assistance")
    for date, seconds, fastest, assistance in ((FIRST, 60, 1500, 30), (SECOND, 90, 1440, 20)):
        await train(coach, ana, plank, date, {"seconds": seconds})
        await train(coach, ana, run, date, {"meters": 5000, "seconds": fastest})
        await train(coach, ana, pull_up, date, {"reps": 8, "load": assistance})

    page = (await owner_page.get(f"/app/customers/{ana['_id']}/records")).ok()
    page.says(
        "Longest time 1 min 30 s", "Farthest distance 5,000 m", "Fastest 5,000 m 24 min", "Least assistance 20 kg × 8"
    )
    sled = await coach.create_exercise("Sled")
    await train(coach, ana, sled, SECOND, {"meters": 20, "load": 90})
    activity = (await owner_page.get(f"/app/customers/{ana['_id']}/notes")).ok()
    activity.says("Least assistance: 20 kg", "Personal record in Plank.", "First time: Sled.")

    own = await client_page(coach, ana)
    (await own.get("/train/progress")).ok().says("1 min 30 s", "24 min", "20 kg × 8")
    (await own.get(f"/train/exercises/{plank['_id']}?months=120")).ok().says("Longest time", "1 min 30 s")
    (await own.get(f"/train/exercises/{run['_id']}?months=120")).ok().says("Fastest 5,000 m", "Farthest distance")
    (await own.get(f"/train/exercises/{pull_up['_id']}?months=120")).ok().says("Least assistance")
    for exercise in (plank, run, pull_up):
        (await owner_page.get(f"/app/customers/{ana['_id']}/progress/exercises/{exercise['_id']}?weeks=52")).ok()


async def test_results_in_an_exercise_by_session(coach: CoachClient, owner_page: Visitor) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    lunge = await coach.create_exercise("<Lunge>")
    today = coach.ctx.caller.today()
    days = [today - timedelta(days=ago) for ago in (60, 20, 1)]
    sets = [[{"reps": 5, "load": 80}], [{"reps": 1, "load": 95.5}, {"reps": 10, "load": 60}], [{"reps": 8}]]
    for day, done in zip(days, sets, strict=True):
        items = (training.exercise_of(squat), training.exercise_of(lunge))
        block = await training.block_with(coach, ana, *items, date=str(day))
        (await training.log(coach, block, block["items"][0], customerSets=done)).ok()
    (await training.log(coach, block, block["items"][1], customerSets=[{"reps": 12}])).ok()
    path = f"/app/customers/{ana['_id']}/progress"

    overview = (await owner_page.get(path)).ok().says("Exercises", "Squat 3 sessions,", "<Lunge> 1 session,")
    (link,) = (link for link in overview.links if squat["_id"] in link)
    page = (await owner_page.get(link)).ok()

    page.says("Estimated 1RM 95.5 kg latest", "Most reps without load 8 reps latest", "Volume load 695.5 kg latest")
    page.says("5 × 80 kg", "1 × 95.5 kg", "8 reps")
    assert page.html.count('<svg class="chart"') == 3
    first, *_ = (
        json.loads(block) for block in re.findall(r'<script type="application/json">(.*?)</script>', page.html)
    )
    assert first == {
        "label": "Estimated 1RM",
        "unit": "kg",
        "dates": [str(day) for day in days[:2]],
        "values": [93.3, 95.5],
    }
    assert "charts." in page.html
    (await owner_page.get(f"{path}/exercises/{squat['_id']}?weeks=4")).ok().says("95.5 kg", "8 reps")
    assert "93.3" not in (await owner_page.get(f"{path}/exercises/{squat['_id']}?weeks=4")).text
    lunges = (await owner_page.get(f"{path}/exercises/{lunge['_id']}")).ok().says("<Lunge>", "Most reps without load")
    assert "<Lunge>" not in lunges.html
    (await owner_page.get(f"{path}/exercises/{UNKNOWN}")).ok(404)
    row = await coach.create_exercise("Row")
    (await owner_page.get(f"{path}/exercises/{row['_id']}?weeks=4")).ok().says("No sessions in the last 4 weeks")
    records = (await owner_page.get(f"/app/customers/{ana['_id']}/records")).ok()
    assert f"{path}/exercises/{squat['_id']}?weeks=52" in records.links
    (name,) = re.findall(r'class="chart spark" role="img" aria-label="([^"]*)"', records.html)
    first, last = (format_date(day) for day in days[:2])
    assert " ".join(name.split()) == f"Estimated 1RM in the last year: from 93.3 kg on {first} to 95.5 kg on {last}"
    assert records.text.index("<Lunge> Most reps 12 reps") < records.text.index("Squat Heaviest load 95.5 kg")
    only = (await owner_page.get(f"/app/customers/{ana['_id']}/records?keywords=SQU")).ok().says("Heaviest load")
    assert 'class="tiles lifts"' in only.html
    assert "Lunge> Most" not in only.text
    (await owner_page.get(f"/app/customers/{ana['_id']}/records?keywords=row")).ok().says("No records found")
