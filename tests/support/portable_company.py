"""A company whose data is twofold everywhere: two clients, exercises, forms and so on that are easily confused.

Names and dates are the same where they can be; what is referred to, values and files differ.
"""

from __future__ import annotations

import io

import aiohttp
from PIL import Image

from coaching_service.library import imported_names
from coaching_service.library.imported_names import read_answers
from coaching_service.people import team
from tests.support.client import MONDAY, TUESDAY, CoachClient
from tests.support.media_files import animation, mp4
from tests.support.pdf_files import make_pdf
from tests.support.training import (
    Json,
    add,
    circuit_of,
    client_path,
    exercise_of,
    form_of,
    log,
    metrics_of,
    own_log,
    path_of,
    read,
    reminder,
    task,
)

COLLEAGUES = ("Eli", "Mia")


def picture(shade: int, kind: str = "PNG") -> bytes:
    """A picture of one color."""
    out = io.BytesIO()
    Image.new("RGB", (24, 16), (shade, 255 - shade, 90)).save(out, kind)
    return out.getvalue()


async def upload(coach: CoachClient, path: str, field: str, file: bytes, method: str = "POST", **texts: str) -> Json:
    """Send a file."""
    data = aiohttp.FormData(default_to_multipart=True)
    data.add_field(field, io.BytesIO(file), filename="same name")
    for name, text in texts.items():
        data.add_field(name, text)
    reply = await coach.send(method, path, data=data)
    assert reply.status in (200, 201), reply.raw
    uploaded: Json = reply.json
    return uploaded


async def hire_colleagues(coach: CoachClient) -> list[str]:
    """Two employees; returns their identifiers."""
    hired = [
        await team.create(coach.ctx, name, f"{name}-{coach.ctx.company_id}@example.com", [], "all", "no hash")
        for name in COLLEAGUES
    ]
    return [str(each["_id"]) for each in hired]


async def make_company(coach: CoachClient) -> None:
    """Two of everything."""
    colleagues = await hire_colleagues(coach)
    library = [await _library(coach, number) for number in range(2)]
    await _overrides(coach)
    await _answered_names(coach, library[0]["exercise"])
    # Each client has the exercises and forms of the other one too, in another order.
    for number, colleague in enumerate(colleagues):
        await _client(coach, number, colleague, library[number:] + library[:number])


async def _library(coach: CoachClient, number: int) -> Json:
    exercise = await coach.create_exercise("Garage squat", tags=[f"tag {number}"], externalId=f"squat-{number}")
    press = await coach.create_exercise("Press", videoLink=f"https://video.example.com/{number}")
    for shade in (10 + number, 20 + number):
        await upload(coach, f"/exercises/{exercise['_id']}/media", "file", picture(shade))
    await upload(coach, f"/exercises/{press['_id']}/media", "file", animation("GIF", 2 + number))
    questions = [
        {"label": "How was it?", "type": "text"},
        {"label": "Mood?", "type": "choice", "options": ["Good", f"Bad {number}"]},
        {"label": f"From side {number}", "type": "photo"},
    ]
    form = (await coach.post("/coach/forms", {"name": "Weekly", "questions": questions})).ok(201)
    units = (await coach.get("/metrics-units")).ok()
    metrics = [{"name": "Body", "metricUnitId": units[number + index]["_id"]} for index in range(2)]
    body = (await coach.post("/coach/metrics-sets", {"name": "Body", "metrics": metrics})).ok(201)
    program = (await coach.post("/coach/programs", {"name": "Base", "description": f"Level {number}"})).ok(201)
    for day in (1, 3):
        path = f"/coach/programs/{program['_id']}/wblocks"
        block = (await coach.post(path, {"name": "Legs", "day": day})).ok(201)
        planned = exercise_of(exercise if day == 1 else press, supersetId="A")
        for item in (planned, exercise_of(press, supersetId="A"), circuit_of(press, exercise)):
            await add(coach, block, item)
    template = {"name": "Short", "items": [exercise_of(exercise), form_of({"label": "Well?"}), metrics_of(body)]}
    (await coach.post("/coach/workout-templates", template)).ok(201)
    (await coach.post("/coach/message-templates", {"name": f"Praise {number}", "text": "Well done!"})).ok(201)
    rule = {"programId": program["_id"], "startOn": "joinDay", "leave": "removeUpcoming"}
    (await coach.put(f"/coach/customers/groups/joined {number}/program", rule)).ok()
    return {"exercise": exercise, "press": press, "form": form, "body": body, "program": program}


