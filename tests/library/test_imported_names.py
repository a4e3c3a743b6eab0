"""Names of exercises in files: what they mean, what the company has answered, and new exercises (contract 17)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from coaching_service.core.errors import InvalidFields, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.library import imported_names
from coaching_service.library.exercises.models import MUSCLE_NAMES
from coaching_service.library.exercises.name_resolution import muscles_in_name
from coaching_service.library.imported_names import create_missing, read_answers, resolve_names
from tests.support.client import UNKNOWN, CoachClient
from tests.support.sampled import some
from tests.support.training import Json

# Names of other services' libraries, and the exercise of the shared library that each means.
STOCK = [
    ("Hammer Curl (Dumbbell)", "Hammer Curl"),
    ("Skullcrusher (Barbell)", "EZ Bar Skull Crusher"),
    ("Russian Twist (Bodyweight)", "Russian Twist"),
    ("Seated Cable Row - V Grip (Cable)", "Seated Cable Row"),
    ("Treadmill", "Treadmill Run"),
    ("Cycling", "Stationary Bike Ride"),
    ("Preacher Curl (Barbell)", "EZ Bar Preacher Curl"),
    ("Pushup (Diamond)", "Diamond Push-Up"),
    ("Lat Pulldown (Machine)", "Lat Pulldown"),
    ("Triceps Pushdown (Cable - Straight Bar)", "Triceps Pushdown"),
    ("Butterfly (Pec Deck)", "Pec Deck Fly"),
    ("Iso-Lateral Row (Machine)", "Machine Row"),
    ("Rear Delt Reverse Fly (Machine)", "Machine Reverse Fly"),
    ("Seated Shoulder Press (Machine)", "Machine Shoulder Press"),
    ("Leg Press Horizontal (Machine)", "Leg Press"),
    ("Cable Fly Crossovers", "Cable Fly"),
    ("Back Extension (Hyperextension)", "Back Extension"),
    ("Elliptical Trainer", "Elliptical Steady Session"),
    ("Ab Wheel", "Ab Wheel Rollout"),
    ("Bent Over One Arm Row (Dumbbell)", "Dumbbell Row"),
]
MUSCLES = [
    ("Leo's Hammer Curl Deluxe", ["Biceps", "Forearms"]),
    ("Seated leg-curls v2", ["Hamstrings"]),
    ("Sentadilla con pausa larga", ["Quadriceps", "Glutes"]),
    ("Calves on the step", ["Calves"]),
    ("Ladder drill", []),
]


async def shared_exercise(coach: CoachClient, name: str) -> Json:
    (result,) = (await coach.post("/exercises/resolve", {"names": [name]})).ok()["results"]
    match: Json = result["match"]
    return match


async def test_names_of_other_services_mean_shared_exercises(coach: CoachClient) -> None:
    resolved = await resolve_names(coach.ctx, {name: 1 for name, _ in STOCK})
    meant = {each["name"]: each["match"] and each["match"]["name"] for each in resolved.names}
    assert meant == dict(STOCK)


async def test_stock_names_in_five_languages_mean_shared_exercises_or_are_asked(coach: CoachClient) -> None:
    rows = (Path(imported_names.__file__).with_name("stock_names.txt")).read_text("utf-8").splitlines()
    columns = [[cell.split(";") for cell in row.split("|")] for row in rows if not row.startswith("#")]
    columns = [row for row in columns if len(row) == 6]
    for language in range(1, 6):
        assert sum(bool(row[language][0].strip()) for row in columns) >= 25
    names = {name.strip(): row[0][0].strip() for row in columns for cell in row[1:] for name in cell if name.strip()}
    wanted = dict(some([*names.items()], len(names) // 4))
    meant = await meanings(coach, wanted)
    assert meant == wanted
    others = await meanings(coach, ["DEVELOPPE COUCHE - Barre", "Supino Reto [Barra]"])
    assert [*others.values()] == ["Barbell Bench Press"] * 2
    own = await coach.create_exercise("Kreuzheben")
    assert (await resolve_names(coach.ctx, {"kreuzheben": 1})).decide("kreuzheben") == ObjectId(own["_id"])


async def test_names_of_applications_mean_the_right_movement(coach: CoachClient) -> None:
    rows = Path(__file__).with_name("names_of_applications.txt").read_text("utf-8").splitlines()
    right = {
        name.strip(): [each.strip() for each in answers.split(";")]
        for name, answers in (row.split("|") for row in rows if not row.startswith("#"))
    }
    meant = await meanings(coach, right)
    wrong = {name: meant[name] for name in right if meant[name] not in (*right[name], "ask")}
    matched = sum(each != "ask" for each in meant.values())
    assert wrong == {}
    assert matched >= 0.92 * len(right) >= 92, [name for name in right if meant[name] == "ask"]


async def meanings(coach: CoachClient, names: Iterable[str]) -> dict[str, str]:
    """The exercise that each name means, or `ask`."""
    resolved = (await resolve_names(coach.ctx, dict.fromkeys(names, 1))).names
    return {each["name"]: each["match"]["name"] if each["match"] else "ask" for each in resolved}


async def test_names_are_listed_by_their_sets_whatever_their_case(coach: CoachClient) -> None:
    resolved = await resolve_names(coach.ctx, {"Grundübung  A": 2, "Pull-ups": 3, "GRUNDÜBUNG a": 4})
    assert [(each["name"], each["sets"], each["answer"]) for each in resolved.names] == [
        ("Grundübung A", 6, "create"),
        ("Pull-ups", 3, None),
    ]
    assert resolved.decide(" grundübung a ") == "create"


async def test_a_name_without_a_match_becomes_an_exercise_with_its_muscles(coach: CoachClient) -> None:
    resolved = await resolve_names(coach.ctx, {"Leo's Hammer Curl Deluxe": 3, "Half Pull Machine X": 1})
    ids = await create_missing(coach.ctx, resolved, assistance=["half pull machine x"])
    curl, machine = [
        (await coach.get(f"/exercises/{ids[name]}")).ok()
        for name in ("leo's hammer curl deluxe", "half pull machine x")
    ]
    assert (curl["name"], curl["tags"]) == ("Leo's Hammer Curl Deluxe", ["imported"])
    assert [(each["name"], each["role"]) for each in curl["muscleGroups"]] == [
        ("Biceps", "primary"),
        ("Forearms", "secondary"),
    ]
    assert (machine["loadType"], machine["muscleGroups"]) == ("assistance", [])
    again = await resolve_names(coach.ctx, {"Leo's Hammer Curl Deluxe": 1})
    assert again.decide("Leo's Hammer Curl Deluxe") == ids["leo's hammer curl deluxe"]


async def test_answers_are_remembered_until_their_exercise_is_deleted(
    coach: CoachClient, other_company: CoachClient
) -> None:
    own = await coach.create_exercise("House Press")
    answers = read_answers({"Bench press": own["_id"], "Warm up": "skip", "Pull-Up": "create"})
    counts = {"bench  PRESS": 4, "Warm up": 2, "Pull-Up": 1}
    first = await create_missing(coach.ctx, await resolve_names(coach.ctx, counts, answers))
    assert first["bench press"] == ObjectId(own["_id"])
    assert first["warm up"] is None
    second = await resolve_names(coach.ctx, counts)
    assert second.decisions == {
        "bench press": ObjectId(own["_id"]),
        "warm up": "skip",
        "pull-up": first["pull-up"],
    }
    bench = next(each for each in second.names if each["name"] == "bench PRESS")
    assert bench["match"] == {"_id": ObjectId(own["_id"]), "name": "House Press", "score": 100.0}
    assert [each["name"] for each in bench["alternatives"]][:1] == ["Barbell Bench Press"]
    strangers = await resolve_names(other_company.ctx, counts)
    assert strangers.decide("Bench press") == ObjectId((await shared_exercise(coach, "Barbell bench press"))["_id"])
    deleted = await coach.delete(f"/exercises/{own['_id']}")
    forgotten = await resolve_names(coach.ctx, counts)
    assert forgotten.decide("Bench press") == ObjectId((await shared_exercise(coach, "Barbell bench press"))["_id"])
    change = deleted.headers["X-Change-Id"]
    (await coach.post(f"/coach/changes/{change}/undo")).ok()
    assert (await resolve_names(coach.ctx, counts)).decide("Bench press") == ObjectId(own["_id"])


async def test_an_answer_now_counts_more_than_one_before(coach: CoachClient) -> None:
    own = await coach.create_exercise("House Press")
    before = await resolve_names(coach.ctx, {"Press A": 1}, read_answers({"Press A": "skip"}))
    await create_missing(coach.ctx, before)
    now = await resolve_names(coach.ctx, {"Press A": 1}, read_answers({"press a": own["_id"]}))
    assert now.decide("Press A") == ObjectId(own["_id"])
    await create_missing(coach.ctx, now, remember=False)
    assert (await resolve_names(coach.ctx, {"Press A": 1})).decide("Press A") == "skip"


async def test_answers_are_validated(coach: CoachClient) -> None:
    with pytest.raises(NotFound):
        await resolve_names(coach.ctx, {"Press A": 1}, read_answers({"Press A": UNKNOWN}))
    for wrong in ("keep", 7, None, "123"):
        with pytest.raises(InvalidFields):
            read_answers({"Press A": wrong})
    with pytest.raises(InvalidFields):
        await resolve_names(coach.ctx, {f"Press {number}": 1 for number in range(2_001)})


@pytest.mark.parametrize(("name", "muscles"), MUSCLES)
def test_a_name_says_which_muscles_it_trains(name: str, muscles: list[str]) -> None:
    assert [MUSCLE_NAMES[each["_id"]] for each in muscles_in_name(name)] == muscles


async def test_alternatives_are_in_the_order_of_their_scores(coach: CoachClient) -> None:
    """Also with an answer, before which the first one was the match."""
    names = ("Bench", "Squat", "Row", "Press", "Curl", "Pulldown", "Lat raise", "Dead lift", "Step")
    answer = ObjectId((await coach.create_exercise("Zottel"))["_id"])
    for answers in ({}, dict.fromkeys(names, answer)):
        for each in (await resolve_names(coach.ctx, dict.fromkeys(names, 1), answers)).names:
            scores = [other["score"] for other in each["alternatives"]]
            assert scores == sorted(scores, reverse=True), each
