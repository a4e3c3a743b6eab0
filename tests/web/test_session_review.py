"""The review of a logged session: how it differs from the plan, its records and comments, and what comes next."""

from __future__ import annotations

import re
from datetime import timedelta

from tests.support import training
from tests.support.client import MONDAY, CoachClient
from tests.support.figures import renew_figures
from tests.support.imported_history import HEVY, workouts
from tests.support.training import Json, block_with, client_path, exercise_of
from tests.support.transfer import import_file
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import Colleague


def review_of(block: Json) -> str:
    return f"/app/customers/{block['customerId']}/blocks/{block['_id']}/review"


def done(index: int, reps: int | None = 8, load: float | None = 60, **fields: object) -> Json:
    return {"index": index, "reps": reps, "load": load, "isCompleted": True, **fields}


def rows_of(page: HtmlPage, exercise: str) -> list[str]:
    """The rows of the table of an exercise, as texts."""
    table = re.search(rf"<caption[^>]*>{exercise}: planned and done</caption>(.*?)</table>", page.html, re.DOTALL)
    assert table, page.text
    rows = re.findall(r"<tr.*?</tr>", table[1].partition("<tbody>")[2], re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in rows]


async def comment(client: CoachClient, block: Json, text: str) -> None:
    (await client.post("/customer/messages", {"text": text, "about": {"wblockId": block["_id"]}})).ok(201)


async def unread(coach: CoachClient) -> dict[str, int]:
    conversations = (await coach.get("/coach/conversations", unread="true")).ok()["docs"]
    return {each["customer"]["name"]: each["unread"] for each in conversations}


async def test_review_shows_how_each_set_differs_from_the_plan(coach: CoachClient, owner_page: Visitor) -> None:
    squat, row, dip = [await coach.create_exercise(name) for name in ("Squat", "Row", "Dip")]
    ana = await coach.create_customer("Ana")
    planned = {"type": "reps_load", "minPlannedReps": 8, "maxPlannedReps": 10, "load": 60, "rpe": 8}
    amrap = {"type": "reps", "minPlannedReps": 5, "isAmrap": True}
    before = await block_with(coach, ana, exercise_of(squat), date="2026-02-23")
    (await training.log(coach, before, before["items"][0], isCompleted=True, customerSets=[done(1)])).ok()
    items = (exercise_of(squat, *[planned] * 4, amrap), training.circuit_of(row, dip, rounds=2), training.task("Walk"))
    block = await block_with(coach, ana, *items)
    sets = [done(1, 9), done(2, 6, 62.5, rpe=9), done(4, 3, isCompleted=False), done(5, 20, None), done(6, 5)]
    log = {"isCompleted": True, "customerSets": sets, "comment": "Heavy today", "pain": "Left knee"}
    (await training.log(coach, block, block["items"][0], **log)).ok()
    rounds = [{"index": 1, "exerciseId": row["_id"], "round": 2, "reps": 12, "isCompleted": True}]
    (await training.log(coach, block, block["items"][1], isCompleted=False, customerSets=rounds)).ok()
    path = f"{client_path(ana, 'wblocks', block['_id'])}/log"
    (await coach.put(path, {"durationMinutes": 55, "sessionRpe": 8, "comment": "Slept badly"})).ok()

    page = (await owner_page.get(review_of(block))).ok()

    page.says("Partly done", "4 of 9 sets done, 1 extra", "1 of 3 items done", "55 min", "Slept badly")
    page.says("Heavy today", "Left knee", "Records set in this session")
    page.says("Squat best estimated one-rep max: 78 kg, heaviest set: 62.5 kg for 6 reps")
    page.says("Last time, Mon 23 Feb 2026: 8 × 60 kg")
    assert rows_of(page, "Squat") == [
        "1 8–10 × 60 kg, RPE 8 9 × 60 kg – As planned",
        "2 8–10 × 60 kg, RPE 8 6 × 62.5 kg RPE 9 2 reps less 2.5 kg more RPE 9 instead of 8",
        "3 8–10 × 60 kg, RPE 8 – – Not done",
        "4 8–10 × 60 kg, RPE 8 3 × 60 kg (not completed) – Not completed 5 reps less",
        "5 AMRAP, at least 5 20 – As planned",
        "6 – 5 × 60 kg – Extra set",
    ]
    assert rows_of(page, "Row") == ["Round 1 10 – Not done", "Round 2 10 12 2 reps more"]
    assert rows_of(page, "Dip") == ["Round 1 10 – Not done", "Round 2 10 – Not done"]


