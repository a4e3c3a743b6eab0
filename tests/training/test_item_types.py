"""Items that are more than one exercise: circuits, forms, metrics, reminders."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import UNKNOWN, CoachClient

SETS = [{"type": "reps", "index": 1, "minPlannedReps": 10}]


async def unit(coach: CoachClient, short: str = "kg") -> str:
    return next(u["_id"] for u in (await coach.get("/metrics-units")).ok() if u["shortName"] == short)


async def create_form(coach: CoachClient, name: str = "Check-in", **fields: Any) -> dict[str, Any]:
    questions = [
        {"label": "How did you sleep?", "type": "rating", "required": True},
        {"label": "Where does it hurt?", "type": "multi", "options": ["Knee", "Back"]},
    ]
    created: dict[str, Any] = (await coach.post("/coach/forms", {"name": name, "questions": questions, **fields})).ok(
        201
    )
    return created


async def create_set(coach: CoachClient, name: str = "Body", **fields: Any) -> dict[str, Any]:
    metrics = [{"name": "Body weight", "metricUnitId": await unit(coach)}]
    body = {"name": name, "metrics": metrics, **fields}
    created: dict[str, Any] = (await coach.post("/coach/metrics-sets", body)).ok(201)
    return created


@pytest.fixture
async def items(coach: CoachClient) -> str:
    """Where the items of a new block are."""
    ana = await coach.create_customer()
    block = await coach.schedule(ana)
    return f"/coach/customers/{ana['_id']}/wblocks/{block['_id']}/witems"


async def test_circuit_has_the_names_of_its_exercises(coach: CoachClient, items: str) -> None:
    squat, press = await coach.create_exercise("Squat"), await coach.create_exercise("Press")
    circuit = {
        "type": "CIRCUIT",
        "circuitName": "Finisher",
        "rounds": 3,
        "circuitExercises": [
            {"exerciseId": squat["_id"], "sets": SETS, "instructions": "fast"},
            {"exerciseId": press["_id"], "sets": SETS},
        ],
    }
    item = (await coach.post(items, circuit)).ok(201)

    assert (item["circuitName"], item["rounds"], item["customerSets"]) == ("Finisher", 3, [])
    names = [entry["exercise"]["name"] for entry in item["circuitExercises"]]
    assert names == ["Squat", "Press"]
    assert item["circuitExercises"][0]["sets"][0]["variables"][0]["value"] == {"type": "exact", "value": 10}
    changed = (await coach.patch(f"{items}/{item['_id']}", {"rounds": 4})).ok()
    assert [entry["plannedSetsTotal"] for entry in item["circuitExercises"]] == [3 * len(SETS), 3 * len(SETS)]
    entries = [{**entry, "plannedSetsTotal": 4 * len(SETS)} for entry in item["circuitExercises"]]
    assert (changed["rounds"], changed["circuitExercises"]) == (4, entries)
    (await coach.post(items, circuit | {"circuitExercises": [{"exerciseId": UNKNOWN, "sets": SETS}]})).refused(404)


async def test_library_form_is_copied_into_the_item(coach: CoachClient, items: str) -> None:
    form = await create_form(coach)
    item = (await coach.post(items, {"type": "FORM", "form": {"formId": form["_id"]}})).ok(201)

    assert item["form"] == {"formId": form["_id"], "name": "Check-in", "questions": form["questions"]}
    assert item["answers"] == []
    (await coach.patch(f"/coach/forms/{form['_id']}", {"name": "Another"})).ok()
    (await coach.delete(f"/coach/forms/{form['_id']}")).ok(204)
    block = (await coach.get(items.removesuffix("/witems"))).ok()
    assert block["items"][0]["form"] == item["form"]
    (await coach.post(items, {"type": "FORM", "form": {"formId": form["_id"]}})).refused(404, "Form")


async def test_form_can_be_created_for_a_single_item(coach: CoachClient, items: str) -> None:
    form = {"name": "Once", "questions": [{"label": "Well?"}]}
    item = (await coach.post(items, {"type": "FORM", "form": form})).ok(201)

    [question] = item["form"]["questions"]
    assert (item["form"]["formId"], item["form"]["name"]) == (None, "Once")
    assert (question["label"], question["type"], question["required"], question["options"]) == (
        "Well?",
        "text",
        False,
        [],
    )


async def test_metrics_item_has_metrics_and_units(coach: CoachClient, items: str) -> None:
    metric_set = await create_set(coach)
    item = (await coach.post(items, {"type": "METRICS", "metricsFields": {"metricsSetId": metric_set["_id"]}})).ok(201)

    assert item["metricsFields"] == {
        "metricsSetId": metric_set["_id"],
        "name": "Body",
        "metrics": metric_set["metrics"],
    }
    assert item["metricsFields"]["metrics"][0]["metricUnit"]["shortName"] == "kg"
    (await coach.delete(f"/coach/metrics-sets/{metric_set['_id']}")).ok(204)
    block = (await coach.get(items.removesuffix("/witems"))).ok()
    assert block["items"][0]["metricsFields"]["name"] == "Body", "what names a deleted set still reads"
    body = {"type": "METRICS", "metricsFields": {"metricsSetId": metric_set["_id"]}}
    (await coach.post(items, body)).refused(404, "Metrics set")


async def test_reminder_has_a_time_of_day(coach: CoachClient, items: str) -> None:
    for scheduled, time in (("08:30", "08:30"), ("23:59", "23:59"), ("2026-03-02T08:31:00Z", "08:31")):
        fields = {"scheduledTime": scheduled, "message": "Drink water"}
        item = (await coach.post(items, {"type": "REMINDER", "reminderFields": fields})).ok(201)
        assert item["reminderFields"] == {**fields, "time": time}


@pytest.mark.parametrize(
    ("own", "company", "times"),
    [
        ("Pacific/Pago_Pago", "UTC", ["21:00", "19:00", "08:00", "08:00", "08:00"]),
        (None, "Asia/Kolkata", ["13:30", "11:30", "08:00", "08:00", "08:00"]),
        ("Europe/Berlin", "UTC", ["10:00", "08:00", "08:00", "08:00", "08:00"]),
    ],
)
async def test_an_instant_reminds_at_the_local_time_of_the_client(
    coach: CoachClient, own: str | None, company: str, times: list[str]
) -> None:
    (await coach.patch("/coach/account", {"timezone": company})).ok()
    ana = await coach.create_customer(timezone=own)
    instants = ["2026-07-20T08:00:00Z", "2026-07-20 08:00:00.5+02:00"]  # in summer time, on whatever day the block is
    sent = [*instants, "2026-07-20T08:00:00", "08:00", "0001-01-01T08:00+14:00"]  # the last is not a date elsewhere
    reminders = [{"type": "REMINDER", "reminderFields": {"scheduledTime": each, "message": "Drink"}} for each in sent]
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    plan = (
        await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "A", "day": 1, "items": reminders})
    ).ok(201)

    def clocks(items: list[dict[str, Any]]) -> list[str]:
        assert [item["reminderFields"]["scheduledTime"] for item in items] == sent, "as it was sent"
        return [item["reminderFields"]["time"] for item in items]

    assert clocks(plan["items"]) == ["08:00"] * 5, "a program has no client"
    body = {"customerId": ana["_id"], "startDate": "2026-12-07"}
    (await coach.post(f"/coach/programs/{program['_id']}/assign", body)).ok(201)
    [block] = (
        await coach.get(f"/coach/customers/{ana['_id']}/wblock", startDate="2026-12-07", endDate="2026-12-07")
    ).ok()
    assert clocks(block["items"]) == times
    path = f"/coach/customers/{ana['_id']}/wblocks/{block['_id']}"
    added = [(await coach.post(f"{path}/witems", each)).ok(201) for each in reminders]
    assert clocks(added) == times
    assert (
        clocks([(await coach.patch(f"{path}/witems/{each['_id']}", {"comment": "x"})).ok() for each in added]) == times
    )
    own_block = (
        await (await coach.as_client(ana)).get("/customer/wblock", startDate="2026-12-07", endDate="2026-12-07")
    ).ok()[0]
    assert clocks(own_block["items"][:5]) == times


@pytest.mark.parametrize(
    ("item", "field"),
    [
        ({"type": "CIRCUIT", "circuitExercises": [{"exerciseId": UNKNOWN, "sets": SETS}]}, "circuitName"),
        ({"type": "CIRCUIT", "circuitName": "A"}, "circuitExercises"),
        ({"type": "CIRCUIT", "circuitName": "A", "circuitExercises": []}, "circuitExercises"),
        ({"type": "CIRCUIT", "circuitName": "A", "circuitExercises": [{"sets": SETS}]}, "circuitExercises.0.exerciseId"),
        ({"type": "CIRCUIT", "circuitName": "A", "circuitExercises": [{"exerciseId": UNKNOWN}]}, "circuitExercises.0.sets"),
        ({"type": "FORM"}, "form"),
        ({"type": "FORM", "form": {}}, "form.name"),
        ({"type": "FORM", "form": {"name": "A", "questions": []}}, "form.questions"),
        ({"type": "FORM", "form": {"name": "A", "questions": [{"label": "B", "type": "choice"}]}}, "form.questions.0.options"),
        ({"type": "FORM", "form": {"formId": 5}}, "form.formId"),
        ({"type": "METRICS"}, "metricsFields"),
        ({"type": "METRICS", "metricsFields": {}}, "metricsFields.metricsSetId"),
        ({"type": "REMINDER", "reminderFields": {"message": "A"}}, "reminderFields.scheduledTime"),
        ({"type": "REMINDER", "reminderFields": {"scheduledTime": "24:00", "message": "A"}}, "reminderFields.scheduledTime"),
        ({"type": "REMINDER", "reminderFields": {"scheduledTime": "2026-03-02x08:30", "message": "A"}}, "reminderFields.scheduledTime"),
        ({"type": "REMINDER", "reminderFields": {"scheduledTime": "08:00"}}, "reminderFields.message"),
    ],
)  # fmt: skip
async def test_invalid_item_is_rejected_with_its_field(
    coach: CoachClient, items: str, item: dict[str, Any], field: str
) -> None:
    error = (await coach.post(items, item)).refused(400)
    assert [message for message in error["message"] if message.startswith(field + " ")], error


async def test_form_is_created_changed_and_deleted(coach: CoachClient, other_company: CoachClient) -> None:
    form = await create_form(coach, "Zeta")
    await create_form(coach, "alpha")
    path = f"/coach/forms/{form['_id']}"
    first, second = form["questions"]

    questions = [second | {"label": "Pain?"}, {"label": "Anything else?"}]
    changed = (await coach.patch(path, {"questions": questions, "version": 0})).ok()

    assert [q["label"] for q in changed["questions"]] == ["Pain?", "Anything else?"]
    assert changed["questions"][0]["_id"] == second["_id"]
    assert [f["name"] for f in (await coach.get("/coach/forms")).ok()] == ["alpha", "Zeta"]
    assert (await coach.get(path)).ok() == changed
    (await coach.patch(path, {"questions": [first]})).refused(404, "Question")
    (await coach.patch(path, {"questions": []})).refused(400, "questions")
    (await coach.patch(path, {"questions": [{"type": "text"}]})).refused(400, "questions.0.label")
    (await coach.patch(path, {"name": "x", "version": 0})).refused(409)
    assert (await other_company.get("/coach/forms")).ok() == []
    (await coach.delete(path)).ok(204)
    (await coach.delete(path)).refused(404)


async def test_metric_keeps_its_identifier_and_unit(coach: CoachClient) -> None:
    created = await create_set(coach)
    path = f"/coach/metrics-sets/{created['_id']}"
    [weight] = created["metrics"]
    kg, cm = await unit(coach), await unit(coach, "cm")

    both = [{"_id": weight["_id"], "name": "Weight", "metricUnitId": kg}, {"name": "Waist", "metricUnitId": cm}]
    changed = (await coach.patch(path, {"metrics": both, "assignAutomatically": True})).ok()
    assert [m["name"] for m in changed["metrics"]] == ["Weight", "Waist"]
    assert (changed["metrics"][0]["_id"], changed["assignAutomatically"]) == (weight["_id"], True)

    (await coach.patch(path, {"metrics": [both[0] | {"metricUnitId": cm}]})).refused(400, "unit")
    (await coach.patch(path, {"metrics": [both[0] | {"_id": UNKNOWN}]})).refused(404, "Metric")
    (await coach.patch(path, {"metrics": [{"name": "A", "metricUnitId": UNKNOWN}]})).refused(404, "Metric unit")
    without = (await coach.patch(path, {"metrics": [{"name": "Hips", "metricUnitId": cm}]})).ok()
    assert [m["name"] for m in without["metrics"]] == ["Hips"]
    again = (await coach.patch(path, {"metrics": [both[0]]})).ok()
    assert again["metrics"][0]["_id"] == weight["_id"], "archived, not lost"
    assert [s["name"] for s in (await coach.get("/coach/metrics-sets")).ok()] == ["Body"]
    (await coach.delete(path)).ok(204)
    (await coach.get(path)).refused(404)
    assert (await coach.get("/coach/metrics-sets")).ok() == []
