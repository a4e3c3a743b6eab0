"""The content of the demo company, all invented, and what its clients have done so far, by character."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Literal, cast

from coaching_service.core.ids import ObjectId, stable_id
from coaching_service.core.text import normalize
from coaching_service.library.forms import Form
from coaching_service.training.workouts.blocks.models import BlockPlan, LoggedBlock
from coaching_service.training.workouts.items.models import ItemLog, WorkItem
from coaching_service.training.workouts.sets import CustomerSet

Character = Literal["diligent", "fading", "injured", "returning", "new", "irregular", "overreaching", "steady"]


@dataclass(frozen=True)
class Client:
    """A client of the demo company.

    `weeks` of training lie behind the client, on these `weekdays` (0: Monday), with the `sessions` in turn. `strength`
    is a factor of the loads of the sessions; `weight` the body weight in kg in the first week, and `weight_change` what
    it changes each week. `trainer` is `owner`, `colleague` or empty.
    """

    name: str
    surname: str
    character: Character
    weeks: int
    weekdays: tuple[int, ...]
    sessions: tuple[str, ...]
    groups: tuple[str, ...]
    trainer: str
    birthday: str
    phone: str
    strength: float
    weight: float
    weight_change: float
    notes: tuple[str, ...]
    timezone: str | None = None

    @property
    def email(self) -> str:
        """The client's e-mail address, at a domain that is reserved for examples."""
        return f"{normalize(self.name)}@example.com"


CLIENTS: tuple[Client, ...] = (
    Client(
        *("Amara", "Diallo", "diligent", 12, (0, 2, 4), ("Lower body", "Upper body", "Full body"), ("Strength",)),
        *("colleague", "1991-04-12", "+44 7700 900101", 0.9, 72.4, -0.25),
        (
            "<p>Wants a <b>100 kg squat</b> by summer. Left knee: warm up well before lunges.</p>",
            "<p>Sleeps better since she trains in the morning.</p>",
        ),
    ),
    Client(
        *("Ana", "Flores", "steady", 10, (0, 2, 4), ("Full body", "Conditioning"), ("Morning",)),
        *("owner", "1988-09-30", "+44 7700 900102", 0.6, 64.0, -0.1),
        ("<p>Started the program <i>First four weeks</i> again, with heavier loads.</p>",),
    ),
    Client(
        *("Björn", "Lund", "fading", 12, (1, 3, 5), ("Upper body", "Lower body"), ("Morning", "Strength")),
        *("owner", "1984-01-22", "+44 7700 900103", 1.1, 91.5, 0.2),
        ("<p>New job with long hours: offer two shorter sessions a week.</p>",),
    ),
    Client(
        *("Chidi", "Okafor", "injured", 11, (0, 2, 4), ("Lower body", "Upper body", "Full body"), ("Strength",)),
        *("colleague", "1995-06-03", "+44 7700 900104", 1.2, 84.0, 0.05),
        ("<p><b>Knee:</b> strained on the stairs. No squats or lunges until the physiotherapist agrees.</p>",),
    ),
    Client(
        *("José", "García", "returning", 12, (1, 4), ("Full body", "Conditioning"), ("Evening",)),
        *("owner", "1979-11-17", "+34 600 000 105", 0.8, 88.2, -0.15),
        ("<p>Back after five weeks abroad. Begin with two thirds of the loads.</p>",),
        "Europe/Madrid",
    ),
    Client(
        *("Mei", "Tanaka", "new", 6, (0, 3), ("Full body",), ()),
        *("", "2001-02-08", "+44 7700 900106", 0.45, 55.3, 0.1),
        ("<p>First time in a gym: film the first sets and send feedback.</p>",),
    ),
    Client(
        *("Liam", "Byrne", "irregular", 9, (1, 3, 5), ("Upper body", "Conditioning"), ("Evening", "Strength")),
        *("owner", "1990-07-25", "+44 7700 900107", 0.95, 79.9, 0.0),
        ("<p>Works shifts: prefers to choose the days himself.</p>",),
    ),
    Client(
        *("Sofía", "Núñez", "diligent", 8, (1, 3, 6), ("Easy run", "Conditioning", "Long run"), ("Runners",)),
        *("colleague", "1993-03-19", "+44 7700 900108", 0.6, 60.2, -0.1),
        ("<p>Half marathon in autumn; runs the long runs by heart rate.</p>",),
    ),
    Client(
        *("Yusuf", "Demir", "steady", 8, (0, 2, 4), ("Conditioning", "Full body"), ("Online",)),
        *("owner", "1986-12-05", "+44 7700 900109", 0.7, 76.5, -0.2),
        ("<p>Trains at home with dumbbells and a bar.</p>",),
        "Europe/Istanbul",
    ),
    Client(
        *("Ingrid", "Haugen", "overreaching", 10, (0, 1, 3, 5), ("Lower body", "Upper body"), ("Runners", "Online")),
        *("owner", "1997-08-14", "+44 7700 900110", 0.85, 67.0, -0.3),
        ("<p>Adds sets on her own. Watch the workload and the resting heart rate.</p>",),
    ),
)

