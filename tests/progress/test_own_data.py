"""What clients read and record of their own: exercises, records, metrics, photos, plans, responses, and the export."""

from __future__ import annotations

import json
from typing import Any

import pytest

from coaching_service.core.database.documents import registry
from coaching_service.lifecycle import export
from tests.conftest import PASSWORD
from tests.core.test_uploads import PDF, form, picture
from tests.support.client import MONDAY, SUNDAY, TUESDAY, UNKNOWN, CoachClient
from tests.support.training import Json, block_with, client_path, exercise_of, form_of, hide, log, metric_set
from tests.support.transfer import read_zip

PAGE = {"pageSize": 10, "pageNum": 1}
# The collections of clients' data whose records only coaches, or only the service, may read.
WITHHELD = {
    "secondFactors",
    "searchTexts",
    "attentionDismissals",
    "audit",
    "bodyWeights",  # a copy of values of metrics
    "calendarLinks",
    "changeParts",
    "changes",
    "checkIns",
    "companyJobs",
    "conversations",
    "customers",
    "failedMails",
    "fs.files",
    "hiddenDays",
    "identities",
    "identityClaims",
    "jobs",
    "notes",
    "notifications",
    "passkeys",
    "passwordResets",
    "pendingAttachments",
    "planCounters",
    "programAssignments",
    "proposals",
    "providerAccounts",
    "pushSubscriptions",
    "replays",
    "sandboxMails",
    "sessions",
    "waitingMessages",
    "webhookDeliveries",
}


async def get(client: CoachClient, path: str, **query: Any) -> Any:
    return (await client.get(f"/customer/{path}", **query)).ok()


