"""The pages that plan a workout: sets, circuits, tasks, reminders, forms and metrics."""

from __future__ import annotations

from typing import Any

from tests.support import training
from tests.support.client import CoachClient
from tests.support.visitor import Visitor
from tests.web.test_programs import base, page_of, workout

EVERY_KIND = [
    {"type": "reps_load", "index": 1, "minPlannedReps": 8, "maxPlannedReps": 10, "load": 62.5, "rest": 90, "rpe": 8},
    {"type": "reps_load", "index": 2, "minPlannedReps": 5, "isWarmup": True},
    {"type": "reps", "index": 4, "maxPlannedReps": 12, "rir": 2, "tempo": "3-1-1-0"},
    {"type": "time", "index": 5, "minPlannedSeconds": 30, "maxPlannedSeconds": 45.5},
    {"type": "time_load", "index": 6, "minPlannedSeconds": 30, "load": 20},
    {"type": "distance", "index": 9, "plannedMeters": 400},
    {"type": "reps_load", "index": 10},
    {"type": "reps_load", "index": 11, "minPlannedReps": 5, "loadPercent": 72.5, "isAmrap": True},
    {"type": "reps_load", "index": 12, "minPlannedReps": 8, "load": 40, "setKind": "drop"},
    {"type": "reps", "index": 13, "isAmrap": True, "perSide": True, "setKind": "failure"},
    {"type": "distance_load", "index": 14, "plannedMeters": 40, "load": 24},
]


def workout_path(block: dict[str, Any]) -> str:
    return f"/app/customers/{block['customerId']}/blocks/{block['_id']}"


def item_of(block: dict[str, Any], at: int = 0) -> str:
    return f"{workout_path(block)}/items/{block['items'][at]['_id']}"


async def legs(coach: CoachClient, *items: dict[str, Any]) -> dict[str, Any]:
    return await training.block_with(coach, await coach.create_customer("Ana"), *items)


async def test_unchanged_sets_are_saved_unchanged(coach: CoachClient, owner_page: Visitor) -> None:
    squat = await coach.create_exercise("Squat")
    item = training.exercise_of(squat, *EVERY_KIND, supersetId="A", exerciseInstructions="Slowly\nand deep")
    block = await legs(coach, item)
    page = await owner_page.get(item_of(block))
    page.says("Set 1", "Set 9", "New set", "Load, kg", "Superset")

    (await owner_page.submit(page, f"{item_of(block)}/sets")).ok().says("Changes saved.")

    (after,) = (await training.read(coach, block))["items"]
    for name in ("exerciseSets", "exerciseInstructions", "supersetId", "exerciseId"):
        assert after[name] == block["items"][0][name], name


async def test_percentages_amrap_and_kinds_of_sets_are_planned(coach: CoachClient, owner_page: Visitor) -> None:
    squat, ana = await coach.create_exercise("Squat"), await coach.create_customer("Ana")
    block = await training.block_with(coach, ana, training.exercise_of(squat))
    page = await owner_page.get(item_of(block))

    first = {"sets__0__high": "", "sets__0__load": "", "sets__0__loadPercent": "72,5", "sets__0__isAmrap": "true"}
    others = {"sets__1__setKind": "drop", "sets__2__perSide": "true", "sets__2__setKind": "failure"}
    added = {"sets__3__isAmrap": "true", "sets__3__type": "reps"}
    saved = await owner_page.submit(page, f"{item_of(block)}/sets", **first, **others, **added)

    saved.ok().says(
        "1 × AMRAP, at least 8 × 72.5 %", "1 × 8–10 × 60 kg, drop set", "1 × 8–10 × 60 kg, per side, to failure"
    )
    saved.says("1 × AMRAP")
    (await coach.put(training.client_path(ana, "training-maxes", squat["_id"]), {"value": 140})).ok()
    page = await owner_page.get(workout_path(block))
    page.says("1 × AMRAP, at least 8 × 72.5 % (102.5 kg)")  # 101.5 is 40.6 steps of 2.5
    page = await owner_page.get(f"{item_of(block)}/log")
    page.says("AMRAP, at least 8 × 72.5 % (102.5 kg)")
    page = await owner_page.get(item_of(block))
    (await owner_page.submit(page, f"{item_of(block)}/sets", sets__0__load="100")).ok(400).says(
        "must be empty if there is a load"
    )


