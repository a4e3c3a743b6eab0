"""What the clients of the demo company have done so far, by character; the same for every seeding on the same day."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, cast

from coaching_service.core.ids import ObjectId
from coaching_service.demo import samples
from coaching_service.demo.samples import Character, Client
from coaching_service.library.forms import Form
from coaching_service.training.workouts.blocks.models import BlockPlan, LoggedBlock
from coaching_service.training.workouts.items.models import ItemLog, WorkItem
from coaching_service.training.workouts.sets import CustomerSet

WEEKS_AHEAD = 2
CHECK_IN_WEEKDAY = 7
_SESSION_TIME = time(17, 30)
_GAP_OF_RETURNING = range(3, 8)
_INJURED_SINCE, _EASING_SINCE = 5, 9


def schedule(client: Client, today: date, program: Sequence[BlockPlan] = ()) -> Iterator[LoggedBlock]:
    """Yield the workouts of a client from the first week to two weeks ahead, those before `today` with their logs.

    From the first date of the `program` on, those of the program instead.
    """
    randomizer = random.Random(client.name)  # noqa: S311 - sample data, not a secret
    monday = today - timedelta(days=today.weekday() + 7 * client.weeks)
    number = 0
    for week in range(client.weeks + WEEKS_AHEAD + 1):
        for weekday in client.weekdays:
            day = monday + timedelta(weeks=week, days=weekday)
            session = client.sessions[number % len(client.sessions)]
            number += 1
            if not program or str(day) < str(program[0]["date"]):
                yield _session(client, _plan(client, session, week, day), week, today, randomizer)
    for plan in program:
        week = (date.fromisoformat(str(plan["date"])) - monday).days // 7
        yield _session(client, plan, week, today, randomizer)


# --- Sessions --------------------------------------------------------------------------------------------------------


def _plan(client: Client, session: str, week: int, day: date) -> BlockPlan:
    factor = client.strength * (1 + 0.02 * min(week, client.weeks))
    items = cast("list[WorkItem]", samples.plan_items(session, factor))
    return {"name": session, "date": str(day), "isRest": False, "items": items}


def _session(client: Client, plan: BlockPlan, week: int, today: date, randomizer: random.Random) -> LoggedBlock:
    day = date.fromisoformat(str(plan["date"]))
    done = _share_done(client, week, randomizer) if day < today else 0.0
    logs = [_log_item(client, cast("Any", item), week, done, randomizer) for item in plan["items"]]
    logged = any(logs)
    return {
        "plan": plan,
        "logs": logs,
        "loggedAt": datetime.combine(day, _SESSION_TIME, UTC).replace(tzinfo=None),
        "durationMinutes": randomizer.randrange(40, 75, 5) if logged else None,
        "sessionRpe": _effort(client.character, week, randomizer) if logged else None,
        "comment": _comment(client, week) if logged and randomizer.random() < 0.3 else None,
    }


def _share_done(client: Client, week: int, randomizer: random.Random) -> float:
    """Return how much of a session is done: 1 all of it, 0 nothing."""
    progress = week / client.weeks
    chance = {
        "diligent": 0.98,
        "steady": 0.88,
        "fading": 0.98 - 0.9 * progress,
        "injured": 0.9,
        "returning": 0.0 if week in _GAP_OF_RETURNING else 0.92,
        "new": 0.7 + 0.3 * progress,
        "irregular": 0.6,
        "overreaching": 1.0,
    }[client.character]
    if randomizer.random() >= chance:
        return 0.0
    return 0.5 if randomizer.random() < 0.08 else 1.0


def _effort(character: Character, week: int, randomizer: random.Random) -> float:
    usual = {"overreaching": 7.5 + 0.2 * week, "returning": 7.0, "new": 5.0, "injured": 6.0}.get(character, 6.5)
    return min(10.0, round(usual + randomizer.choice((-0.5, 0, 0, 0.5)), 1))


def _comment(client: Client, week: int) -> str:
    comments = samples.ANSWERS[client.character]
    return comments[min(len(comments) - 1, len(comments) * week // client.weeks)]


def _log_item(
    client: Client, item: dict[str, Any], week: int, done: float, randomizer: random.Random
) -> ItemLog | None:
    if done == 0 or randomizer.random() > max(done, 0.55):
        return None
    if item["type"] == "TASK":
        return {"isCompleted": True, "comment": None}
    if client.character == "injured" and week >= _INJURED_SINCE and item.get("exerciseId") in samples.LEG_EXERCISES:
        if week < _EASING_SINCE:
            return None
        return {"isCompleted": True, "comment": "Light, no pain", "customerSets": _sets(client, item, 0.5, randomizer)}
    sets = _sets(client, item, _load_factor(client, week), randomizer)
    return {"isCompleted": all(entry["isCompleted"] for entry in sets), "comment": None, "customerSets": sets}


def _load_factor(client: Client, week: int) -> float:
    """Return the load that a client uses, as a factor of the planned one."""
    if client.character == "returning" and week >= _GAP_OF_RETURNING.stop:
        return 0.7 + 0.08 * (week - _GAP_OF_RETURNING.stop)
    return {"overreaching": 1.06, "fading": 1 - 0.01 * week, "new": 0.95}.get(client.character, 1.0)


def _sets(client: Client, item: dict[str, Any], load_factor: float, randomizer: random.Random) -> list[CustomerSet]:
    if item["type"] == "CIRCUIT":
        return [
            _set(planned, 1.0, randomizer, exercise_id=entry["exerciseId"], lap=lap)
            for lap in range(1, item["rounds"] + 1)
            for entry in item["circuitExercises"]
            for planned in entry["sets"]
        ]
    sets = [_set(planned, load_factor, randomizer) for planned in item["exerciseSets"]]
    if randomizer.random() < {"fading": 0.02, "new": 0.25}.get(client.character, 0):
        reps = sets[-1]["reps"]
        sets[-1] = {**sets[-1], "isCompleted": False, "reps": max(1, reps - 3) if reps else reps}
    return sets


def _set(
    planned: dict[str, Any],
    load_factor: float,
    randomizer: random.Random,
    *,
    exercise_id: ObjectId | None = None,
    lap: int | None = None,
) -> CustomerSet:
    load, most = planned.get("load"), planned.get("maxPlannedReps")
    seconds, meters = planned.get("maxPlannedSeconds"), planned.get("plannedMeters")
    pace = randomizer.uniform(5.4, 6.2) * 60 / 1_000
    return {
        "index": planned["index"],
        "exerciseId": exercise_id,
        "round": lap,
        "reps": randomizer.randint(planned["minPlannedReps"], most) if most else None,
        "load": max(2.5, round(load * load_factor / 2.5) * 2.5) if load else None,
        "seconds": round(meters * pace) if meters else seconds and seconds - randomizer.choice((0, 0, 5)),
        "meters": meters,
        "rpe": randomizer.choice((7, 7.5, 8, 8.5)) if load else None,
        "rir": None,
        "isCompleted": True,
    }


# --- Check-ins and measurements --------------------------------------------------------------------------------------


def past_check_ins(client: Client, check_in_id: ObjectId, check_in: Form, today: date) -> Iterator[LoggedBlock]:
    """Yield the blocks of the weekly check-in before `today`, which is the client's, with their answers."""
    randomizer = random.Random(f"{client.name} check-ins")  # noqa: S311 - sample data, not a secret
    monday = today - timedelta(days=today.weekday() + 7 * client.weeks)
    for week in range(client.weeks + 1):
        day = monday + timedelta(weeks=week, days=CHECK_IN_WEEKDAY - 1)
        if day < today:
            yield _check_in(client, check_in_id, check_in, week, day, randomizer)