async def test_swapped_and_skipped_exercises_are_not_compared(coach: CoachClient, owner_page: Visitor) -> None:
    squat, press = [await coach.create_exercise(name) for name in ("Squat", "Leg press")]
    ana = await coach.create_customer("Ana")
    before = await block_with(coach, ana, exercise_of(squat), date="2026-02-23")
    (await training.log(coach, before, before["items"][0], isCompleted=True, customerSets=[done(1)])).ok()
    block = await block_with(coach, ana, exercise_of(squat), exercise_of(press))
    client = await coach.as_client(ana)
    swap = {"exerciseId": press["_id"], "reason": "Rack taken"}
    sets = [done(index, 12, 140, exerciseId=press["_id"]) for index in (1, 2, 3)]
    first, second = block["items"]
    (await training.own_log(client, block, first, isCompleted=True, customerSets=sets, swappedFor=swap)).ok()
    (await training.own_log(client, block, second, isCompleted=False, skipped={"reason": "No time"})).ok()

    page = (await owner_page.get(review_of(block))).ok()

    page.says("Did instead: Leg press: Rack taken", "Skipped: No time")
    page.says("6 sets differ from the plan")
    assert rows_of(page, "Squat") == [f"{index} 8–10 × 60 kg 12 × 140 kg Another exercise" for index in (1, 2, 3)]
    assert "Last time" not in page.text, "the loads of the planned exercise say nothing about another one"


async def test_less_assistance_than_planned_is_more_work(coach: CoachClient, owner_page: Visitor) -> None:
    """Also in a circuit; other loads of the same circuit are loads."""
    pull_up, dip = [await coach.create_exercise(name, loadType="assistance") for name in ("Pull-up", "Dip")]
    row, ana = await coach.create_exercise("Row"), await coach.create_customer("Ana")
    circuit = training.circuit_of(dip, row)
    for entry in circuit["circuitExercises"]:
        entry["sets"] = [{"type": "reps_load", "minPlannedReps": 8, "load": 30}]
    block = await block_with(coach, ana, exercise_of(pull_up), circuit)
    sets = [done(1, 8, 50), done(2, 8, 65), done(3, 8, 60)]
    (await training.log(coach, block, block["items"][0], isCompleted=True, customerSets=sets)).ok()
    rounds = [done(1, 8, 20, exerciseId=each["_id"], round=1) for each in (dip, row)]
    (await training.log(coach, block, block["items"][1], isCompleted=False, customerSets=rounds)).ok()

    page = (await owner_page.get(review_of(block))).ok()

    assert rows_of(page, "Pull-up") == [
        "1 8–10 × 60 kg 8 × 50 kg 10 kg less assistance",
        "2 8–10 × 60 kg 8 × 65 kg 5 kg more assistance",
        "3 8–10 × 60 kg 8 × 60 kg As planned",
    ]
    assert rows_of(page, "Dip")[0] == "Round 1 8 × 30 kg 8 × 20 kg 10 kg less assistance"
    assert rows_of(page, "Row")[0] == "Round 1 8 × 30 kg 8 × 20 kg 10 kg less"
    kinds = re.findall(r'class="deviation is-(more|less)">(?:<svg.*?</svg>)?([^<]*)<', page.html, re.DOTALL)
    assert [(kind, " ".join(text.split())) for kind, text in kinds if "\u00a0kg" in text] == [
        ("more", "10 kg less assistance"),
        ("less", "5 kg more assistance"),
        ("more", "10 kg less assistance"),
        ("less", "10 kg less"),
    ]