ARCHIVED_CLIENTS = (("Marta", "Jansen", ("Morning",)), ("Paul", "Schneider", ("Evening",)))
COLLEAGUE = ("Eli Coach", "eli.coach@example.com")


# Messages in the conversation of a client: how many hours ago, by whom (`coach`: the owner), text, whether it is read.
MESSAGES: dict[str, tuple[tuple[int, Literal["client", "coach"], str, bool], ...]] = {
    "Ana": (
        (50, "client", "Can I swap Friday for Saturday this week?", True),
        (48, "coach", "Of course. Keep a day of rest before Monday.", True),
        (20, "client", "Thank you!", True),
    ),
    "Björn": ((72, "coach", "How is the new job? Two short sessions a week are fine.", False),),
    "Chidi": (
        (30, "coach", "How was the appointment with the physiotherapist?", True),
        (26, "client", "Cycling is allowed, squats are not.", False),
        (25, "client", "Should I keep the upper body sessions as they are?", False),
    ),
    "Ingrid": ((6, "client", "My legs feel heavy today. Easy run or rest?", False),),
}
# Responses to check-ins that are older than so many days have been reviewed.
REVIEWED_AFTER_DAYS = 8

WITH_PHOTOS, WITH_PLAN, WITH_PROGRAM = ("Amara", "Ana", "Mei"), ("Amara", "José"), "Ana"
# Who is ill since yesterday, and for how many days from today.
ILL, ILL_DAYS = "Yusuf", 3
# Who has sent a video of a set, of this exercise, which no coach has looked at.
WITH_FORM_CHECK, FORM_CHECK_OF = "Mei", "Goblet Squat"


# --- Own exercises ---------------------------------------------------------------------------------------------------

# Name, type, equipment, instructions, and the pose of the drawing (see drawings.draw_exercise).
EXERCISES: tuple[tuple[str, str, str, str, str], ...] = (
    ("Towel Row", "strength", "Towel", "Put a towel round a post, lean back and pull your chest to it.", "row"),
    ("Wall Drill", "plyometrics", "Body weight", "Lean against the wall and drive one knee up at a time.", "run"),
    ("Step-Down", "strength", "Box", "Lower one heel slowly from the box until it touches the floor.", "squat"),
    ("Park Bench Push-Up", "strength", "Bench", "Hands on the bench, body straight, chest to the edge.", "push"),
)


# --- Sessions --------------------------------------------------------------------------------------------------------


def exercise_id(name: str) -> ObjectId:
    """Return the identifier of a shared exercise."""
    return stable_id("exercise", name)


@dataclass(frozen=True)
class Lift:
    """An exercise of a session: sets of repetitions from and to, with a load in kg, 0 for body weight."""

    exercise: str
    sets: int
    min_reps: int
    max_reps: int
    load: float


LEG_EXERCISES = {
    *map(exercise_id, ("Barbell Back Squat", "Romanian Deadlift", "Dumbbell Walking Lunge", "Goblet Squat")),
    exercise_id("Barbell Deadlift"),
}

LIFTS: dict[str, tuple[Lift, ...]] = {
    "Lower body": (
        Lift("Barbell Back Squat", 4, 5, 6, 80),
        Lift("Romanian Deadlift", 3, 8, 10, 60),
        Lift("Dumbbell Walking Lunge", 3, 10, 12, 14),
    ),
    "Upper body": (
        Lift("Barbell Bench Press", 4, 5, 6, 60),
        Lift("Barbell Row", 4, 8, 8, 50),
        Lift("Seated Dumbbell Shoulder Press", 3, 8, 10, 16),
        Lift("Pull-Up", 3, 5, 8, 0),
    ),
    "Full body": (
        Lift("Barbell Deadlift", 3, 3, 5, 100),
        Lift("Goblet Squat", 3, 10, 12, 20),
        Lift("Push-Up", 3, 10, 15, 0),
    ),
    "Conditioning": (Lift("Goblet Squat", 3, 12, 15, 16),),
    "Easy run": (),
    "Long run": (),
}
# Distances in meters of the sessions of runners.
DISTANCES = {"Easy run": 5_000, "Long run": 10_000}
RUN, PLANK = "Treadmill Run", "Plank"
CIRCUIT = ("Push-Up", "Kettlebell Swing")