async def _overrides(coach: CoachClient) -> None:
    page = (await coach.get("/exercises/unified", pageSize=2, pageNum=1, keywords="squat", type="public")).ok()
    for number, shared in enumerate(page["docs"]):
        path = f"/exercises/{shared['_id']}"
        (await coach.put(f"{path}/override", {"aliases": ["Box"], "defaultInstructions": f"Slowly {number}"})).ok()
        await upload(coach, f"{path}/media", "file", picture(30 + number))


async def _answered_names(coach: CoachClient, exercise: Json) -> None:
    """Answers about two names in files: an exercise, and nothing."""
    answers = read_answers({"Squat in garage": exercise["_id"], "Warm up": "skip"})
    resolved = await imported_names.resolve_names(coach.ctx, dict.fromkeys(answers, 1), answers)
    await imported_names.create_missing(coach.ctx, resolved)


async def _client(coach: CoachClient, number: int, colleague: str, library: list[Json]) -> None:
    own, other = library
    ana = await coach.create_customer("Ana", assignedTo=colleague, groups=[f"group {number}"])
    # Identifiers of other systems can look like ours.
    identity = {"externalId": ana["_id"], "metadata": {"crm": own["form"]["_id"]}}
    (await coach.patch(client_path(ana), identity)).ok()
    client = await coach.as_client(ana)
    await upload(
        coach, client_path(ana, "profile-photo"), "profilePhotoFile", picture(40 + 100 * number, "JPEG"), "PUT"
    )
    for date, side in ((MONDAY, "1"), (MONDAY, "2"), (TUESDAY, "1")):
        shade = 50 + 100 * number + 10 * int(side) + (date == TUESDAY)
        path = client_path(ana, "progress-photos")
        await upload(coach, path, "imageFile", picture(shade), createdAt=date, imageSideIndex=side)
    for version in range(2):
        await upload(coach, client_path(ana, "nutrition-plans"), "file", make_pdf(f"plan {number} {version}"))
    await _training(coach, client, ana, own, other)
    start = {"customerId": ana["_id"], "startDate": "2026-04-06"}
    (await coach.post(f"/coach/programs/{own['program']['_id']}/assign", start)).ok(201)
    await _figures(coach, client, ana, number, own, other)


async def _training(coach: CoachClient, client: CoachClient, ana: Json, own: Json, other: Json) -> None:
    supersets = [
        exercise_of(own["exercise"], supersetId="A"),
        exercise_of(other["exercise"], supersetId="A"),
        exercise_of(own["press"], supersetId="B"),
        exercise_of(other["press"], supersetId="B"),
    ]
    forms = [{"type": "FORM", "form": {"formId": each["form"]["_id"]}} for each in (own, other)]
    more = [circuit_of(own["press"], other["exercise"]), task(), reminder(), metrics_of(own["body"])]
    blocks = []
    for date in (MONDAY, MONDAY, TUESDAY):
        block = await coach.schedule(ana, date, "Legs")
        for item in [*supersets, *forms, *more]:
            await add(coach, block, item)
        blocks.append(await read(coach, block))
    for count, block in enumerate(blocks[1:], 1):
        await _log_everything(coach, client, block, count)
    for count, block in enumerate(blocks):
        about = {"wblockId": block["_id"], "witemId": block["items"][count]["_id"]}
        (await client.post("/customer/messages", {"text": "Like this?", "about": about})).ok(201)
        file = mp4(data=block["_id"].encode()) if count else make_pdf(block["_id"])
        attached = await upload(coach, client_path(ana, "messages", "attachments"), "file", file)
        message = {"text": "Yes", "about": about, "attachments": [attached["_id"]]}
        (await coach.post(client_path(ana, "messages"), message)).ok(201)
    for block, exercise in ((blocks[1], own["exercise"]), (blocks[2], other["exercise"])):
        item = next(each for each in block["items"] if each.get("exerciseId") == exercise["_id"])
        path = f"/customer/wblocks/{block['_id']}/witems/{item['_id']}/media"
        shown = mp4(data=f"set of {block['_id']}".encode())
        sent = await upload(client, path, "file", shown, exerciseId=exercise["_id"], index="1")
        marks = [{"kind": "angle", "points": [[0.1, 0.2], [0.5, 0.5], [0.9, 0.25]]}]
        comment = {"text": "Knees out", "at": 1.5, "marks": marks}
        (await coach.post(f"/coach/media/{sent['_id']}/comments", comment)).ok(201)