async def test_swap_in_the_middle_is_compared_set_by_set(coach: CoachClient, owner_page: Visitor) -> None:
    squat, press = [await coach.create_exercise(name) for name in ("Squat", "Leg press")]
    ana = await coach.create_customer("Ana")
    block = await block_with(coach, ana, exercise_of(squat))
    sets = [done(1, 8, 60, exerciseId=squat["_id"]), done(2, 9, 60, exerciseId=press["_id"])]
    log = {"isCompleted": False, "customerSets": sets, "swappedFor": {"exerciseId": press["_id"], "reason": None}}
    (await training.own_log(await coach.as_client(ana), block, block["items"][0], **log)).ok()

    page = (await owner_page.get(review_of(block))).ok()

    assert rows_of(page, "Squat") == [
        "1 8–10 × 60 kg 8 × 60 kg As planned",
        "2 8–10 × 60 kg 9 × 60 kg Another exercise",
        "3 8–10 × 60 kg – Not done",
    ]


async def test_workout_that_is_not_logged_shows_its_plan_only(coach: CoachClient, owner_page: Visitor) -> None:
    squat = await coach.create_exercise("Squat")
    block = await block_with(coach, await coach.create_customer("Ana"), exercise_of(squat), date="2031-01-06")
    page = (await owner_page.get(review_of(block))).ok().says("Planned", "0 of 3 sets done")
    assert rows_of(page, "Squat") == [f"{index} 8–10 × 60 kg –" for index in (1, 2, 3)]
    assert "Not done" not in page.text


async def test_workout_that_the_client_added_is_not_missed(coach: CoachClient, owner_page: Visitor) -> None:
    squat, ana = await coach.create_exercise("Squat"), await coach.create_customer("Ana")
    yesterday = str(coach.ctx.caller.today() - timedelta(days=1))
    own = {"name": "Run", "date": yesterday, "items": [exercise_of(squat)]}
    added = (await (await coach.as_client(ana)).post("/customer/wblocks", own)).ok(201)
    planned = await block_with(coach, ana, exercise_of(squat), date=yesterday)
    page = (await owner_page.get(review_of({**added, "customerId": ana["_id"]}))).ok().says("0 of 3 sets done")
    assert "Missed" not in page.text
    (await owner_page.get(review_of(planned))).ok().says("Missed")