def plan_items(session: str, load_factor: float = 1.0) -> list[dict[str, Any]]:
    """Return the planned items of a session; loads are multiplied by `load_factor` and rounded to 2.5 kg."""
    items: list[dict[str, Any]] = []
    for lift in LIFTS[session]:
        sets = [_reps_set(index, lift.min_reps, lift.max_reps) for index in range(1, lift.sets + 1)]
        if lift.load:
            load = max(2.5, round(lift.load * load_factor / 2.5) * 2.5)
            sets = [{**planned, "type": "reps_load", "load": load} for planned in sets]
        items.append(_exercise(lift.exercise, sets))
    if session in DISTANCES:
        items.append(_exercise(RUN, [{"type": "distance", "index": 1, "plannedMeters": DISTANCES[session]}]))
        items.append(
            {"type": "TASK", "taskFields": {"title": "Stretch", "description": "Ten minutes, calves and hips."}}
        )
    if session == "Conditioning":
        entries = [
            {"exerciseId": exercise_id(name), "instructions": None, "sets": [_reps_set(1, 10, 12)]} for name in CIRCUIT
        ]
        items.append({"type": "CIRCUIT", "circuitName": "Finisher", "rounds": 3, "circuitExercises": entries})
    if session in ("Full body", "Conditioning"):
        times = {"type": "time", "minPlannedSeconds": 30, "maxPlannedSeconds": 45}
        items.append(_exercise(PLANK, [{**_EFFORT, **times, "index": index} for index in (1, 2)]))
    return items


_EFFORT = {"rest": 90, "rpe": None, "rir": None, "tempo": None, "isWarmup": False}


def _exercise(name: str, sets: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "type": "EXERCISE",
        "exerciseId": exercise_id(name),
        "exerciseInstructions": None,
        "supersetId": None,
        "exerciseSets": [{**_EFFORT, **planned} for planned in sets],
    }


def _reps_set(index: int, min_reps: int, max_reps: int) -> dict[str, Any]:
    return {**_EFFORT, "type": "reps", "index": index, "minPlannedReps": min_reps, "maxPlannedReps": max_reps}


# --- Libraries -------------------------------------------------------------------------------------------------------

# Name, description, tags, weeks, and the days of the week with a session.
PROGRAMS: tuple[tuple[str, str, tuple[str, ...], int, tuple[int, ...]], ...] = (
    ("First four weeks", "Three sessions a week to learn the lifts.", ("beginner", "gym"), 4, (1, 3, 5)),
    ("Strength block", "Eight weeks, four sessions a week.", ("strength",), 8, (1, 2, 4, 6)),
    ("Two days a week", "For clients with little time.", ("beginner", "online"), 6, (2, 5)),
)
PROGRAM_SESSIONS = ("Lower body", "Upper body", "Full body")

# Name, type and tags of workout templates, each with the items of the session of that name.
TEMPLATES: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("Hotel gym", "strength", ("travel", "30 minutes"), "Full body"),
    ("Test day", "strength", ("test",), "Lower body"),
    ("Rainy day", "conditioning", ("home",), "Conditioning"),
)


def _question(label: str, kind: str, *options: str, required: bool = True) -> dict[str, Any]:
    return {"label": label, "type": kind, "options": list(options), "required": required}


CHECK_IN = "Weekly check-in"
FORMS: tuple[dict[str, Any], ...] = (
    {
        "name": CHECK_IN,
        "questions": [
            _question("How did you sleep?", "rating"),
            _question("What went well?", "text", required=False),
            _question("Where does it hurt?", "multi", "Nowhere", "Knee", "Back", required=False),
        ],
    },
    {
        "name": "Welcome",
        "questions": [_question("What is your goal?", "text"), _question("Days a week you can train", "number")],
    },
)

BODY = "Body"
METRIC_SETS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (BODY, (("Body weight", "kg"), ("Waist", "cm"))),
    ("Recovery", (("Resting heart rate", "bpm"), ("Sleep", "h"))),
)

