"""Exercise search: the order of matches, abbreviations, plurals, hyphens and typing errors (contract section 6)."""

from __future__ import annotations

import pytest

from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises._search_index import SearchResult, index_of, search
from coaching_service.library.exercises.models import SearchEntry
from tests.support.client import CoachClient
from tests.support.training import Json, exercise_of

FIRST_HITS = {
    "squat": "Barbell Back Squat",
    "squats": "Barbell Back Squat",
    "back squat": "Barbell Back Squat",
    "front squat": "Barbell Front Squat",
    "goblet squat": "Goblet Squat",
    "kb goblet squat": "Kettlebell Goblet Squat",
    "split squat": "Split Squat",
    "bulgarian split squat": "Bulgarian Split Squat",
    "bss": "Bulgarian Split Squat",
    "pistol squat": "Pistol Squat",
    "box squat": "Barbell Box Squat",
    "hack squat": "Hack Squat Machine",
    "squat jump": "Squat Jump",
    "jump squat": "Squat Jump",
    "zercher squat": "Zercher Squat",
    "air squat": "Bodyweight Squat",
    "deadlift": "Barbell Deadlift",
    "deadlifts": "Barbell Deadlift",
    "RDL": "Romanian Deadlift",
    "romanian deadlift": "Romanian Deadlift",
    "dumbbell rdl": "Dumbbell Romanian Deadlift",
    "single leg rdl": "Single-Leg Romanian Deadlift",
    "single-leg rdl": "Single-Leg Romanian Deadlift",
    "sumo deadlift": "Sumo Deadlift",
    "trap bar deadlift": "Trap Bar Deadlift",
    "hex bar deadlift": "Trap Bar Deadlift",
    "stiff leg deadlift": "Stiff-Leg Deadlift",
    "rack pull": "Rack Pull",
    "hip thrust": "Barbell Hip Thrust",
    "hip thrusts": "Barbell Hip Thrust",
    "glute bridge": "Glute Bridge",
    "good morning": "Barbell Good Morning",
    "leg press": "Leg Press",
    "leg curl": "Lying Leg Curl",
    "leg extension": "Leg Extension",
    "lunge": "Forward Lunge",
    "lunges": "Forward Lunge",
    "walking lunge": "Dumbbell Walking Lunge",
    "reverse lunge": "Dumbbell Reverse Lunge",
    "step up": "Dumbbell Step-Up",
    "step-ups": "Dumbbell Step-Up",
    "calf raise": "Bodyweight Calf Raise",
    "bench": "Barbell Bench Press",
    "bench press": "Barbell Bench Press",
    "benchpress": "Barbell Bench Press",
    "incline bench": "Incline Barbell Bench Press",
    "incline bench press": "Incline Barbell Bench Press",
    "db bench press": "Dumbbell Bench Press",
    "db press": "Dumbbell Bench Press",
    "close grip bench press": "Close-Grip Bench Press",
    "cgbp": "Close-Grip Bench Press",
    "floor press": "Barbell Floor Press",
    "push up": "Push-Up",
    "pushup": "Push-Up",
    "push-ups": "Push-Up",
    "pushups": "Push-Up",
    "diamond pushup": "Diamond Push-Up",
    "dips": "Triceps Dip",
    "chest fly": "Dumbbell Fly",
    "OHP": "Barbell Overhead Press",
    "overhead press": "Barbell Overhead Press",
    "military press": "Barbell Overhead Press",
    "shoulder press": "Seated Dumbbell Shoulder Press",
    "arnold press": "Arnold Press",
    "push press": "Push Press",
    "lateral raise": "Dumbbell Lateral Raise",
    "lateral raises": "Dumbbell Lateral Raise",
    "face pull": "Face Pull",
    "upright row": "Barbell Upright Row",
    "pull up": "Pull-Up",
    "pullup": "Pull-Up",
    "pull-ups": "Pull-Up",
    "chin up": "Chin-Up",
    "chinup": "Chin-Up",
    "chin-ups": "Chin-Up",
    "lat pulldown": "Lat Pulldown",
    "row": "Barbell Row",
    "bent over row": "Barbell Row",
    "db row": "Dumbbell Row",
    "bb row": "Barbell Row",
    "cable row": "Seated Cable Row",
    "inverted row": "Inverted Row",
    "pendlay row": "Pendlay Row",
    "t bar row": "T-Bar Row",
    "curl": "Barbell Curl",
    "bicep curl": "Barbell Curl",
    "hammer curl": "Hammer Curl",
    "preacher curl": "EZ Bar Preacher Curl",
    "skull crusher": "EZ Bar Skull Crusher",
    "tricep pushdown": "Triceps Pushdown",
    "kb swing": "Kettlebell Swing",
    "kettlebell swing": "Kettlebell Swing",
    "turkish get up": "Turkish Get-Up",
    "tgu": "Turkish Get-Up",
    "clean and jerk": "Clean and Jerk",
    "power clean": "Power Clean",
    "snatch": "Snatch",
    "plank": "Plank",
    "side plank": "Side Plank",
    "sit up": "Sit-Up",
    "situps": "Sit-Up",
    "crunches": "Crunch",
    "russian twist": "Russian Twist",
    "hanging leg raise": "Hanging Leg Raise",
    "mountain climbers": "Mountain Climber",
    "burpees": "Burpee",
    "box jump": "Box Jump",
    "hspu": "Handstand Push-Up",
    "quads": "Barbell Back Squat",
    "squt": "Barbell Back Squat",
    "dedlift": "Barbell Deadlift",
    "kettelbell swing": "Kettlebell Swing",
    "bulgarien split squat": "Bulgarian Split Squat",
    "romainian deadlift": "Romanian Deadlift",
    "lunge walk": "Barbell Walking Lunge",
    "nordic curl": "Nordic Hamstring Curl",
    "farmers walk": "Farmer's Carry",
    "pallof press": "Pallof Press",
    "dead bug": "Dead Bug",
    "bird dog": "Bird Dog",
    "ab wheel": "Ab Wheel Rollout",
    "thruster": "Barbell Thruster",
    "jump rope": "Basic Jump Rope",
    "double unders": "Double-Under",
    "muscle up": "Bar Muscle-Up",
    "sled push": "Sled Push",
}
SPANISH_HITS = {
    "sentadilla": "Barbell Back Squat",
    "Sentadillas": "Barbell Back Squat",
    "sentadilla frontal": "Barbell Front Squat",
    "sentadilla búlgara": "Bulgarian Split Squat",
    "sentadilla bulgara": "Bulgarian Split Squat",
    "sentadilla con salto": "Squat Jump",
    "press de banca": "Barbell Bench Press",
    "press banca": "Barbell Bench Press",
    "press inclinado": "Incline Barbell Bench Press",
    "press militar": "Barbell Overhead Press",
    "press de hombros": "Seated Dumbbell Shoulder Press",
    "PRESS FRANCES": "EZ Bar Skull Crusher",
    "peso muerto": "Barbell Deadlift",
    "peso muerto rumano": "Romanian Deadlift",
    "dominadas": "Pull-Up",
    "dominada": "Pull-Up",
    "jalon": "Lat Pulldown",
    "jalón al pecho": "Lat Pulldown",
    "remo con barra": "Barbell Row",
    "remo con mancuerna": "Dumbbell Row",
    "remo en polea": "Seated Cable Row",
    "curl biceps": "Barbell Curl",
    "curl martillo": "Hammer Curl",
    "curl femoral": "Lying Leg Curl",
    "extensión de tríceps": "Triceps Pushdown",
    "fondos": "Triceps Dip",
    "flexiones": "Push-Up",
    "lagartijas": "Push-Up",
    "zancadas": "Forward Lunge",
    "estocada": "Forward Lunge",
    "prensa": "Leg Press",
    "extensión de cuádriceps": "Leg Extension",
    "empuje de cadera": "Barbell Hip Thrust",
    "puente de glúteos": "Glute Bridge",
    "gemelos": "Bodyweight Calf Raise",
    "elevacion lateral": "Dumbbell Lateral Raise",
    "elevaciones laterales": "Dumbbell Lateral Raise",
    "plancha": "Plank",
    "abdominales": "Crunch",
    "giro ruso": "Russian Twist",
    "rueda abdominal": "Ab Wheel Rollout",
    "saltar la cuerda": "Basic Jump Rope",
    "correr": "Easy Run",
    "natacion": "Freestyle Swimming",
    "aperturas": "Dumbbell Fly",
    "arrancada": "Snatch",
    "levantamiento turco": "Turkish Get-Up",
    "salto al cajón": "Box Jump",
    "postura del niño": "Child's Pose",
    "buenos dias": "Barbell Good Morning",
    "sentadila": "Barbell Back Squat",
    "peso muetro": "Barbell Deadlift",
}
NAMES = {ObjectId(): entry["name"] for entry in exercises.shared_entries()}