async def test_answer_marks_the_comments_on_this_session_as_read(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    block, other = [await block_with(coach, ana, training.task("Walk"), date=day) for day in (MONDAY, "2026-03-03")]
    client = await coach.as_client(ana)
    await comment(client, block, "That was hard")
    await comment(client, other, "And that easy")
    (await client.post("/customer/messages", {"text": "Which shoes?"})).ok(201)
    page = (await owner_page.get(review_of(block))).ok().says("That was hard", "New")
    assert "And that easy" not in page.text
    (await owner_page.submit(page, f"{review_of(block)}/comments", text=" ")).ok(400).says("should not be empty")
    assert await unread(coach) == {"Ana": 3}

    page = await owner_page.submit(page, f"{review_of(block)}/comments", text="Good", item=block["items"][0]["_id"])

    page.ok().says("Comment sent.", "Good", "About Walk")
    assert page.text.index("That was hard") < page.text.index("Good", page.text.index("That was hard"))
    assert await unread(coach) == {"Ana": 2}
    assert f"{review_of(block)}/read" not in page.html
    page = await owner_page.submit(await owner_page.get(review_of(other)), f"{review_of(other)}/read")
    page.ok().says("Marked as read.")
    assert await unread(coach) == {"Ana": 1}


async def test_pages_lead_to_reviews_and_from_one_to_the_next(coach: CoachClient, owner_page: Visitor) -> None:
    ana, bea, cem = [await coach.create_customer(name) for name in ("Ana", "Bea", "Cem")]
    first, second = [await block_with(coach, ana, training.task("Walk"), date=day) for day in (MONDAY, "2026-03-03")]
    third = await block_with(coach, bea, training.task("Walk"))
    (await training.log(coach, first, first["items"][0], isCompleted=True)).ok()
    for customer, block in ((ana, first), (ana, second), (bea, third)):
        await comment(await coach.as_client(customer), block, "How was it?")
    (await coach.post(client_path(cem, "notes"), {"content": "Knee", "isHealth": True})).ok(201)
    await renew_figures(coach.ctx)

    for path in (
        f"/app/attention/{ana['_id']}",
        f"/app/customers/{ana['_id']}?week={MONDAY}",
        f"/app/customers/{ana['_id']}/month?month=2026-03",
        f"/app/customers/{ana['_id']}/notes",
        f"/app/customers/{ana['_id']}/blocks/{first['_id']}",
    ):
        assert review_of(first) in (await owner_page.get(path)).ok().links, path
    assert review_of(third) in (await owner_page.get("/app/inbox")).links
    page = (await owner_page.get(review_of(first))).says("Next to review: another comment")
    assert review_of(second) in page.links
    for block in (first, second):
        await owner_page.submit(await owner_page.get(review_of(block)), f"{review_of(block)}/read")
    page = await owner_page.get(review_of(second))
    assert f"/app/attention/{cem['_id']}" in page.says("Next to review: Cem").links, "the most urgent comes next"
    (await coach.delete(client_path(cem))).ok(204)
    page = (await owner_page.get(review_of(second))).says("Next to review: Bea")
    assert review_of(third) in page.links


async def test_today_lists_the_workouts_done_lately(
    coach: CoachClient, owner_page: Visitor, colleague: Colleague
) -> None:
    ana = await coach.create_customer("Ana")
    first, second = [await block_with(coach, ana, training.task("Walk"), name=name) for name in ("Legs", "Arms")]
    assert "done in the last week" not in (await owner_page.get("/app/attention")).text
    for completed in (True, False, True):
        (await training.log(coach, first, first["items"][0], isCompleted=completed)).ok()
    (await training.log(coach, second, second["items"][0], isCompleted=True)).ok()

    page = (await owner_page.get("/app/attention")).says("Workouts done in the last week", "Ana: Arms", "Ana: Legs")

    reviews = [link for link in page.links if link.endswith("/review")]
    assert reviews == [review_of(second), review_of(first)], "newest first, each once"
    (await owner_page.get(reviews[0])).ok()
    (await coach.delete(client_path(ana, "wblocks", first["_id"]))).ok(204)
    assert review_of(first) not in (await owner_page.get("/app/attention")).links
    limited = await colleague("customers.view", scope="assigned")
    assert "done in the last week" not in (await limited.get("/app/attention")).ok().text


async def test_check_ins_are_not_among_the_workouts(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    client = await coach.as_client(ana)
    today = str(coach.ctx.caller.today())
    habit = {"taskFields": {"title": "Stretch"}, "everyDays": 1, "startDate": today, "until": today}
    (await coach.post(client_path(ana, "check-ins"), habit)).ok(201)
    [daily] = await coach.calendar(ana, today, today)
    form = await block_with(coach, ana, training.form_of(), date="2026-03-08", name="Weekly form")
    legs = await block_with(coach, ana, training.task("Walk"), training.form_of(), date="2026-03-08")
    for block in (daily, form, legs):
        for item in block["items"]:
            (await training.own_log(client, block, item, isCompleted=True)).ok()

    links = (await owner_page.get("/app/attention")).ok().says("Workouts done in the last week").links

    assert [link for link in links if link.endswith("/review")] == [review_of(legs)]
    page = (await owner_page.get(review_of(legs))).says("Edit workout", "The workout")
    assert "Week of Mon 2 Mar 2026" in page.text
    for block in (daily, form):
        (await owner_page.get(review_of(block))).says("Edit check-in", "The check-in")


async def test_an_imported_session_has_no_differences_from_a_plan(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    await import_file(coach, HEVY.encode(), name="workouts.csv", customerId=ana["_id"])
    [block] = await workouts(coach, ana)
    page = await owner_page.get(f"/app/customers/{ana['_id']}/blocks/{block['_id']}/review")
    assert "Imported from Hevy, started at 18:05" in page.text
    assert "warm-up" in page.text
    assert "Extra set" not in page.text