async def _log_everything(coach: CoachClient, client: CoachClient, block: Json, count: int) -> None:
    """Log the supersets, the circuit, both forms and the metrics of a block."""
    first, second, *_ = block["items"]
    (await own_log(client, block, first, customerSets=[{"reps": 8 + count, "load": 60}], comment="Fine")).ok()
    (await log(coach, block, second, customerSets=[{"reps": 8, "load": 50 + count}])).ok()
    for item in block["items"]:
        if item["type"] == "FORM":
            texts = [{"questionId": item["form"]["questions"][0]["_id"], "value": "Well"}]
            (await own_log(client, block, item, answers=texts)).ok()
            path = f"/customer/wblocks/{block['_id']}/witems/{item['_id']}/media"
            await upload(
                client,
                path,
                "file",
                picture(100 + item["order"] + 20 * count),
                questionId=item["form"]["questions"][-1]["_id"],
            )
        elif item["type"] == "CIRCUIT":
            entry = item["circuitExercises"][count - 1]["exerciseId"]
            (await own_log(client, block, item, customerSets=[{"exerciseId": entry, "reps": 10, "round": 1}])).ok()
        elif item["type"] == "METRICS":
            values = [{"metricId": each["_id"], "value": 70.5} for each in item["metricsFields"]["metrics"]]
            (await own_log(client, block, item, values=values)).ok()
    (await coach.put(f"{path_of(block)}/log", {"sessionRpe": 7, "comment": "Ok"})).ok()


async def _figures(coach: CoachClient, client: CoachClient, ana: Json, number: int, own: Json, other: Json) -> None:
    """What is neither planned nor logged with a workout."""
    for each, value in ((own, 100 + number), (other, 120 - number)):
        (await coach.put(client_path(ana, "training-maxes", each["exercise"]["_id"]), {"value": value})).ok()
        best: Json = {"exerciseId": each["press"]["_id"], "type": "heaviest_load", "value": value, "date": MONDAY}
        (await coach.post(client_path(ana, "personal-records"), best)).ok(201)
    (await coach.post(client_path(ana, "metrics-sets"), {"metricsSetId": other["body"]["_id"]})).ok(201)
    for index, metric in enumerate(other["body"]["metrics"]):
        entry = {"metricId": metric["_id"], "date": TUESDAY, "value": 70 + index}
        (await coach.post(client_path(ana, "metrics-sets", other["body"]["_id"], "entries"), entry)).ok(201)
    for each, weekday in ((own, 7), (other, 6)):
        weekly: Json = {"formId": each["form"]["_id"], "weekday": weekday, "startDate": MONDAY}
        (await coach.post(client_path(ana, "check-ins"), weekly)).ok(201)
    inbox = (await coach.get("/coach/form-responses", customerId=ana["_id"])).ok()["docs"]
    (await coach.put(f"/coach/form-responses/{inbox[number]['_id']}/reviewed", {"reviewed": True})).ok()
    for content in ("Knee", "Back"):
        (await coach.post(client_path(ana, "notes"), {"content": content, "isHealth": True})).ok(201)
    for reason in ("health_note", "unread_message")[number:]:
        (await coach.put(f"/coach/attention/{ana['_id']}", {"reason": reason})).ok()
    for kind, first, last in (("ill", "2026-02-02", "2026-02-08"), ("limited", "2026-02-09", None)):
        period = {"kind": kind, "from": first, "until": last, "note": "Slowly"}
        (await coach.post(client_path(ana, "availability"), period)).ok(201)
    hidden = {"startDate": MONDAY, "endDate": (MONDAY, TUESDAY)[number], "isVisible": False}
    (await coach.put(client_path(ana, "visibility"), hidden)).ok()