def _entry(exercise_id: ObjectId, entry: exercises.LibraryEntry) -> SearchEntry:
    spanish = entry["translations"]["es"]
    names = [entry["name"], spanish["name"]]
    aliases = [*entry["aliases"], *spanish["aliases"]]
    texts = [*names, *aliases, *entry["tags"], *entry["primary"], *entry["secondary"], entry["equipment"]]
    return {
        "_id": exercise_id,
        "search": "\n".join(map(normalize, texts)),
        "names": len(names),
        "aliases": len(aliases),
        "isOwn": False,
        "isCommon": True,
    }


INDEX = index_of(
    [_entry(exercise_id, entry) for exercise_id, entry in zip(NAMES, exercises.shared_entries(), strict=True)]
)


def _names(result: SearchResult) -> list[str]:
    return [NAMES[exercise_id] for exercise_id in result.ids]


def test_the_table_has_a_hundred_queries() -> None:
    assert len(FIRST_HITS) >= 100


def test_first_hit_in_the_shared_library() -> None:
    assert {query: _names(search(INDEX, query, {}))[0] for query in FIRST_HITS} == FIRST_HITS


@pytest.mark.parametrize(("query", "name"), SPANISH_HITS.items())
def test_first_hit_in_spanish(query: str, name: str) -> None:
    """Contract 6: the shared library has Spanish names; accents do not matter."""
    assert _names(search(INDEX, query, {}))[0] == name


