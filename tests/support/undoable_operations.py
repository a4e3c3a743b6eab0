"""Random operations of every feature that can be undone, on what a company has at the moment."""

from __future__ import annotations

import random
from datetime import timedelta

from tests.support import undoable_schedule
from tests.support.client import Reply
from tests.support.training import Json, client_path
from tests.support.undoable import DATES, OPERATIONS, WEEK, Company, operation

__all__ = ["OPERATIONS", "Company", "undoable_schedule"]


# --- clients ---------------------------------------------------------------------------------------------------------


@operation
async def change_client(company: Company, chance: random.Random) -> Reply | None:
    client = await company.pick(chance, "customers")
    own = str(company.coach.ctx.caller.id)
    changes: list[Json] = [
        {"name": chance.choice(["Cai", "Dee"]), "phone": chance.choice([None, "123"])},
        {"groups": chance.choice([[], ["Team"], ["Team", "Evening"]])},
        {"assignedTo": chance.choice([None, own])},
        {"birthday": "1990-01-01", "email": chance.choice([None, f"{chance.random()}@example.com"])},
    ]
    return await company.coach.patch(client_path(client), chance.choice(changes))


@operation
async def archive(company: Company, chance: random.Random) -> Reply | None:
    client = await company.pick(chance, "customers")
    action = chance.choice(["archive", "unarchive"])
    return await company.coach.put(f"/coach/customers/{action}", {"id": client["_id"]})


@operation
async def change_many_clients(company: Company, chance: random.Random) -> Reply | None:
    clients = [str(each["_id"]) for each in await company.find("customers")]
    program, metric_set = await company.pick(chance, "programs"), await company.pick(chance, "metricSets")
    actions: list[tuple[str, Json]] = [
        ("archive", {}),
        ("unarchive", {}),
        ("groups-add", {"groups": ["Morning", "Team"]}),
        ("groups-remove", {"groups": ["Team"]}),
        ("assign-trainer", {"coachId": chance.choice([None, str(company.coach.ctx.caller.id)])}),
        ("assign-metrics-set", {"metricsSetId": metric_set["_id"]}),
    ]
    actions.append(("schedule-shift", {"from": chance.choice(DATES), "days": chance.choice([-1, 1])}))
    actions.append(("schedule-copy", {**WEEK, "targetDate": chance.choice(DATES), "onConflict": "replace"}))
    if program:
        actions.append(("assign-program", {"programId": program["_id"], "startDate": chance.choice(DATES)}))
    action, body = chance.choice(actions)
    return await company.coach.post(f"/coach/customers/bulk/{action}", {"ids": clients, **body})


# --- progress --------------------------------------------------------------------------------------------------------


@operation
async def change_note(company: Company, chance: random.Random) -> Reply | None:
    client, note = await company.pick(chance, "customers"), await company.pick(chance, "notes")
    if note is None or chance.random() < 0.3:
        return await company.coach.post(client_path(client, "notes"), {"content": "Hello"})
    path = f"/coach/customers/{note['customerId']}/notes/{note['_id']}"
    if chance.random() < 0.5:
        return await company.coach.delete(path)
    return await company.coach.patch(path, {"content": chance.choice(["Bye", "Hello"]), "isHealth": True})


@operation
async def dismiss_attention(company: Company, chance: random.Random) -> Reply | None:
    client = await company.pick(chance, "customers")
    reasons = ["nothing_scheduled", "missed_workout", "health_note", "personal_record"]
    body = {"reason": chance.choice(reasons), "until": chance.choice([None, "2099-01-01"])}
    return await company.coach.put(f"/coach/attention/{client['_id']}", body)


@operation
async def change_metrics(company: Company, chance: random.Random) -> Reply | None:
    client, metric_set = await company.pick(chance, "customers"), await company.pick(chance, "metricSets")
    path = client_path(client, "metrics-sets")
    action = chance.choice(["assign", "unassign", "record", "record"])
    if action == "assign":
        return await company.coach.post(path, {"metricsSetId": metric_set["_id"]})
    if action == "unassign":
        return await company.coach.delete(f"{path}/{metric_set['_id']}")
    metric = chance.choice(metric_set["metrics"])["_id"]
    body = {"metricId": metric, "date": chance.choice(DATES), "value": chance.randint(50, 90)}
    return await company.coach.post(f"{path}/{metric_set['_id']}/entries", body)


@operation
async def change_record(company: Company, chance: random.Random) -> Reply | None:
    client, exercise = await company.pick(chance, "customers"), await company.pick(chance, "exercises")
    record = await company.pick(chance, "personalRecords", source="manual")
    value = chance.randint(1, 9) * 20
    if record is None or chance.random() < 0.3:
        kind = chance.choice(["heaviest_load", "most_reps", "estimated_1rm"])
        body = {"exerciseId": exercise["_id"], "type": kind, "value": value, "date": chance.choice(DATES)}
        return await company.coach.post(client_path(client, "personal-records"), body)
    path = f"/coach/customers/{record['customerId']}/personal-records/{record['_id']}"
    if chance.random() < 0.5:
        return await company.coach.delete(path)
    return await company.coach.patch(path, {"value": value})


