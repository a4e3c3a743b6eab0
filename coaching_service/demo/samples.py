"""The content of the demo company: sessions, programs, forms, metrics, exercises and clients, all invented."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from coaching_service.core.ids import ObjectId, stable_id
from coaching_service.core.text import normalize

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


@dataclass(frozen=True)
class SampleMessage:
    """A message in the conversation of a client, a number of hours ago; `coach` is the owner."""

    hours_ago: int
    author: Literal["client", "coach"]
    text: str
    is_read: bool = True


MESSAGES: dict[str, tuple[SampleMessage, ...]] = {
    "Ana": (
        SampleMessage(50, "client", "Can I swap Friday for Saturday this week?"),
        SampleMessage(48, "coach", "Of course. Keep a day of rest before Monday."),
        SampleMessage(20, "client", "Thank you!"),
    ),
    "Björn": (SampleMessage(72, "coach", "How is the new job? Two short sessions a week are fine.", is_read=False),),
    "Chidi": (
        SampleMessage(30, "coach", "How was the appointment with the physiotherapist?"),
        SampleMessage(26, "client", "Cycling is allowed, squats are not.", is_read=False),
        SampleMessage(25, "client", "Should I keep the upper body sessions as they are?", is_read=False),
    ),
    "Ingrid": (SampleMessage(6, "client", "My legs feel heavy today. Easy run or rest?", is_read=False),),
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
    items = [_exercise(lift.exercise, _lift_sets(lift, load_factor)) for lift in LIFTS[session]]
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


def _lift_sets(lift: Lift, load_factor: float) -> list[dict[str, Any]]:
    sets = [_reps_set(index, lift.min_reps, lift.max_reps) for index in range(1, lift.sets + 1)]
    if lift.load:
        load = max(2.5, round(lift.load * load_factor / 2.5) * 2.5)
        sets = [{**planned, "type": "reps_load", "load": load} for planned in sets]
    return sets


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
