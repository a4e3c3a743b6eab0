"""The pages that log a workout: sets, rounds, answers, values and the session."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth import ALL_PERMISSIONS
from tests.support import training
from tests.support.client import CoachClient
from tests.support.visitor import Visitor
from tests.web.conftest import Colleague
from tests.web.test_planning import item_of, legs, workout_path
from tests.web.test_security import csrf_token_of


def log_of(block: dict[str, Any], at: int = 0) -> str:
    return f"{item_of(block, at)}/log"


async def test_exercise_completed_as_planned_is_logged_without_typing(coach: CoachClient, owner_page: Visitor) -> None:
    squat = await coach.create_exercise("Squat")
    block = await legs(coach, training.exercise_of(squat))
    page = await owner_page.get(workout_path(block))
    assert log_of(block) in page.links

    log_page = (await owner_page.get(log_of(block))).says("Set 1 planned: 8–10 × 60 kg", "Load, kg")
    saved = await owner_page.submit(log_page, f"{log_of(block)}/exercise")

    saved.ok().says("Log saved.", "✓ Completed", "8 × 60 kg")
    (item,) = (await training.read(coach, block))["items"]
    assert item["isCompleted"] is True
    assert [(done["reps"], done["load"], done["isCompleted"]) for done in item["customerSets"]] == [(8, 60, True)] * 3


async def test_log_is_changed_and_cleared(coach: CoachClient, owner_page: Visitor) -> None:
    squat = await coach.create_exercise("Squat")
    block = await legs(coach, training.exercise_of(squat))
    log_page = await owner_page.get(log_of(block))
    typed = {"customerSets__0__reps": "9", "customerSets__0__load": "62,5", "customerSets__0__rpe": "8,5"}
    third = {f"customerSets__2__{name}": value for name, value in (("reps", ""), ("load", ""), ("isCompleted", None))}

    saved = await owner_page.submit(log_page, f"{log_of(block)}/exercise", **typed, **third, comment="Felt good")

    saved.ok().says("9 × 62.5 kg RPE 8.5", "Felt good")
    repeated = (await owner_page.get(log_of(block))).ok()
    fields = dict(repeated.form(f"{log_of(block)}/exercise").fields)
    assert (fields["customerSets.0.load"], fields["customerSets.2.reps"]) == ("62.5", "")
    assert "customerSets.2.isCompleted" not in fields
    invalid = await owner_page.submit(repeated, f"{log_of(block)}/exercise", customerSets__1__rpe="12", comment="x")
    invalid.ok(400)
    marked = invalid.form(f"{log_of(block)}/exercise").controls["customerSets.1.rpe"]
    assert (marked["aria-invalid"], marked["value"]) == ("true", "12")
    (await owner_page.submit(repeated, f"{log_of(block)}/exercise", isCompleted=None)).ok().says("Partly completed")
    (await owner_page.submit(repeated, f"{log_of(block)}/exercise", comment="late")).ok(409).says("changed since")

    undone = await owner_page.submit(await owner_page.get(log_of(block)), f"{log_of(block)}/undo")
    undone.ok().says("Log cleared.")
    (item,) = (await training.read(coach, block))["items"]
    assert (item["customerSets"], item["isCompleted"], item["comment"]) == ([], False, None)


async def test_circuit_is_logged_by_round(coach: CoachClient, owner_page: Visitor) -> None:
    row, dip = await coach.create_exercise("Row"), await coach.create_exercise("Dip")
    block = await legs(coach, training.circuit_of(row, dip))
    log_page = (await owner_page.get(log_of(block))).says("Round 1: Row planned: 10", "Round 2: Dip")

    changed = {"customerSets__3__reps": "7", "customerSets__0__isCompleted": None, "customerSets__0__reps": ""}
    saved = await owner_page.submit(log_page, f"{log_of(block)}/circuit", **changed)

    saved.ok().says("Round 1: Dip 10 10 Round 2: Row 10 10 Round 2: Dip 10 7")
    (item,) = (await training.read(coach, block))["items"]
    assert [(done["round"], done["reps"]) for done in item["customerSets"]] == [(1, 10), (2, 10), (2, 7)]

    again = await owner_page.get(log_of(block))
    first = dict(again.form(f"{log_of(block)}/circuit").fields)["customerSets.0.exerciseId"]
    same = {"customerSets__1__exerciseId": first, "customerSets__1__round": "1", "customerSets__1__index": "1"}
    (await owner_page.submit(again, f"{log_of(block)}/circuit", **same)).ok(400)

    workout_page = await owner_page.get(log_of(block).partition("/items/")[0])
    fewer = await owner_page.submit(workout_page, log_of(block).removesuffix("/log") + "/rounds", rounds="1")
    fewer.ok().says("Round 1: Dip 10 10 Round 2: Row – 10 Round 2: Dip – 7")
    (await owner_page.get(log_of(block))).says("Round 1: Dip planned: 10", "Round 2: no longer planned")


async def test_tasks_forms_and_metrics_are_logged(coach: CoachClient, owner_page: Visitor) -> None:
    body = await training.metric_set(coach, "Body weight", "Waist")
    questions = [*training.QUESTIONS, {"label": "Signed?", "required": True}]
    block = await legs(coach, training.task(), training.form_of(*questions), training.metrics_of(body))
    task, form, measure = (log_of(block, at) for at in range(3))
    (await owner_page.submit(await owner_page.get(task), f"{task}/task", comment="In the rain")).ok().says(
        "In the rain"
    )

    confirmation = (await owner_page.get(form)).says("Hours of sleep?", "From 1 to 10.", "Where does it hurt?")
    answers = {
        "answers__0__value": "Fine\n\nand quick",
        "answers__1__value": "7,5",
        "answers__2__value": "11",
        "answers__3__value": "Good",
        "answers__4__chosen": ["Knee", "Back"],
    }
    invalid = await owner_page.submit(confirmation, f"{form}/form", **answers)
    invalid.ok(400).says("must be answered")
    invalid = await owner_page.submit(invalid, f"{form}/form", **answers, answers__5__value="Ana")
    marked = invalid.ok(400).form(f"{form}/form").controls["answers.2.value"]
    assert marked["aria-invalid"] == "true"
    saved = await owner_page.submit(invalid, f"{form}/form", answers__2__value="8")
    saved.ok().says(
        "How was it? Fine and quick", "Hours of sleep? 7.5", "Energy? 8 of 10", "Where does it hurt? Knee, Back"
    )

    values = await owner_page.submit(await owner_page.get(measure), f"{measure}/metrics", values__0__value="79,25")
    values.ok().says("Body weight 79.25 kg")
    assert "Waist –" not in values.text
    again = await owner_page.get(measure)
    first = dict(again.form(f"{measure}/metrics").fields)["values.0.metricId"]
    same = {"values__1__metricId": first, "values__1__value": "80"}
    (await owner_page.submit(again, f"{measure}/metrics", **same)).ok(400)
    (stored,) = (await coach.get(training.client_path({"_id": block["customerId"]}, "form-responses"))).ok()
    assert {answer["value"] for answer in stored["answers"] if isinstance(answer["value"], str)} >= {"Good", "Ana"}


async def test_session_duration_and_rpe_are_logged(coach: CoachClient, owner_page: Visitor) -> None:
    block = await legs(coach, training.task())
    path = f"{workout_path(block)}/log"
    log_page = await owner_page.get(path)

    (await owner_page.submit(log_page, path, durationMinutes="50", sessionRpe="11")).ok(400).says("must not be greater")
    saved = await owner_page.submit(
        log_page, path, durationMinutes="52,5", sessionRpe="7", feeling="4", comment="Good day"
    )

    saved.ok().says("Session saved.", "52.5 min", "7 of 10", "4 of 5", "Good day", "Edit session log")
    assert (await training.read(coach, block))["durationMinutes"] == 52.5


async def test_program_items_cannot_be_logged(coach: CoachClient, owner_page: Visitor) -> None:
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    path = f"/coach/programs/{program['_id']}/wblocks"
    block = (await coach.post(path, {"name": "Legs", "day": 1})).ok(201)
    item = await training.add(coach, block, training.task())
    page = await owner_page.get(f"/app/programs/{program['_id']}/blocks/{block['_id']}")
    assert "Log session" not in page.text
    (await owner_page.get(f"{page.path}/items/{item['_id']}/log")).ok(404)


async def test_required_questions_are_labelled_required(coach: CoachClient, owner_page: Visitor) -> None:
    types: list[dict[str, Any]] = [
        {"type": "text"},
        {"type": "number"},
        {"type": "rating"},
        {"type": "choice", "options": ["Good", "Bad"]},
        {"type": "multi", "options": ["Knee", "Back"]},
    ]
    required = [{"label": f"Must {each['type']}", "required": True, **each} for each in types]
    optional = [{"label": f"May {each['type']}", **each} for each in types]
    block = await legs(coach, training.form_of(*required, *optional))

    page = (await owner_page.get(log_of(block))).ok()

    for each in types:
        page.says(f"Must {each['type']} required", f"May {each['type']} optional")


async def test_no_log_is_offered_that_would_replace_answers_which_are_not_shown(
    coach: CoachClient, colleague: Colleague
) -> None:
    values = training.metrics_of(await training.metric_set(coach))
    block = await legs(coach, training.form_of({"label": "How?", "type": "text"}), values)
    form = block["items"][0]
    answers = [{"questionId": form["form"]["questions"][0]["_id"], "value": "Slept well"}]
    (await training.log(coach, block, form, isCompleted=True, answers=answers)).ok()
    visitor = await colleague(*(each for each in ALL_PERMISSIONS if not each.startswith("forms.")))

    page = (await visitor.get(workout_path(block))).ok()
    assert log_of(block, 1) in page.links
    assert log_of(block, 0) not in page.links
    assert "Slept well" not in page.text
    (await visitor.get(log_of(block))).ok(403)
    token = csrf_token_of((await visitor.get(log_of(block, 1))).ok())
    for action in ("undo", "form"):
        (await visitor.send("POST", f"{log_of(block)}/{action}", data={"csrf": token})).ok(403)
    assert (await training.read(coach, block))["items"][0]["answers"] == answers


async def test_sets_of_both_exercises_of_a_swap_stay_theirs(coach: CoachClient, owner_page: Visitor) -> None:
    squat, press = [await coach.create_exercise(name) for name in ("Squat", "Leg press")]
    ana = await coach.create_customer("Ana")
    block = await training.block_with(coach, ana, training.exercise_of(squat))
    done = ((1, squat), (1, press), (2, press))
    sets = [{"index": at, "reps": 8, "load": 60, "exerciseId": each["_id"]} for at, each in done]
    swap = {"exerciseId": press["_id"], "reason": None}
    client = await coach.as_client(ana)
    (await training.own_log(client, block, block["items"][0], customerSets=sets, swappedFor=swap)).ok()

    results = (await owner_page.get(workout_path(block))).ok().says("1: Squat 8–10 × 60 kg 8 × 60 kg 1 – 8 × 60 kg 2 ")
    assert "2: Squat" not in results.text
    log_page = (await owner_page.get(log_of(block))).ok().says("Set 1: Squat")
    (await owner_page.submit(log_page, f"{log_of(block)}/exercise", customerSets__1__reps="7")).ok()

    [item] = (await training.read(coach, block))["items"]
    assert [(each["index"], each["exerciseId"], each["reps"]) for each in item["customerSets"]] == [
        (1, squat["_id"], 8),
        (1, press["_id"], 7),
        (2, press["_id"], 8),
    ]