async def test_sets_are_changed_added_and_removed(coach: CoachClient, owner_page: Visitor) -> None:
    squat = await coach.create_exercise("Squat")
    block = await legs(coach, training.exercise_of(squat))
    (await training.log(coach, block, block["items"][0], customerSets=[{"index": 3, "reps": 9, "load": 60}])).ok()
    page = await owner_page.get(item_of(block))

    typed = {"sets__0__low": "5", "sets__0__high": "", "sets__0__load": "82,5", "sets__1__out": "true"}
    added = {"sets__3__type": "time", "sets__3__low": "40", "sets__3__rest": "60"}
    words = {"instructions": "Slowly", "supersetId": "A"}
    saved = await owner_page.submit(page, f"{item_of(block)}/sets", **typed, **added, **words)

    saved.ok().says("Changes saved.", "1 × 5 × 82.5 kg", "1 × 8–10 × 60 kg", "1 × 40 s, rest 60 s", "A1")
    (item,) = (await training.read(coach, block))["items"]
    assert [planned["index"] for planned in item["exerciseSets"]] == [1, 3, 4]
    assert [planned["type"] for planned in item["exerciseSets"]] == ["reps_load", "reps_load", "time"]
    assert item["customerSets"][0]["index"] == 3, "what was logged still meets its set"
    assert item["exerciseInstructions"] == "Slowly"


async def test_invalid_sets_are_reported_at_their_fields(coach: CoachClient, owner_page: Visitor) -> None:
    squat = await coach.create_exercise("Squat")
    block = await legs(coach, training.exercise_of(squat))
    page = await owner_page.get(item_of(block))
    typed = {
        "sets__0__low": "12",
        "sets__0__high": "8",
        "sets__1__low": "7,5",
        "sets__1__high": "",
        "sets__2__type": "distance",
        "sets__2__low": "400",
        "sets__2__high": "",
        "sets__3__type": "time",
        "sets__3__low": "100000",
        "sets__4__rpe": "11",
        "sets__4__low": "many",
    }

    invalid = await owner_page.submit(page, f"{item_of(block)}/sets", **typed)

    controls = invalid.ok(400).form(f"{item_of(block)}/sets").controls
    marked = {name for name, control in controls.items() if control.get("aria-invalid")}
    wanted = {"0.high", "1.low", "2.load", "3.low", "4.rpe", "4.low"}
    assert marked == {f"sets.{name}" for name in wanted}
    assert controls["sets.4.low"]["value"] == "many"
    invalid.says(
        "This must not be less than the minimum.", "must be a whole number", "must be empty for a set in meters"
    )
    every_one = {f"sets__{at}__out": "true" for at in range(3)}
    (await owner_page.submit(page, f"{item_of(block)}/sets", **every_one)).ok(400).says("should not be empty")
    assert (await training.read(coach, block))["version"] == block["version"]


async def test_conflicting_plan_change_shows_stored_values(coach: CoachClient, owner_page: Visitor) -> None:
    squat = await coach.create_exercise("Squat")
    block = await legs(coach, training.exercise_of(squat))
    page = await owner_page.get(item_of(block))
    path = f"{training.path_of(block)}/witems/{block['items'][0]['_id']}"
    (await coach.patch(path, {"exerciseSets": [{"type": "reps_load", "minPlannedReps": 3, "load": 100}]})).ok()

    confirmation = await owner_page.submit(page, f"{item_of(block)}/sets", sets__0__load="70")

    confirmation.ok(409).says("This has been changed since", "Saved value: 100", "Set 3")
    (await owner_page.submit(confirmation, f"{item_of(block)}/sets")).ok().says("Changes saved.")
    (item,) = (await training.read(coach, block))["items"]
    assert [planned["load"] for planned in item["exerciseSets"]] == [70, 60, 60]


async def test_circuit_exercises_are_added_changed_and_removed(coach: CoachClient, owner_page: Visitor) -> None:
    row, dip = await coach.create_exercise("Ring Row"), await coach.create_exercise("Ring Dip")
    block = await legs(coach)
    path = workout_path(block)
    page = await owner_page.get(f"{path}?keywords=ring")

    created = await owner_page.submit(page, f"{path}/items", exerciseId=row["_id"], sets="1", circuit="new")
    created.ok().says("Circuit added.", "Ring Row", "1 × 8–10")
    circuit = created.path
    renamed = await owner_page.submit(created, f"{circuit}/circuit", circuitName="Finisher", rounds="4")
    renamed.ok().says("Finisher, 4 rounds")
    page = (await owner_page.get(f"{path}?keywords=ring")).says("In Finisher")
    into = {"exerciseId": dip["_id"], "sets": "2", "load": "10", "circuit": circuit.rpartition("/")[2]}
    updated = await owner_page.submit(page, f"{path}/items", **into)
    updated.ok().says("Added to Finisher.")
    (await owner_page.get(circuit)).says("Ring Dip", "2 × 8–10 × 10 kg")
    (await owner_page.submit(updated, f"{path}/items", **into)).ok(400).says("Finisher already contains this exercise")
    (await owner_page.submit(updated, f"{path}/items", **into | {"circuit": block["_id"]})).ok(404).says(
        "Circuit not found"
    )

    entry = await owner_page.get(f"{circuit}/exercises/{dip['_id']}")
    changed = await owner_page.submit(entry, entry.path, sets__1__out="true", sets__0__low="6", instructions="Slowly")
    changed.ok().says("Changes saved.", "1 × 6–10 × 10 kg", "Slowly")
    (await owner_page.submit(entry, entry.path, sets__0__low="7")).ok(409).says("Saved value: 6")
    out = await owner_page.submit(changed, f"{circuit}/exercises/{row['_id']}/remove")
    out.ok().says("Exercise removed.")
    assert "Ring Row" not in out.text
    last = await owner_page.submit(changed, f"{circuit}/exercises/{dip['_id']}/remove")
    last.ok(400).says("A circuit needs at least one exercise")

    (item,) = (await training.read(coach, block))["items"]
    assert (item["circuitName"], item["rounds"]) == ("Finisher", 4)
    assert [planned["minPlannedReps"] for planned in item["circuitExercises"][0]["sets"]] == [6]