# What clients write in their weekly check-in and about a session, by character.
ANSWERS: dict[Character, tuple[str, ...]] = {
    "diligent": ("Every session done, and the squat felt light.", "New best on the bench!", "Slept well all week."),
    "fading": ("First weeks are going well.", "Busy at work, missed one.", "Hard to find time at the moment."),
    "injured": ("Strong week.", "Knee hurts on the stairs.", "Physiotherapy helps, upper body is fine."),
    "returning": ("Good start.", "Away from home.", "Glad to be back, everything is sore."),
    "new": ("I understand the hinge now.", "Less afraid of the bar.", "Third week without missing one."),
    "irregular": ("Two out of three.", "Night shifts.", "Caught up on Saturday."),
    "overreaching": ("Added two sets everywhere.", "Tired but motivated.", "Heavy legs, short nights."),
    "steady": ("As planned.", "Good pace.", "Nothing to report."),
}


# --- What the clients have done; the same for every seeding on the same day -------------------------------------------


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
                factor = client.strength * (1 + 0.02 * min(week, client.weeks))
                items = cast("list[WorkItem]", plan_items(session, factor))
                plan: BlockPlan = {"name": session, "date": str(day), "isRest": False, "items": items}
                yield _session(client, plan, week, today, randomizer)
    for plan in program:
        week = (date.fromisoformat(str(plan["date"])) - monday).days // 7
        yield _session(client, plan, week, today, randomizer)


# --- Sessions --------------------------------------------------------------------------------------------------------


def _session(client: Client, plan: BlockPlan, week: int, today: date, randomizer: random.Random) -> LoggedBlock:
    day = date.fromisoformat(str(plan["date"]))
    done = _share_done(client, week, randomizer) if day < today else 0.0
    logs = [_log_item(client, cast("Any", item), week, done, randomizer) for item in plan["items"]]
    logged = any(logs)
    usual = {"overreaching": 7.5 + 0.2 * week, "returning": 7.0, "new": 5.0, "injured": 6.0}
    effort = usual.get(client.character, 6.5)
    return {
        "plan": plan,
        "logs": logs,
        "loggedAt": datetime.combine(day, _SESSION_TIME, UTC).replace(tzinfo=None),
        "durationMinutes": randomizer.randrange(40, 75, 5) if logged else None,
        "sessionRpe": min(10.0, round(effort + randomizer.choice((-0.5, 0, 0, 0.5)), 1)) if logged else None,
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


def _comment(client: Client, week: int) -> str:
    comments = ANSWERS[client.character]
    return comments[min(len(comments) - 1, len(comments) * week // client.weeks)]


def _log_item(
    client: Client, item: dict[str, Any], week: int, done: float, randomizer: random.Random
) -> ItemLog | None:
    if done == 0 or randomizer.random() > max(done, 0.55):
        return None
    if item["type"] == "TASK":
        return {"isCompleted": True, "comment": None}
    if client.character == "injured" and week >= _INJURED_SINCE and item.get("exerciseId") in LEG_EXERCISES:
        if week < _EASING_SINCE:
            return None
        return {"isCompleted": True, "comment": "Light, no pain", "customerSets": _sets(client, item, 0.5, randomizer)}
    # The load that the client uses, as a factor of the planned one.
    factor = {"overreaching": 1.06, "fading": 1 - 0.01 * week, "new": 0.95}.get(client.character, 1.0)
    if client.character == "returning" and week >= _GAP_OF_RETURNING.stop:
        factor = 0.7 + 0.08 * (week - _GAP_OF_RETURNING.stop)
    sets = _sets(client, item, factor, randomizer)
    return {"isCompleted": all(entry["isCompleted"] for entry in sets), "comment": None, "customerSets": sets}


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
    form = {"formId": check_in["_id"], "name": check_in["name"], "questions": check_in["questions"]}
    item = cast("WorkItem", {"type": "FORM", "form": form})
    for week in range(client.weeks + 1):
        day = monday + timedelta(weeks=week, days=CHECK_IN_WEEKDAY - 1)
        if day >= today:
            continue
        log: ItemLog | None = None
        if _share_done(client, week, randomizer) > 0:  # answered as reliably as the client trains
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
        empty = {"durationMinutes": None, "sessionRpe": None, "comment": None}
        yield cast("LoggedBlock", {"plan": plan, "logs": [log], "loggedAt": at, **empty})


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