@operation
async def change_check_in(company: Company, chance: random.Random) -> Reply | None:
    client, check_in = await company.pick(chance, "customers"), await company.pick(chance, "checkIns")
    if check_in is not None and chance.random() < 0.5:
        return await company.coach.delete(client_path({"_id": check_in["customerId"]}, "check-ins", check_in["_id"]))
    form, metric_set = await company.pick(chance, "forms"), await company.pick(chance, "metricSets", deletedAt=None)
    contents: list[Json] = [{"taskFields": {"title": "Walk"}}]
    contents += [{"formId": form["_id"]}] if form else []
    contents += [{"metricsSetId": metric_set["_id"]}] if metric_set else []
    body = {"everyDays": chance.randint(3, 9), "startDate": DATES[0], **chance.choice(contents)}
    return await company.coach.post(client_path(client, "check-ins"), body)


@operation
async def change_availability(company: Company, chance: random.Random) -> Reply | None:
    client, period = await company.pick(chance, "customers"), await company.pick(chance, "availability")
    today = company.coach.ctx.caller.today()
    first, last = sorted(str(today + timedelta(days=chance.randint(-3, 20))) for _ in range(2))
    body = {"kind": chance.choice(["ill", "limited"]), "until": chance.choice([last, None])}
    if period is None or chance.random() < 0.4:
        return await company.coach.post(client_path(client, "availability"), {**body, "from": first})
    path = client_path({"_id": period["customerId"]}, "availability", period["_id"])
    if chance.random() < 0.4:
        return await company.coach.delete(path)
    return await company.coach.patch(path, body)


@operation
async def resume(company: Company, chance: random.Random) -> Reply | None:
    client, today = await company.pick(chance, "customers"), company.coach.ctx.caller.today()
    body = {"from": str(today + timedelta(days=chance.randint(0, 5))), "mode": chance.choice(["shift", "drop"])}
    return await company.coach.post(client_path(client, "schedule/resume"), body)


# --- libraries -------------------------------------------------------------------------------------------------------


@operation
async def change_exercise(company: Company, chance: random.Random) -> Reply | None:
    exercise = await company.pick(chance, "exercises", deletedAt=None)
    if exercise is None or chance.random() < 0.2:
        return await company.coach.post("/exercises", {"name": f"Row {chance.randint(0, 9)}", "tags": ["back"]})
    path = f"/exercises/{exercise['_id']}"
    if chance.random() < 0.4:
        return await company.coach.delete(path)
    media = [{"type": "link", "url": "https://media.example.com/squat"}]
    return await company.coach.patch(path, {"name": chance.choice(["Lunge", "Squat"]), "media": media})


@operation
async def change_override(company: Company, chance: random.Random) -> Reply | None:
    shared = await company.coach.ctx.db["exercises"].find_one({"companyId": None, "deletedAt": None})
    assert shared is not None
    path = f"/exercises/{shared['_id']}/override"
    if chance.random() < 0.3:
        return await company.coach.delete(path)
    return await company.coach.put(
        path, {"aliases": [f"Alias {chance.randint(0, 3)}"], "defaultInstructions": "Slowly"}
    )


@operation
async def change_form(company: Company, chance: random.Random) -> Reply | None:
    form = await company.pick(chance, "forms")
    questions = [{"label": "How was it?"}, {"label": "Sleep?", "type": "number"}]
    if form is None or chance.random() < 0.2:
        return await company.coach.post("/coach/forms", {"name": "Weekly", "questions": questions})
    path = f"/coach/forms/{form['_id']}"
    if chance.random() < 0.4:
        return await company.coach.delete(path)
    return await company.coach.patch(path, {"name": "Daily", "questions": questions[: chance.randint(1, 2)]})


@operation
async def change_metric_set(company: Company, chance: random.Random) -> Reply | None:
    metric_set = await company.pick(chance, "metricSets", deletedAt=None)
    if metric_set is None or chance.random() < 0.2:
        unit = (await company.coach.get("/metrics-units")).ok()[0]["_id"]
        body = {"name": "More", "metrics": [{"name": "Hips", "metricUnitId": unit}]}
        return await company.coach.post("/coach/metrics-sets", body)
    path = f"/coach/metrics-sets/{metric_set['_id']}"
    if chance.random() < 0.3:
        return await company.coach.delete(path)
    return await company.coach.patch(path, {"name": chance.choice(["Body", "Shape"]), "assignAutomatically": True})