async def test_tasks_and_reminders_are_changed(coach: CoachClient, owner_page: Visitor) -> None:
    block = await legs(coach, training.task())
    path = workout_path(block)
    page = await owner_page.get(path)
    invalid = await owner_page.submit(page, f"{path}/reminders", message="Drink", scheduledTime="soon")
    invalid.ok(400).says("must be a time HH:MM")
    (await owner_page.submit(page, f"{path}/reminders", message="Drink", scheduledTime="09:15")).says("Drink added.")
    block = await training.read(coach, block)

    walk = await owner_page.get(item_of(block))
    await owner_page.submit(walk, f"{item_of(block)}/task", title="Walk far", description="Uphill\nand back")
    drink = await owner_page.get(item_of(block, 1))
    (await owner_page.submit(drink, f"{item_of(block, 1)}/reminder", scheduledTime="9")).ok(400).says("a time HH:MM")
    await owner_page.submit(drink, f"{item_of(block, 1)}/reminder", scheduledTime="10:45", message="Drink water")

    (await owner_page.get(path)).says("Uphill and back", "Remove 10:45")


async def test_forms_and_metric_sets_are_added_to_a_workout(coach: CoachClient, owner_page: Visitor) -> None:
    body = await training.metric_set(coach)
    form = (await coach.post("/coach/forms", {"name": "Check-in", "questions": [{"label": "Well?"}]})).ok(201)
    block = await legs(coach)
    path = workout_path(block)
    page = await owner_page.get(path)

    (await owner_page.submit(page, f"{path}/forms", formId=form["_id"])).ok().says("Form: Check-in added.")
    updated = await owner_page.submit(page, f"{path}/metrics", metricsSetId=body["_id"])
    updated.ok().says("Measure: Body added.", "Body weight")
    page = await owner_page.get(path)
    (await coach.delete(f"/coach/forms/{form['_id']}")).ok(204)
    (await owner_page.submit(page, f"{path}/forms", formId=form["_id"])).ok(404).says("it has been deleted")

    block = await training.read(coach, block)
    assert [item["type"] for item in block["items"]] == ["FORM", "METRICS"]
    (await owner_page.get(item_of(block))).ok().says("This item cannot be edited.")


async def test_sets_of_a_program_are_changed(coach: CoachClient, owner_page: Visitor) -> None:
    squat = await coach.create_exercise("Squat")
    program = await base(coach)
    block = await workout(coach, program, 1, "Legs", training.exercise_of(squat))
    item_path = f"{page_of(program, block)}/items/{block['items'][0]['_id']}"

    saved = await owner_page.submit(await owner_page.get(item_path), f"{item_path}/sets", sets__0__load="75")

    saved.ok().says("1 × 8–10 × 75 kg", "2 × 8–10 × 60 kg", "Base")


async def test_sets_are_read_and_replaced_as_text(coach: CoachClient, owner_page: Visitor) -> None:
    squat = await coach.create_exercise("Squat")
    block = await legs(coach, training.exercise_of(squat, *EVERY_KIND))
    form = f"{item_of(block)}/set-text"
    page = await owner_page.get(item_of(block))

    (await owner_page.submit(page, form)).ok().says("Changes saved.")
    (after,) = (await training.read(coach, block))["items"]
    assert after["exerciseSets"] == block["items"][0]["exerciseSets"]

    page = await owner_page.get(item_of(block))
    refused = await owner_page.submit(page, form, setText="3x8 @60stone")
    refused.ok(400).says("“stone” cannot be read. Write a comma, or one of", "3x8 @60stone")
    (await owner_page.submit(page, form, setText="2x8-10 @60kg RPE8, 1xAMRAP @50kg")).ok().says("Changes saved.")

    (after,) = (await training.read(coach, block))["items"]
    (await owner_page.get(item_of(block))).says("2x8-10 @60kg RPE8, 1xAMRAP @50kg")
    assert [(each["index"], each["load"], each["isAmrap"]) for each in after["exerciseSets"]] == [
        (1, 60, False),
        (2, 60, False),
        (3, 50, True),
    ]