def _check_in(
    client: Client, check_in_id: ObjectId, check_in: Form, week: int, day: date, randomizer: random.Random
) -> LoggedBlock:
    """Return a block with the weekly form, answered as reliably as the client trains."""
    form = {"formId": check_in["_id"], "name": check_in["name"], "questions": check_in["questions"]}
    item = cast("WorkItem", {"type": "FORM", "form": form})
    answered = _share_done(client, week, randomizer) > 0
    log: ItemLog | None = None
    if answered:
        sleep, text, pain = (question["_id"] for question in check_in["questions"])
        hurts = client.character == "injured" and week >= _INJURED_SINCE - 1
        tired = client.character == "overreaching"
        answers = [
            {"questionId": sleep, "value": max(2, 8 - week // 3) if tired else randomizer.randint(6, 9)},
            {"questionId": text, "value": _comment(client, week)},
            {"questionId": pain, "value": ["Knee"] if hurts else ["Nowhere"]},
        ]
        log = cast("ItemLog", {"isCompleted": True, "comment": None, "answers": answers})
    plan: BlockPlan = {
        "name": check_in["name"],
        "date": str(day),
        "isRest": False,
        "items": [item],
        "checkInId": check_in_id,
    }
    at = datetime.combine(day, time(19), UTC).replace(tzinfo=None)
    return {
        "plan": plan,
        "logs": [log],
        "loggedAt": at,
        "durationMinutes": None,
        "sessionRpe": None,
        "comment": None,
    }


def measurements(client: Client, today: date) -> Sequence[tuple[date, dict[str, float]]]:
    """Return the values of a client by the name of the metric: once a week from the first week to today."""
    randomizer = random.Random(f"{client.name} measurements")  # noqa: S311 - sample data, not a secret
    tired = client.character == "overreaching"
    values = []
    for week in range(0, client.weeks + 1, 2):
        if client.character == "returning" and week in _GAP_OF_RETURNING:
            continue
        noise = randomizer.uniform(-0.3, 0.3)
        weight = client.weight + client.weight_change * week + noise
        values.append(
            (
                today - timedelta(weeks=client.weeks - week),
                {
                    "Body weight": round(weight, 1),
                    "Waist": round(weight * 0.55 + 42 + noise, 1),
                    "Resting heart rate": round(62 + (week if tired else -week / 3) + noise * 4),
                    "Sleep": round((7.6 - 0.15 * week if tired else 7.2) + noise, 1),
                },
            )
        )
    return values