async def test_spanish_search_answers_english_names(coach: CoachClient) -> None:
    [first] = (await _list(coach, "press de banca", size=1))["docs"]
    assert first["name"] == "Barbell Bench Press"
    assert first["translations"]["es"]["name"] == "Press de banca con barra"


def test_search_by_muscle_abbreviation_finds_exercises() -> None:
    trained = {
        entry["name"] for entry in exercises.shared_entries() if "Quadriceps" in entry["primary"] + entry["secondary"]
    }
    assert trained <= set(_names(search(INDEX, "quads", {})))


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("quads", "Barbell Back Squat, Barbell Front Squat, Bulgarian Split Squat, Leg Extension, Leg Press"),
        ("hammies", "Lying Leg Curl, Nordic Hamstring Curl, Romanian Deadlift, Stiff-Leg Deadlift"),
        ("pecs", "Barbell Bench Press, Cable Fly, Dumbbell Bench Press, Dumbbell Fly, Push-Up"),
        ("delts", "Barbell Overhead Press, Dumbbell Lateral Raise, Dumbbell Rear Delt Fly, Face Pull"),
        ("abs", "Ab Wheel Rollout, Crunch, Hanging Leg Raise, Plank, Sit-Up"),
    ],
)
def test_short_name_of_a_muscle_finds_its_common_exercises_first(query: str, names: str) -> None:
    first = names.split(", ")
    assert _names(search(INDEX, query, {}))[: len(first)] == first


def test_squat_finds_the_back_squat_before_the_squat_jump() -> None:
    names = _names(search(INDEX, "squat", {}))
    assert names.index("Barbell Back Squat") < names.index("Squat Jump")


@pytest.mark.parametrize("query", ["squt", "kettelbell swing", "dedlift"])
def test_one_typing_error_is_tolerated_and_reported(query: str) -> None:
    assert search(INDEX, query, {}).tolerant


@pytest.mark.parametrize("query", ["rwo", "crl", "sqqutt", "zqx zqx"])
def test_short_words_and_two_errors_are_not_corrected(query: str) -> None:
    """Contract 6: one typing error, never in words under 4 letters."""
    result = search(INDEX, query, {})
    assert not result.tolerant
    assert "Barbell Row" not in _names(result)
    assert "Barbell Curl" not in _names(result)


def test_five_exact_matches_are_enough() -> None:
    result = search(INDEX, "bench", {})
    assert len(result.ids) >= 5
    assert not result.tolerant


def test_typo_matches_follow_exact_ones() -> None:
    exact = set(_names(search(INDEX, "hack squat", {}))[:2])
    assert exact == {"Hack Squat Machine", "Barbell Hack Squat"}
    assert search(INDEX, "hack squat", {}).tolerant


def test_use_by_the_company_orders_equal_matches() -> None:
    plain = search(INDEX, "deadlift", {}).ids
    used = plain[5]
    assert search(INDEX, "deadlift", {used: 3}).ids[:2] == [plain[0], used], "an exact alias still comes first"


async def _list(coach: CoachClient, keywords: str, page: int = 1, size: int = 50) -> Json:
    page_document: Json = (await coach.get("/exercises/unified", pageSize=size, pageNum=page, keywords=keywords)).ok()
    return page_document


async def test_response_reports_that_typo_matches_were_added(coach: CoachClient) -> None:
    tolerant = await _list(coach, "squt")
    exact = await _list(coach, "squat")
    assert tolerant["tolerant"] is True
    assert tolerant["docs"][0]["name"] == "Barbell Back Squat"
    assert "tolerant" not in exact


async def test_pages_of_a_search_return_every_exercise_once(coach: CoachClient) -> None:
    first = await _list(coach, "squt", size=7)
    pages = [await _list(coach, "squt", page, 7) for page in range(1, first["totalPages"] + 1)]
    ids = [exercise["_id"] for page in pages for exercise in page["docs"]]
    assert len(ids) == len(set(ids)) == first["totalDocs"]
    assert all(page["tolerant"] for page in pages)


async def test_exercises_that_the_company_plans_come_first(coach: CoachClient, other_company: CoachClient) -> None:
    before = (await _list(coach, "deadlift"))["docs"]
    block = await coach.schedule(await coach.create_customer())
    path = f"/coach/customers/{block['customerId']}/wblocks/{block['_id']}/witems"
    (await coach.post(path, exercise_of(before[5]))).ok(201)

    after = (await _list(coach, "deadlift"))["docs"]

    assert [after[0]["_id"], after[1]["_id"]] == [before[0]["_id"], before[5]["_id"]]
    assert (await _list(other_company, "deadlift"))["docs"] == before
