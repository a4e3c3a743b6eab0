"""What the demo company holds: clients, sessions, programs, forms and metrics, all made up."""

from __future__ import annotations

from typing import Any

from coaching_service.core.ids import ObjectId, stable_id
from coaching_service.library.forms.models import FormInput

# Name, surname, groups, trainer (owner, colleague or nobody), archived.
CLIENTS: tuple[tuple[str, str, tuple[str, ...], str, bool], ...] = (
    ("Ana", "Flores", ("Morning",), "owner", False),
    ("Björn", "Åkesson", ("Morning", "Strength"), "owner", False),
    ("Chidi", "Okafor", ("Strength",), "colleague", False),
    ("José", "García", ("Evening",), "owner", False),
    ("Mei", "Tanaka", (), "nobody", False),
    ("Amara", "Diallo", ("Runners",), "colleague", False),
    ("Liam", "O'Connor", ("Evening", "Strength"), "owner", False),
    ("Sofía", "Núñez", ("Morning",), "colleague", False),
    ("Yusuf", "Demir", ("Online",), "owner", False),
    ("Ingrid", "Haugen", ("Runners", "Online"), "owner", False),
    ("Priya", "Sharma", ("Evening",), "colleague", False),
    ("Tomasz", "Kowalski", ("Strength",), "owner", False),
    ("Fatima", "Zahra", ("Morning",), "nobody", False),
    ("Noah", "Müller", ("Online",), "owner", False),
    ("Zoë", "de Vries", ("Runners",), "colleague", False),
    ("Kwame", "Mensah", ("Strength", "Evening"), "owner", False),
    ("Élodie", "Bernard", ("Morning", "Runners"), "owner", False),
    ("Ravi", "Patel", ("Online",), "colleague", False),
    ("Hana", "Novák", ("Evening",), "owner", False),
    ("Lucas", "Silva", ("Strength",), "owner", False),
    ("Nia", "Williams", ("Runners",), "owner", False),
    ("Oskar", "Lindqvist", (), "nobody", False),
    ("Leila", "Haddad", ("Morning",), "colleague", False),
    ("Diego", "Fernández", ("Strength", "Online"), "owner", False),
    ("Aoife", "Byrne", ("Evening",), "owner", False),
    ("Minh", "Nguyễn", ("Online",), "colleague", False),
    ("Greta", "Rossi", ("Runners",), "owner", False),
    ("Samuel", "Adeyemi", ("Strength",), "owner", False),
    ("Ivana", "Petrović", ("Morning",), "owner", False),
    ("Ethan", "Cohen", ("Evening",), "nobody", False),
    ("Marta", "Jansen", ("Morning",), "owner", True),
    ("Paul", "Schneider", ("Evening",), "owner", True),
    ("Kemal", "Yılmaz", (), "nobody", True),
    ("Ruth", "Abebe", ("Runners",), "colleague", True),
)

# The one whose training is logged; the first in the list.
TRAINED = "Amara"
COLLEAGUE = ("Eli Coach", "eli@example.com")

# Sessions by name: exercises of the shared library with sets, repetitions from and to, and load.
SESSIONS: dict[str, tuple[tuple[str, int, int, int, float], ...]] = {
    "Lower body": (
        ("Barbell Back Squat", 4, 5, 6, 80),
        ("Romanian Deadlift", 3, 8, 10, 60),
        ("Dumbbell Walking Lunge", 3, 10, 12, 14),
        ("Standing Calf Raise Machine", 3, 12, 15, 40),
    ),
    "Upper body": (
        ("Barbell Bench Press", 4, 5, 6, 60),
        ("Barbell Row", 4, 8, 8, 50),
        ("Seated Dumbbell Shoulder Press", 3, 8, 10, 16),
        ("Pull-Up", 3, 5, 8, 0),
    ),
    "Full body": (
        ("Barbell Deadlift", 3, 3, 5, 100),
        ("Push-Up", 3, 10, 15, 0),
        ("Goblet Squat", 3, 10, 12, 20),
        ("Plank", 3, 1, 1, 0),
    ),
}

PROGRAMS: tuple[tuple[str, str, tuple[str, ...], int, tuple[int, ...]], ...] = (
    ("First four weeks", "Three sessions a week to learn the lifts.", ("beginner", "gym"), 4, (1, 3, 5)),
    ("Strength block", "Eight weeks, four sessions a week.", ("strength",), 8, (1, 2, 4, 6)),
    ("Two days a week", "For those with little time.", ("beginner", "online"), 6, (2, 5)),
)

FORMS: tuple[FormInput, ...] = (
    {
        "name": "Weekly check-in",
        "questions": [
            {"label": "How did you sleep?", "type": "rating", "options": [], "required": True},
            {"label": "What went well?", "type": "text", "options": [], "required": False},
            {
                "label": "Where does it hurt?",
                "type": "multi",
                "options": ["Nowhere", "Knee", "Back"],
                "required": False,
            },
        ],
    },
    {
        "name": "Welcome",
        "questions": [
            {"label": "What is your goal?", "type": "text", "options": [], "required": True},
            {"label": "Days a week you can train", "type": "number", "options": [], "required": True},
        ],
    },
)

METRIC_SETS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("Body", (("Body weight", "kg"), ("Waist", "cm"))),
    ("Recovery", (("Resting heart rate", "bpm"), ("Sleep", "h"))),
)


def exercise_id(name: str) -> ObjectId:
    """The identifier of a shared exercise."""
    return stable_id("exercise", name)


def session_items(name: str, load_factor: float = 1.0) -> list[dict[str, Any]]:
    """The items of a session as a coach would send them; loads are rounded to 2.5."""
    return [
        {
            "type": "EXERCISE",
            "exerciseId": exercise_id(exercise),
            "exerciseInstructions": None,
            "supersetId": None,
            "exerciseSets": [
                {
                    "type": "reps_load" if load else "reps",
                    "index": index,
                    "minPlannedReps": minimum,
                    "maxPlannedReps": maximum,
                    **({"load": round(load * load_factor / 2.5) * 2.5} if load else {}),
                    "rest": 90,
                    "rpe": None,
                    "rir": None,
                    "tempo": None,
                    "isWarmup": False,
                }
                for index in range(1, sets + 1)
            ],
        }
        for exercise, sets, minimum, maximum, load in SESSIONS[name]
    ]
