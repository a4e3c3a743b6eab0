"""A company with data for every page."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any

import aiohttp
from PIL import Image

from tests.core.test_uploads import picture
from tests.progress.test_message_attachments import MP4, upload
from tests.support.client import CoachClient
from tests.support.declared_world import World, make_world
from tests.support.figures import renew_figures
from tests.support.training import (
    block_with,
    circuit_of,
    exercise_of,
    form_of,
    metrics_of,
    own_log,
    reminder,
    task,
)

_EXERCISES = ("Bench press with a pause on the chest", "Seated row", "Front squat")
_LONG = "Keep the shoulders back and down. Lower the weight for three seconds, and stop before it hurts. " * 3
_LIFTS = (("Back squat", 80, 5), ("Bench press", 60, 6), ("Row", 50, 8))


async def populate(coach: CoachClient) -> World:
    """Create one of each resource, a few clients, and six weeks of training of one client, most of it completed."""
    world = await make_world(coach)
    for name, surname, group in (
        ("Björn", "Åkesson", "Strength"), ("Chidi", "Okafor", "Strength"), ("José", "García", "Evening")
    ):  # fmt: skip
        client = await coach.create_customer(name, surname=surname, groups=[group], assignedTo=str(coach.ctx.caller.id))
        await _follow_program(coach, world, client["_id"])
    changed = {"name": "Day two, added later", "day": 2}
    (await coach.post(f"/coach/programs/{world['programId']}/wblocks", changed)).ok(201)
    await _weeks(coach, world)
    await _photos(coach, world)
    await _measurements(coach, world)
    await _attention(coach, world)
    return world


async def populate_client(coach: CoachClient, world: World) -> World:
    """Give the client who trains a workout today with items of every type, and messages.

    Returns the identifiers in the paths of their own pages.
    """
    customer = {"_id": world["customerId"]}
    bench, row, squat = [await coach.create_exercise(name, defaultInstructions=_LONG) for name in _EXERCISES]
    planned = {"type": "reps_load", "minPlannedReps": 8, "maxPlannedReps": 10, "load": 60, "rest": 90, "rir": 2}
    warm_up = {"type": "reps_load", "minPlannedReps": 8, "load": 30, "isWarmup": True}
    block = await block_with(
        coach,
        customer,
        exercise_of(squat, warm_up, planned, planned, {"type": "time", "minPlannedSeconds": 40, "tempo": "3010"}),
        exercise_of(bench, planned, planned, planned, supersetId="A"),
        exercise_of(row, planned, planned, planned, supersetId="A"),
        circuit_of(squat, row, rounds=2),
        task("Walk for twenty minutes"),
        form_of(),
        metrics_of({"_id": world["metricsSetId"]}),
        reminder(),
        date=str(coach.ctx.caller.today()),
        name="Upper body and conditioning",
    )
    client = await coach.as_client(customer)
    sets = [{"index": index, "reps": 8, "load": 60 + 5 * index, "isCompleted": True} for index in (1, 2)]
    (await own_log(client, block, block["items"][0], isCompleted=False, customerSets=sets)).ok()
    run = {"name": "Run with friends", "date": str(coach.ctx.caller.today()), "items": [exercise_of(squat), task()]}
    own_workout = (await client.post("/customer/wblocks", run)).ok(201)
    later = str(coach.ctx.caller.today() + timedelta(days=10))
    away = {"kind": "away", "from": later, "until": later, "note": "At a conference"}
    period = (await client.post("/customer/availability", away)).ok(201)
    for text in ("How did the squats go?", _LONG):
        (await coach.post(f"/coach/customers/{world['customerId']}/messages", {"text": text})).ok(201)
    return {
        **world,
        "wblockId": block["_id"],
        "wblockId/witemId": block["items"][0]["_id"],
        "wblockId/formItemId": block["items"][5]["_id"],
        "availabilityId": period["_id"],
        "availabilityId/availabilityId": period["_id"],
        "ownWorkoutId": own_workout["_id"],
        "ownWorkoutId/witemId": own_workout["items"][0]["_id"],
        "exerciseId": block["items"][0]["exerciseId"],
    }


async def _follow_program(coach: CoachClient, world: World, customer_id: str) -> None:
    start = {"customerId": customer_id, "startDate": str(coach.ctx.caller.today())}
    (await coach.post(f"/coach/programs/{world['programId']}/assign", start)).ok(201)


async def _attention(coach: CoachClient, world: World) -> None:
    """A health note and a message of the client who trains, and the stored reasons of all clients."""
    path = f"/coach/customers/{world['customerId']}"
    (await coach.post(f"{path}/notes", {"content": "Knee pain when squatting", "isHealth": True})).ok(201)
    client = await coach.as_client({"_id": world["customerId"]})
    video = (await upload(client, "/customer/messages", MP4, "squat.mp4")).ok(201)
    photo = (await upload(client, "/customer/messages", picture(), "knee.png")).ok(201)
    message = {"text": "My knee still hurts", "attachments": [video["_id"], photo["_id"]]}
    (await client.post("/customer/messages", message)).ok(201)
    await renew_figures(coach.ctx)


async def _weeks(coach: CoachClient, world: World) -> None:
    client = f"/coach/customers/{world['customerId']}"
    muscle = (await coach.get("/muscle-groups")).ok()[:3]
    lifts = [
        (await coach.create_exercise(name, muscleGroups=[{"_id": each["_id"]}]), load, reps)
        for (name, load, reps), each in zip(_LIFTS, muscle, strict=True)
    ]
    today = coach.ctx.caller.today()
    monday = today - timedelta(days=today.weekday())
    planned = [
        exercise_of(
            lift, *[{"type": "reps_load", "minPlannedReps": reps, "maxPlannedReps": reps + 1, "load": load}] * 3
        )
        for lift, load, reps in lifts
    ]
    logs: list[dict[str, Any]] = []
    for week in range(-5, 1):
        for day in (0, 2, 4):
            date = monday + timedelta(days=7 * week + day)
            body = {"name": "Full body", "date": str(date), "items": planned}
            block = (await coach.post(f"{client}/wblocks", body)).ok(201)
            done = []
            for at, (item, (_, load, reps)) in enumerate(zip(block["items"], lifts, strict=True)):
                sets = [{"index": n, "reps": reps, "load": load + week, "isCompleted": True} for n in (1, 2, 3)]
                if (week + day + at) % 5:
                    done.append({"witemId": item["_id"], "isCompleted": True, "customerSets": sets})
            if date < today:
                logs.append({"wblockId": block["_id"], "items": done})
    assert (await coach.post(f"{client}/logs/upsert", {"logs": logs})).ok()["created"] == len(logs)


async def _photos(coach: CoachClient, world: World) -> None:
    path = f"/coach/customers/{world['customerId']}/progress-photos"
    for day, colour in (("2026-09-01", "teal"), ("2026-11-01", "olive")):
        for side in ("1", "3"):
            photo = io.BytesIO()
            Image.new("RGB", (300, 400), colour).save(photo, "JPEG")
            form = aiohttp.FormData({"createdAt": day, "imageSideIndex": side}, default_to_multipart=True)
            form.add_field("imageFile", photo.getvalue(), filename="photo.jpg")
            (await coach.send("POST", path, data=form)).ok(201)


async def _measurements(coach: CoachClient, world: World) -> None:
    path = f"/coach/customers/{world['customerId']}/metrics-sets/{world['metricsSetId']}/entries"
    for days in range(0, 60, 6):
        entry = {
            "metricId": world["metricId"],
            "date": str(coach.ctx.caller.today() - timedelta(days=days)),
            "value": 79 + days / 20 + days % 4 / 10,
        }
        (await coach.post(path, entry)).ok(201)
