"""A document for every path parameter, in one company."""

from __future__ import annotations

import io
import secrets
from functools import partial
from typing import Any

import aiohttp
from PIL import Image

from coaching_service.core.jobs import worker
from coaching_service.integrations.company_import import service as company_import
from coaching_service.lifecycle.customer_bulk import service as customer_bulk
from coaching_service.oauth import clients
from tests.support.assistants import authorize_assistant
from tests.support.authenticator import register
from tests.support.client import CoachClient
from tests.support.jobs import ended_job
from tests.support.media_files import mp4
from tests.support.pdf_files import make_pdf
from tests.support.push_service import Device
from tests.support.service_process import until

World = dict[str, str]


def small_picture() -> bytes:
    """A small PNG picture."""
    out = io.BytesIO()
    Image.new("RGB", (8, 8), "teal").save(out, "PNG")
    return out.getvalue()


def _form(**fields: str | bytes) -> aiohttp.FormData:
    form = aiohttp.FormData(default_to_multipart=True)
    for name, value in fields.items():
        form.add_field(name, value, filename="file" if isinstance(value, bytes) else None)
    return form


_TASK = {"type": "TASK", "taskFields": {"title": "Walk"}}


async def own_import(coach: CoachClient, customer: dict[str, Any]) -> dict[str, Any]:
    """An import of a client's own history that has ended."""
    client = await coach.as_client(customer)
    table = _form(file=b"Date,Exercise,Reps\n2025-01-07,Push-Up,10\n")
    job: dict[str, Any] = (await client.send("POST", "/customer/import", data=table)).ok(202)

    async def has_ended() -> bool:
        await worker.run_due(coach.ctx.services, {company_import.IMPORT: company_import.run_step})
        return (await client.get(f"/customer/jobs/{job['_id']}")).ok()["status"] not in ("queued", "running")

    await until(has_ended, "the client's import has ended")
    return job


