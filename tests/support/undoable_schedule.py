"""Random operations on calendars and programs that can be undone."""

from __future__ import annotations

import random
from typing import Any

from coaching_service.core.ids import ObjectId
from tests.support.client import Reply
from tests.support.training import Json, client_path
from tests.support.undoable import DATES, WEEK, Company, operation


def _path(block: Json) -> str:
    owner = f"customers/{block['customerId']}" if block["customerId"] else f"programs/{block['programId']}"
    return f"/coach/{owner}/wblocks/{block['_id']}"


def _day(block: Json, chance: random.Random) -> Json:
    return {"date": chance.choice(DATES)} if block["customerId"] else {"day": chance.randint(1, 5)}


async def _block_and_item(company: Company, chance: random.Random, **where: Any) -> tuple[Json, Json] | None:
    block = await company.pick(chance, "workoutBlocks", **{"items.0": {"$exists": True}, **where})
    return (block, chance.choice(block["items"])) if block else None


@operation
async def create_block(company: Company, chance: random.Random) -> Reply | None:
    client = await company.pick(chance, "customers")
    block = await company.new_block(chance)
    if chance.random() < 0.5:
        return await company.coach.post(client_path(client, "wblocks"), block)
    blocks = [block, await company.new_block(chance)]
    return await company.coach.post(client_path(client, "wblocks/batch"), {"blocks": blocks})


@operation
async def change_block(company: Company, chance: random.Random) -> Reply | None:
    if not (block := await company.pick(chance, "workoutBlocks")):
        return None
    changes = [_day(block, chance), {"name": "Renamed"}, {"isRest": chance.random() < 0.5}]
    return await company.coach.patch(_path(block), chance.choice(changes))


@operation
async def delete_block(company: Company, chance: random.Random) -> Reply | None:
    block = await company.pick(chance, "workoutBlocks")
    return await company.coach.delete(_path(block)) if block else None


@operation
async def copy_block(company: Company, chance: random.Random) -> Reply | None:
    block = await company.pick(chance, "workoutBlocks")
    return await company.coach.post(f"{_path(block)}/copy", _day(block, chance)) if block else None


@operation
async def shift(company: Company, chance: random.Random) -> Reply | None:
    client = await company.pick(chance, "customers")
    body = {"from": chance.choice(DATES), "days": chance.choice([-1, 1, 7])}
    return await company.coach.post(client_path(client, "wblocks/shift"), body)


@operation
async def change_schedule(company: Company, chance: random.Random) -> Reply | None:
    client = await company.pick(chance, "customers")
    squat, press = await company.pick(chance, "exercises"), await company.pick(chance, "exercises")
    on_conflict = chance.choice(["add", "skip", "replace"])
    progression = {"load": {"add": 5}, "reps": {"add": 1}}
    action, body = chance.choice(
        [
            ("copy", {**WEEK, "targetDate": "2026-03-09", "onConflict": on_conflict, "progression": progression}),
            ("copy", {**WEEK, "targetDate": "2026-03-04", "onConflict": on_conflict, "repeat": 2}),
            ("adjust", {**WEEK, "progression": progression}),
            ("replace-exercise", {**WEEK, "exerciseId": squat["_id"], "withExerciseId": press["_id"]}),
            ("clear", WEEK),
        ]
    )
    return await company.coach.post(client_path(client, "schedule", action), body)


@operation
async def add_item(company: Company, chance: random.Random) -> Reply | None:
    block = await company.pick(chance, "workoutBlocks")
    return await company.coach.post(f"{_path(block)}/witems", await company.new_item(chance)) if block else None


@operation
async def change_item(company: Company, chance: random.Random) -> Reply | None:
    if not (picked := await _block_and_item(company, chance)):
        return None
    block, item = picked
    changes: dict[str, Json] = {
        "EXERCISE": {"exerciseSets": [{"type": "reps_load", "minPlannedReps": 3, "load": 100}], "note": "Slowly"},
        "CIRCUIT": {"rounds": 4},
        "TASK": {"taskFields": {"title": "Run"}},
        "REMINDER": {"reminderFields": {"scheduledTime": "09:00", "message": "Sleep"}},
    }
    return await company.coach.patch(f"{_path(block)}/witems/{item['_id']}", changes.get(item["type"], {}))


@operation
async def delete_item(company: Company, chance: random.Random) -> Reply | None:
    if not (picked := await _block_and_item(company, chance)):
        return None
    return await company.coach.delete(f"{_path(picked[0])}/witems/{picked[1]['_id']}")


@operation
async def move_item(company: Company, chance: random.Random) -> Reply | None:
    client = await company.pick(chance, "customers")
    blocks = {"customerId": ObjectId(client["_id"])}
    picked = await _block_and_item(company, chance, **blocks)
    target = await company.pick(chance, "workoutBlocks", **blocks)
    if not picked:
        return None
    body = {
        "source": {"wblockId": picked[0]["_id"], "witemId": picked[1]["_id"]},
        "target": {"wblockId": target["_id"], "index": chance.randint(0, 2)},
    }
    return await company.coach.put(client_path(client, "witems/move"), body)