async def test_client_reads_exercises_and_results_but_not_those_of_hidden_days(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    squat = await coach.create_exercise(defaultInstructions="Sit back", videoLink="https://video.example.com/squat")
    done, client = [{"reps": 5, "load": 100}], await coach.as_client(ana)
    monday = await block_with(coach, ana, exercise_of(squat), form_of())
    tuesday = await block_with(coach, ana, exercise_of(squat), form_of(), date=TUESDAY)
    await block_with(coach, ana, exercise_of(squat), date=SUNDAY)
    for block, load in ((monday, 100), (tuesday, 110)):
        exercise, check_in = block["items"]
        (await log(coach, block, exercise, customerSets=[{**done[0], "load": load}])).ok()
        answers = [{"questionId": check_in["form"]["questions"][0]["_id"], "value": "Fine"}]
        (await log(coach, block, check_in, answers=answers)).ok()
    path, days = f"exercise/{squat['_id']}", {"startDate": MONDAY, "endDate": SUNDAY}

    exercise = await get(client, path)
    assert (exercise["name"], exercise["defaultInstructions"]) == ("Squat", "Sit back")
    assert exercise["videoLink"] == "https://video.example.com/squat"
    assert (await coach.get(f"/exercises/{squat['_id']}")).ok().items() >= exercise.items()

    coaches = f"/coach/customers/{ana['_id']}"
    for same, query in (
        (f"{path}/history", PAGE | {"includeIncomplete": "true"}),
        (f"{path}/progress", days | {"groupBy": "session"}),
        ("personal-records", {}),
        ("form-responses", {}),
    ):
        assert await get(client, same, **query) == (await coach.get(f"{coaches}/{same}", **query)).ok()

    await hide(coach, ana, TUESDAY, SUNDAY)
    history = await get(client, f"{path}/history", **PAGE, includeIncomplete="true")
    assert ([each["date"] for each in history["docs"]], history["totalDocs"]) == ([MONDAY], 1)
    first = await get(client, f"{path}/history", pageSize=1, pageNum=1)
    assert first["nextCursor"] is None
    progress = await get(client, f"{path}/progress", **days, groupBy="session")
    assert [each["date"] for each in progress] == [MONDAY]
    assert [each["date"] for each in await get(client, "form-responses")] == [MONDAY]
    assert [each["type"] for each in await get(client, "personal-records")] == ["most_reps"], "that of Monday"
    (await client.get(f"/customer/exercise/{UNKNOWN}")).refused(404)


async def test_client_records_values_of_assigned_metric_sets(coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    body, foreign = await metric_set(coach), await metric_set(coach, "Hips")
    (await coach.post(client_path(ana, "metrics-sets"), {"metricsSetId": body["_id"]})).ok(201)
    (await coach.post(client_path(bo, "metrics-sets"), {"metricsSetId": foreign["_id"]})).ok(201)
    client, metric = await coach.as_client(ana), body["metrics"][0]["_id"]
    path, value = f"/customer/metrics-sets/{body['_id']}", {"metricId": metric, "date": MONDAY, "value": 71.5}

    entry = (await client.post(f"{path}/entries", value)).ok(201)
    again = await client.send("POST", f"{path}/entries", json=value, headers={"Idempotency-Key": "one"})
    assert (again.ok(201)["_id"], entry["value"]) == (entry["_id"], 71.5)
    assert await get(client, f"metrics-sets/{body['_id']}/metrics/{metric}/history") == [
        {"date": MONDAY, "value": 71.5}
    ]
    [assigned] = await get(client, "metrics-sets")
    assert (assigned["metricsSet"]["_id"], assigned["metrics"][0]["currentValue"]) == (body["_id"], 71.5)
    assert (await coach.get(client_path(ana))).ok()["lastActivityDate"] is not None

    for unknown in (UNKNOWN, foreign["_id"]):
        hips = foreign["metrics"][0]["_id"]
        refused = (await client.get(f"/customer/metrics-sets/{unknown}/metrics/{hips}/history")).refused(404)
        assert refused == (
            await client.post(f"/customer/metrics-sets/{unknown}/entries", {**value, "metricId": hips})
        ).refused(404), "contract 3: 500 only under /coach/customers"
    (await coach.delete(client_path(ana, "metrics-sets", body["_id"]))).ok(204)
    assert (await client.post(f"{path}/entries", value)).refused(409)["code"] == "METRICS_SET_NOT_ASSIGNED"
    assert len(await get(client, f"metrics-sets/{body['_id']}/metrics/{metric}/history")) == 1


async def test_client_adds_and_deletes_photos_and_reads_plans(coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    client = await coach.as_client(ana)
    other = await (await coach.as_client(bo)).send("POST", "/customer/progress-photos", data=_photo())
    (await coach.send("POST", client_path(ana, "nutrition-plans"), data=form(PDF, "file", "a.pdf"))).ok(201)

    photo = (await client.send("POST", "/customer/progress-photos", data=_photo())).ok(201)
    assert photo["photos"]["frontUrl"] is not None
    assert [each["_id"] for each in (await get(client, "progress-photos", **PAGE))["docs"]] == [photo["_id"]]
    (await client.delete(f"/customer/progress-photos/{other.ok(201)['_id']}")).refused(404)
    (await client.delete(f"/customer/progress-photos/{photo['_id']}")).ok(204)
    assert (await get(client, "progress-photos", **PAGE))["docs"] == []
    assert [each["fileName"] for each in (await get(client, "plan-versions", **PAGE))["docs"]] == ["a.pdf"]


def _photo() -> Any:
    return form(picture(), createdAt=MONDAY, imageSideIndex="1")


async def test_own_export_has_what_the_client_may_read_and_nothing_else(coach: CoachClient) -> None:
    assert {name for name, each in registry.items() if each.client_field} == {*export.COLLECTIONS} | (
        WITHHELD - {"fs.files"}
    )
    ana = await coach.create_customer("Ana", groups=["Slow payers"], metadata={"crm": "secret"})
    client = await coach.as_client(ana)
    await block_with(coach, ana, exercise_of(await coach.create_exercise()), name="Legs")
    await block_with(coach, ana, date=TUESDAY, name="Surprise")
    (await coach.post(client_path(ana, "notes"), {"content": "Never trains"})).ok(201)
    (await client.post("/customer/availability", {"kind": "away", "from": MONDAY, "note": "Sea"})).ok(201)
    await hide(coach, ana, TUESDAY)
    (await client.send("PUT", "/customer/me/profile-photo", data=form(picture(), "profilePhotoFile"))).ok()
    photo = (await client.send("POST", "/customer/progress-photos", data=_photo())).ok(201)
    unsent = form(PDF, "file", "other-client.pdf")
    (await coach.send("POST", client_path(ana, "messages/attachments"), data=unsent)).ok(201)

    entries = read_zip((await client.get("/customer/export")).raw)

    assert {name for name in entries if name.startswith("records/")} == {
        f"records/{name}.jsonl" for name in (*export.COLLECTIONS, "profile")
    }
    [block] = _records(entries, "workoutBlocks")
    assert block["name"] == "Legs"
    assert [each["note"] for each in _records(entries, "availability")] == ["Sea"]
    assert _records(entries, "profile")[0]["name"] == "Ana"
    for private in (b"Slow payers", b"secret", b"Never trains", b"Surprise"):
        assert not any(private in content for content in entries.values())
    exported = [name for name in entries if name.startswith("files/")]
    assert len(exported) == 2, "the two pictures, and not what a coach has uploaded and not sent"
    assert f"files/{photo['photos']['frontKey']}" in exported


async def test_own_export_leaves_out_all_records_of_hidden_days(coach: CoachClient) -> None:
    """Workouts, and what was logged in them: the answers of forms and the records."""
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise()
    client = await coach.as_client(ana)
    question, by_item = [{"label": "Well?", "type": "text"}], {}
    for date, answer, load in ((MONDAY, "Shown answer", 60), (TUESDAY, "Hidden answer", 80)):
        block = await block_with(coach, ana, exercise_of(squat), form_of(*question), date=date)
        sets = [{"index": 1, "reps": 5, "load": load, "isCompleted": True}]
        (await log(coach, block, block["items"][0], customerSets=sets)).ok()
        answers = [{"questionId": block["items"][1]["form"]["questions"][0]["_id"], "value": answer}]
        (await log(coach, block, block["items"][1], answers=answers)).ok()
        by_item[block["items"][0]["_id"]] = date
        media = f"/customer/wblocks/{block['_id']}/witems/{block['items'][0]['_id']}/media"
        (await client.send("POST", media, data=form(picture(), "file"))).ok(201)

    async def exported() -> dict[str, set[str]]:
        entries = read_zip((await client.get("/customer/export")).raw)
        by_day = ("workoutBlocks", "formResponses", "personalRecords")
        media = {by_item[record["witemId"]] for record in _records(entries, "setMedia")}
        assert len([name for name in entries if name.startswith("files/")]) == len(media)
        return {name: {str(record["date"]) for record in _records(entries, name)} for name in by_day} | {
            "setMedia": media
        }

    assert await exported() == {
        "workoutBlocks": {MONDAY, TUESDAY},
        "formResponses": {MONDAY, TUESDAY},
        "personalRecords": {MONDAY, TUESDAY},
        "setMedia": {MONDAY, TUESDAY},
    }
    await hide(coach, ana, TUESDAY)
    assert await exported() == {
        "workoutBlocks": {MONDAY},
        "formResponses": {MONDAY},
        "personalRecords": {MONDAY},
        "setMedia": {MONDAY},
    }


async def test_own_export_has_the_records_that_a_coach_entered(coach: CoachClient) -> None:
    """As the list of personal records: they are not part of a day that is hidden."""
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise()
    client = await coach.as_client(ana)
    entered = {"exerciseId": squat["_id"], "type": "heaviest_load", "value": 100, "reps": 1, "date": TUESDAY}
    (await coach.post(client_path(ana, "personal-records"), entered)).ok(201)
    await hide(coach, ana, TUESDAY)
    [listed] = await get(client, "personal-records")
    [exported] = _records(read_zip((await client.get("/customer/export")).raw), "personalRecords")
    assert (exported["_id"], exported["value"]) == (listed["_id"], 100)


def _records(entries: dict[str, bytes], name: str) -> list[Json]:
    return [json.loads(line) for line in entries[f"records/{name}.jsonl"].splitlines()]


@pytest.mark.usefixtures("no_failed_sign_ins")
async def test_client_changes_the_own_password_and_other_sessions_end(
    coach: CoachClient, anonymous: CoachClient
) -> None:
    email = f"ana@{coach.ctx.company_id}.test"
    ana = await coach.create_customer("Ana", email=email, sendInvitation=False)
    first = {"token": ana["firstAccessToken"], "password": PASSWORD}
    client = anonymous.with_bearer((await anonymous.post("/auth/first-access", first)).ok()["accessToken"])
    other = await coach.as_client(ana)
    change = {"currentPassword": PASSWORD, "password": "another long password"}

    wrong = await client.put("/customer/me/password", {**change, "currentPassword": "not this password"})
    assert wrong.refused(403)["code"] == "WRONG_PASSWORD"
    (await client.put("/customer/me/password", {**change, "password": "short"})).refused(400, "password")
    (await client.put("/customer/me/password", change)).ok()

    (await client.get("/customer/me")).ok()
    (await other.get("/customer/me")).refused(401)
    (await anonymous.post("/auth/login", {"email": email, "password": PASSWORD})).refused(401)
    (await anonymous.post("/auth/login", {"email": email, "password": "another long password"})).ok()