async def make_world(coach: CoachClient) -> World:
    """Create one document of each resource; returns identifiers by path parameter (or by owner and parameter)."""
    run_due = partial(worker.run_due, coach.ctx.services)
    number = secrets.token_hex(6)
    customer = await coach.create_customer(email=f"ana{number}@example.com", sendInvitation=False, externalId=number)
    media = {"type": "link", "url": "https://media.example.com/squat"}
    exercise = await coach.create_exercise(media=[media], externalId=number)
    other_exercise = await coach.create_exercise("Press")
    block = await coach.schedule(customer)
    path = f"/coach/customers/{customer['_id']}/wblocks/{block['_id']}"
    (await coach.patch(path, {"externalId": number})).ok()
    path = f"{path}/witems"
    item = (await coach.post(path, _TASK)).ok(201)
    entry = {"exerciseId": exercise["_id"], "sets": [{"type": "reps", "minPlannedReps": 10}]}
    finisher = {"type": "CIRCUIT", "circuitName": "Finisher", "circuitExercises": [entry]}
    circuit = (await coach.post(path, finisher)).ok(201)
    squat = {"type": "EXERCISE", "exerciseId": exercise["_id"], "exerciseSets": [{"type": "reps", "minPlannedReps": 8}]}
    own_item = (await coach.post(path, squat)).ok(201)
    program = (await coach.post("/coach/programs", {"name": "Base", "externalId": number})).ok(201)
    words = (await coach.post("/coach/message-templates", {"name": "Hi", "text": "Hi {firstName}"})).ok(201)
    form = (await coach.post("/coach/forms", {"name": "Check-in", "questions": [{"label": "Well?"}]})).ok(201)
    unit = (await coach.get("/metrics-units")).ok()[0]["_id"]
    metrics = {"name": "Body", "metrics": [{"name": "Weight", "metricUnitId": unit}]}
    metric_set = (await coach.post("/coach/metrics-sets", metrics)).ok(201)
    plan = f"/coach/programs/{program['_id']}/wblocks"
    program_block = (await coach.post(plan, {"name": "Day one", "day": 1})).ok(201)
    planned = (await coach.post(f"{plan}/{program_block['_id']}/witems", _TASK)).ok(201)
    planned_circuit = (await coach.post(f"{plan}/{program_block['_id']}/witems", finisher)).ok(201)
    started = {"customerId": customer["_id"], "startDate": "2026-03-02"}
    assignment = (await coach.post(f"/coach/programs/{program['_id']}/assign", started)).ok(201)
    session = await coach.interactive()
    employee = (await session.post("/coach/employees", {"name": "Eli", "email": f"eli{number}@example.com"})).ok(201)
    key = (await session.post("/coach/api-keys", {"name": "Extra"})).ok(201)
    assistant = await authorize_assistant(session.ctx)
    allowed = await authorize_assistant(session.ctx, "Planner", rest_scopes=("customers:read",))
    new: clients.NewApplication = {"name": "Planner", "redirectUris": ["https://a.example"], "scopes": ["webhooks"]}
    application, _ = await clients.register_application(session.ctx, new)
    client = f"/coach/customers/{customer['_id']}"
    (await coach.post(f"{client}/metrics-sets", {"metricsSetId": metric_set["_id"]})).ok(201)
    for date in ("2026-03-01", "2026-03-02"):
        value = {"metricId": metric_set["metrics"][0]["_id"], "date": date, "value": 73}
        (await coach.post(f"{client}/metrics-sets/{metric_set['_id']}/entries", value)).ok(201)
    best = {"exerciseId": exercise["_id"], "type": "heaviest_load", "value": 20, "date": "2026-03-02"}
    record = (await coach.post(f"{client}/personal-records", best)).ok(201)
    photo = (
        await coach.send("POST", f"{client}/progress-photos", data=_form(createdAt="2026-03-02", imageSideIndex="1"))
    ).ok(201)
    another = _form(createdAt="2026-03-09", imageSideIndex="1")
    own_photo = (await coach.send("POST", f"{client}/progress-photos", data=another)).ok(201)
    plan = (await coach.send("POST", f"{client}/nutrition-plans", data=_form(file=make_pdf()))).ok(201)
    note = (await coach.post(f"{client}/notes", {"content": "Hello"})).ok(201)
    changed = await coach.post(f"{client}/notes", {"content": "To be undone"})
    ill = {"kind": "ill", "from": "2026-05-04", "until": "2026-05-10"}
    period = (await coach.post(f"{client}/availability", ill)).ok(201)
    away = {"kind": "away", "from": "2026-06-01", "until": "2026-06-07"}
    own_period = (await (await coach.as_client(customer)).post("/customer/availability", away)).ok(201)
    message = (await coach.post(f"{client}/messages", {"text": "Hello"})).ok(201)
    own_message = (await (await coach.as_client(customer)).post("/customer/messages", {"text": "Hello, coach"})).ok(201)
    own_session = await coach.as_client(customer)
    filmed = await coach.schedule(customer, date="2026-02-26")  # a day that no example hides or shifts
    filmed_item = (await coach.post(f"{client}/wblocks/{filmed['_id']}/witems", squat)).ok(201)
    own_media_path = f"/customer/wblocks/{filmed['_id']}/witems/{filmed_item['_id']}/media"
    media_of_coach = (await coach.send("POST", f"{path}/{item['_id']}/media", data=_form(file=small_picture()))).ok(201)
    own_media, commented = [
        (await own_session.send("POST", own_media_path, data=_form(file=mp4(data=bytes(50))))).ok(201) for _ in range(2)
    ]
    comment, removed = [
        (await coach.post(f"/coach/media/{commented['_id']}/comments", {"text": "Good", "at": 1})).ok(201)
        for _ in range(2)
    ]
    own_comment, own_removed = [
        (await own_session.post(f"/customer/media/{commented['_id']}/comments", {"text": "Thanks"})).ok(201)
        for _ in range(2)
    ]
    # On days that no example hides or shifts.
    movable = await coach.schedule(customer, date="2026-02-27")
    own_workout = {"name": "Run", "date": "2026-02-20", "items": [squat]}
    session_of_client = await coach.as_client(customer)
    own_workouts = [(await session_of_client.post("/customer/wblocks", own_workout)).ok(201) for _ in range(2)]
    (await coach.post(f"{client}/calendar-link")).ok(201)
    short = {"name": "Short", "items": [squat, finisher]}
    template = (await coach.post("/coach/workout-templates", short)).ok(201)
    form_item = {"type": "FORM", "form": {"formId": form["_id"]}}
    check_in = (await coach.post(path, form_item)).ok(201)
    weekday = coach.ctx.caller.today().isoweekday()  # so that there is something to do today
    weekly = {"formId": form["_id"], "weekday": weekday, "startDate": "2026-03-02"}
    recurring = (await coach.post(f"{client}/check-ins", weekly)).ok(201)
    answers = [{"questionId": form["questions"][0]["_id"], "value": "Yes"}]
    (await coach.put(f"{path}/{check_in['_id']}/log", {"isCompleted": True, "answers": answers})).ok()
    response = (await coach.get("/coach/form-responses", customerId=customer["_id"])).ok()["docs"][0]
    for surplus in (await coach.get("/coach/webhooks")).ok()[1:]:  # of earlier calls: their number is limited
        (await coach.delete(f"/coach/webhooks/{surplus['_id']}")).ok(204)
    hook = (await coach.post("/coach/webhooks", {"url": "https://hooks.invalid/", "types": ["form.deleted"]})).ok(201)
    delivery = (await coach.post(f"/coach/webhooks/{hook['_id']}/test")).ok(201)
    spreadsheet = _form(file=b"Date,Exercise,Reps\n2025-01-06,Push-Up,10\n", customerId=customer["_id"])
    job = (await coach.send("POST", "/coach/import", data=spreadsheet)).ok(202)
    await ended_job(coach, job["_id"], partial(run_due, {company_import.IMPORT: company_import.run_step}))
    client_import = await own_import(coach, customer)
    # It changes nothing: examples have the first version of the client.
    later = {"Prefer": "respond-async"}
    bulk = (await coach.post("/coach/customers/bulk/unarchive", {"ids": [customer["_id"]]}, headers=later)).ok(202)
    await ended_job(coach, bulk["jobId"], partial(run_due, {customer_bulk.STEP: customer_bulk.run_step}))
    proposed, rejected = [await _propose_workout(coach, customer, name) for name in ("Later", "Too far")]
    runners = {"programId": program["_id"], "startOn": "joinDay"}
    (await coach.put("/coach/customers/groups/Runners/program", runners)).ok()
    device = {**Device(f"https://push.invalid/{number}", "").subscription, "userAgent": "Phone"}
    subscription = (await session.post("/push-subscriptions", device)).ok(201)
    own_device = {**Device(f"https://push.invalid/own{number}", "").subscription, "userAgent": "Phone"}
    own_client = await coach.as_client(customer)
    own_subscription = (await own_client.post("/customer/push-subscriptions", own_device)).ok(201)
    await register(session, "Phone")
    passkey = (await session.get("/auth/passkeys")).ok()[-1]
    return {
        "externalId": number,
        "passkeyId": passkey["_id"],
        "name": "Runners",
        "subscriptionId": subscription["_id"],
        "deleteOwnPushSubscription/subscriptionId": own_subscription["_id"],
        "proposalId": proposed,
        "rejectProposal/proposalId": rejected,
        "webhookId": hook["_id"],
        "deliveryId": delivery["_id"],
        "jobId": job["_id"],
        "importId": client_import["_id"],
        "bulkJobId": bulk["jobId"],
        "assignmentId": assignment["assignmentId"],
        "metricId": metric_set["metrics"][0]["_id"],
        "date": "2026-03-02",
        "metricsSetId/date": "2026-03-01",
        "recordId": record["_id"],
        "photoId": photo["_id"],
        "photoId/photoId": own_photo["_id"],
        "planId": plan["_id"],
        "fileId": plan["url"].split("/files/")[1].partition("?")[0],
        "noteId": note["_id"],
        "changeId": changed.headers["X-Change-Id"],
        "availabilityId": period["_id"],
        "availabilityId/availabilityId": own_period["_id"],
        "messageId": message["_id"],
        "messageTemplateId": words["_id"],
        "messageId/messageId": own_message["_id"],
        "checkInId": recurring["_id"],
        "responseId": response["_id"],
        "templateId": template["_id"],
        "templateId/witemId": template["items"][0]["_id"],
        "templateId/circuitId": template["items"][1]["_id"],
        "employeeId": employee["_id"],
        "keyId": key["_id"],
        "assistantId": str(assistant.grant["_id"]),
        "grantId": str(allowed.grant["_id"]),
        "applicationId": str(application["_id"]),
        "programId/wblockId": program_block["_id"],
        "programId/witemId": planned["_id"],
        "programId/circuitId": planned_circuit["_id"],
        "programId": program["_id"],
        "formId": form["_id"],
        "metricsSetId": metric_set["_id"],
        "customerId": customer["_id"],
        "exerciseId": exercise["_id"],
        "withExerciseId": other_exercise["_id"],
        "assignedProgramId": program["_id"],
        "mediaId": exercise["media"][0]["_id"],
        "customerId/mediaId": media_of_coach["_id"],
        "wblockId/mediaId": own_media["_id"],
        **{f"{name}OwnItemMedia/wblockId": filmed["_id"] for name in ("list", "upload", "delete")},
        **{f"{name}OwnItemMedia/witemId": filmed_item["_id"] for name in ("list", "upload", "delete")},
        "mediaId/mediaId": commented["_id"],
        "updateMediaComment/commentId": comment["_id"],
        "deleteMediaComment/commentId": removed["_id"],
        "updateOwnMediaComment/commentId": own_comment["_id"],
        "deleteOwnMediaComment/commentId": own_removed["_id"],
        "ownWorkoutId": own_workouts[0]["_id"],
        "ownWorkoutId/witemId": own_workouts[0]["items"][0]["_id"],
        "moveOwnWorkoutBlock/wblockId": movable["_id"],
        "updateOwnWorkoutBlock/wblockId": own_workouts[0]["_id"],
        "deleteOwnWorkoutBlock/wblockId": own_workouts[1]["_id"],
        "wblockId": block["_id"],
        "witemId": item["_id"],
        "wblockId/witemId": own_item["_id"],
        "wblockId/formItemId": check_in["_id"],
        "circuitId": circuit["_id"],
    }


async def _propose_workout(coach: CoachClient, customer: dict[str, Any], name: str) -> str:
    """The identifier of a proposal of an assistant to plan a workout in years."""
    days = [{"date": "2030-01-01", "name": name}]
    call = {"name": "create_workout", "arguments": {"customerId": customer["_id"], "days": days}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    proposed = (await coach.post("/mcp", request)).ok()["result"]["structuredContent"]
    return str(proposed["proposalId"])