@operation
async def log_item(company: Company, chance: random.Random) -> Reply | None:
    if not (picked := await _block_and_item(company, chance, customerId={"$ne": None})):
        return None
    block, item = picked
    done: Json = {"isCompleted": chance.random() < 0.7}
    comment = {"comment": chance.choice([None, "Hard"])}
    if item["type"] in ("EXERCISE", "CIRCUIT"):
        exercises = [item] if item["type"] == "EXERCISE" else item["circuitExercises"]
        done |= comment | {
            "customerSets": [
                {
                    "exerciseId": each["exerciseId"],
                    "round": 1,
                    "reps": chance.randint(1, 8),
                    "load": chance.randint(1, 9) * 20,
                }
                if item["type"] == "CIRCUIT"
                else {"reps": chance.randint(1, 8), "load": chance.randint(1, 9) * 20}
                for each in exercises
            ]
        }
    elif item["type"] == "METRICS":
        set_id = ObjectId(item["metricsFields"]["metricsSetId"])
        metrics = (await company.pick(chance, "metricSets", _id=set_id))["metrics"]
        done["values"] = [
            {"metricId": each["_id"], "value": chance.randint(50, 90)} for each in metrics[: chance.randint(0, 2)]
        ]
    elif item["type"] == "FORM":
        questions = item["form"]["questions"]
        done["answers"] = [{"questionId": questions[0]["_id"], "value": "Well"}][: chance.randint(0, 1)]
    return await company.coach.put(f"{_path(block)}/witems/{item['_id']}/log", done)


@operation
async def log_block(company: Company, chance: random.Random) -> Reply | None:
    if not (block := await company.pick(chance, "workoutBlocks", customerId={"$ne": None})):
        return None
    body = {"durationMinutes": chance.choice([None, 45]), "sessionRpe": chance.choice([None, 7]), "comment": "Good"}
    return await company.coach.put(f"{_path(block)}/log", body)


@operation
async def set_visibility(company: Company, chance: random.Random) -> Reply | None:
    client = await company.pick(chance, "customers")
    first, last = sorted([chance.choice(DATES), chance.choice(DATES)])
    body = {"startDate": first, "endDate": last, "isVisible": chance.random() < 0.3}
    return await company.coach.put(client_path(client, "visibility"), body)


@operation
async def change_program(company: Company, chance: random.Random) -> Reply | None:
    program = await company.pick(chance, "programs")
    client = await company.pick(chance, "customers")
    from_calendar = {**WEEK, "customerId": client["_id"], "name": "From a calendar"}
    if program is None or chance.random() < 0.1:
        return await company.coach.post("/coach/programs/from-calendar", from_calendar)
    path = f"/coach/programs/{program['_id']}"
    block = {"name": "Push", "day": chance.randint(1, 3), "items": [await company.new_item(chance)]}
    days = {"startDay": 1, "endDay": 2, "targetDay": chance.choice([2, 4]), "onConflict": "replace"}
    assignment = {"customerId": client["_id"], "startDate": chance.choice(DATES), "onConflict": "replace"}
    action = chance.choice(["create", "change", "archive", "delete", "block", "block", "copy", "assign", "assign"])
    if action == "create":
        return await company.coach.post("/coach/programs", {"name": "Second"})
    if action == "change":
        return await company.coach.patch(path, {"name": chance.choice(["Base", "Top"]), "tags": ["new"]})
    if action == "archive":
        return await company.coach.put(f"{path}/{chance.choice(['archive', 'unarchive'])}")
    if action == "delete":
        return await company.coach.delete(path)
    if action == "block":
        return await company.coach.post(f"{path}/wblocks", block)
    if action == "copy":
        return await company.coach.post(f"{path}/copy-days", days)
    return await company.coach.post(f"{path}/assign", assignment)


@operation
async def end_program(company: Company, chance: random.Random) -> Reply | None:
    if not (assignment := await company.pick(chance, "programAssignments")):
        return None
    path = f"/coach/customers/{assignment['customerId']}/programs/{assignment['_id']}/end"
    return await company.coach.post(path, {"removeUpcoming": chance.random() < 0.7})


@operation
async def change_template(company: Company, chance: random.Random) -> Reply | None:
    template = await company.pick(chance, "workoutTemplates")
    items = [await company.new_item(chance) for _ in range(2)]
    if template is None:
        return await company.coach.post("/coach/workout-templates", {"name": "Short", "items": items})
    path = f"/coach/workout-templates/{template['_id']}"
    action = chance.choice(["change", "delete", "apply"])
    if action == "change":
        return await company.coach.patch(path, {"name": "Shorter", "tags": ["home"], "items": items})
    if action == "delete":
        return await company.coach.delete(path)
    client = await company.pick(chance, "customers")
    return await company.coach.post(f"{path}/apply", {"customerId": client["_id"], "date": chance.choice(DATES)})


@operation
async def set_training_max(company: Company, chance: random.Random) -> Reply | None:
    client, exercise = await company.pick(chance, "customers"), await company.pick(chance, "exercises")
    body = {"value": chance.choice([None, 100, 140])}
    return await company.coach.put(client_path(client, "training-maxes", exercise["_id"]), body)
