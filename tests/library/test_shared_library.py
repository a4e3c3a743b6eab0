"""The shared exercise library, entry by entry."""

from __future__ import annotations

import re
from collections import Counter
from typing import get_args

from coaching_service.core.database.context import Services
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.library.exercises import service as shared
from coaching_service.library.exercises._search_index import split_words
from coaching_service.library.exercises.models import (
    LEVELS,
    MUSCLES,
    TYPES,
    Force,
    Laterality,
    Mechanic,
    MovementPattern,
)
from tests.support.client import CoachClient
from tests.support.training import client_path

ENTRIES = shared.shared_entries()


def test_library_has_at_least_300_exercises() -> None:
    assert len(ENTRIES) >= 300


def test_every_entry_is_complete() -> None:
    for entry in ENTRIES:
        about = entry["name"]
        assert set(entry) == set(shared.LibraryEntry.__annotations__)
        texts = [entry["name"], entry["equipment"], entry["cue"], *entry["aliases"], *entry["tags"]]
        assert all(isinstance(text, str) and text == text.strip() != "" for text in texts), about
        assert entry["type"] in TYPES, about
        assert entry["level"] in LEVELS, about
        assert entry["tags"], about
        assert entry["cue"].endswith("."), about


def test_every_muscle_exists_and_is_trained() -> None:
    for entry in ENTRIES:
        trained = entry["primary"] + entry["secondary"]
        assert entry["primary"], entry["name"]
        assert set(trained) <= set(MUSCLES), entry["name"]
        assert len(trained) == len(set(trained)), entry["name"]
    assert {muscle for entry in ENTRIES for muscle in entry["primary"]} == set(MUSCLES)


def test_names_and_instructions_are_unique() -> None:
    names = Counter(name.casefold() for entry in ENTRIES for name in (entry["name"], *entry["aliases"]))
    cues = Counter(entry["cue"] for entry in ENTRIES)
    assert [name for name, times in (names + cues).items() if times > 1] == []


def test_names_in_two_languages_are_unique() -> None:
    """No two exercises share a name or alias, without regard to case, accents, hyphens and the plural."""
    owners: dict[str, set[str]] = {}
    for entry in ENTRIES:
        spanish = entry["translations"]["es"]
        for name in (entry["name"], *entry["aliases"], spanish["name"], *spanish["aliases"]):
            owners.setdefault(" ".join(split_words(normalize(name))), set()).add(entry["name"])
    assert {name: each for name, each in owners.items() if len(each) > 1} == {}


def test_every_entry_has_a_spanish_name() -> None:
    letters = re.compile(r"[0-9A-Za-zÁÉÍÓÚÜÑáéíóúüñ/ -]+")
    for entry in ENTRIES:
        spanish = entry["translations"]["es"]
        names = [spanish["name"], *spanish["aliases"]]
        assert set(spanish) == {"name", "aliases"}, entry["name"]
        assert all(letters.fullmatch(name) and name == name.strip() for name in names), names
        assert all(name[0].isdigit() or name[0].isupper() for name in names), names
        assert len({name.casefold() for name in names}) == len(names), names


def test_every_entry_states_how_it_moves() -> None:
    for entry in ENTRIES:
        about = entry["name"]
        assert entry["movementPattern"] in (*get_args(MovementPattern), None), about
        assert entry["force"] in (*get_args(Force), None), about
        assert entry["mechanic"] in (*get_args(Mechanic), None), about
        assert entry["laterality"] in get_args(Laterality), about
        if entry["type"] in ("strength", "plyometrics"):
            assert entry["movementPattern"] is not None, about
        if "unilateral" in entry["tags"]:
            assert entry["laterality"] != "bilateral", about
        if "isolation" in entry["tags"]:
            assert entry["mechanic"] != "compound", about
    assert {entry["movementPattern"] for entry in ENTRIES} == {*get_args(MovementPattern), None}


async def test_publishing_completes_the_library_of_an_earlier_release(coach: CoachClient, services: Services) -> None:
    """Exercises stored before they had translations get them, with their fields for the search."""
    new_fields = ("translations", "movementPattern", "force", "mechanic", "laterality", "searchNames", "searchAliases")
    shared_exercise = {"companyId": None, "name": "Barbell Back Squat"}
    change = {"$unset": dict.fromkeys(new_fields, ""), "$set": {"digest": "old", "search": "barbell back squat"}}
    await services.db["exercises"].update_one(shared_exercise, change)
    page = (await coach.get("/exercises/unified", pageSize=1, pageNum=1, keywords="barbell back squat")).ok()
    [earlier] = page["docs"]
    assert [earlier[name] for name in new_fields[:5]] == [None] * 5

    assert await shared.publish_shared(services) == 1

    page = (await coach.get("/exercises/unified", pageSize=1, pageNum=1, keywords="sentadilla")).ok()
    [completed] = page["docs"]
    assert (completed["_id"], completed["name"]) == (earlier["_id"], "Barbell Back Squat")
    assert completed["translations"]["es"]["name"] == "Sentadilla con barra"
    assert [completed[name] for name in new_fields[1:5]] == ["squat", "push", "compound", "bilateral"]


async def test_publishing_again_writes_nothing(services: Services) -> None:
    assert await shared.publish_shared(services) == 0
    assert await services.db["exercises"].count_documents({"companyId": None}) == len(ENTRIES)


async def test_publishing_restores_changed_exercises(services: Services) -> None:
    changed = await services.db["exercises"].find_one_and_update(
        {"companyId": None, "name": ENTRIES[0]["name"]}, {"$set": {"digest": "old", "level": "wrong"}}
    )
    assert changed is not None
    assert await shared.publish_shared(services) == 1
    restored = await services.db["exercises"].find_one({"_id": changed["_id"]})
    assert restored is not None
    assert (restored["level"], restored["version"]) == (ENTRIES[0]["level"], changed["version"] + 1)


async def test_publishing_deletes_removed_exercises(coach: CoachClient, services: Services) -> None:
    """A removed exercise is not listed, but scheduled blocks keep its name; it can be published again."""
    exercises = services.db["exercises"]
    dropped = await exercises.find_one({"companyId": None, "name": ENTRIES[0]["name"]})
    assert dropped is not None
    dropped |= {"_id": ObjectId(), "name": "Thigh master", "sortName": "thigh master"}
    await exercises.insert_one(dropped)
    block = await coach.schedule(ana := await coach.create_customer())
    item = {"type": "EXERCISE", "exerciseId": str(dropped["_id"]), "exerciseSets": [{"type": "reps"}]}
    (await coach.post(f"{client_path(ana)}/wblocks/{block['_id']}/witems", item)).ok(201)

    assert await shared.publish_shared(services) == 1
    assert await shared.publish_shared(services) == 0, "it is deleted once"

    (await coach.get(f"/exercises/{dropped['_id']}")).refused(404)
    (await coach.post(f"{client_path(ana)}/wblocks/{block['_id']}/witems", item)).refused(404)
    assert (await coach.calendar(ana))[0]["items"][0]["exercise"]["name"] == "Thigh master"
    stored = await exercises.find_one({"_id": dropped["_id"]})
    assert stored is not None
    as_deleted = {name: stored[name] for name in ("deletedAt", "version")}
    back = {"companyId": None, "name": ENTRIES[1]["name"]}
    await exercises.update_one(back, {"$set": as_deleted, "$unset": {"digest": ""}})
    assert await shared.publish_shared(services) == 1
    published = await exercises.find_one(back)
    assert published is not None
    assert published["deletedAt"] is None
    await exercises.delete_one({"_id": dropped["_id"]})


async def test_names_of_shared_exercises_are_read_once_a_minute_and_of_own_ones_each_time(
    coach: CoachClient, services: Services
) -> None:
    own = await coach.create_exercise("Sled")
    exercise = await services.db["exercises"].find_one({"companyId": None, "name": ENTRIES[0]["name"]})
    assert exercise is not None
    block = await coach.schedule(ana := await coach.create_customer())

    async def name_after_a_change(exercise_id: object, name: str) -> str:
        item = {"type": "EXERCISE", "exerciseId": str(exercise_id), "exerciseSets": [{"type": "reps"}]}
        path = f"{client_path(ana)}/wblocks/{block['_id']}/witems"
        (await coach.post(path, item)).ok(201)
        await services.db["exercises"].update_one({"_id": ObjectId(str(exercise_id))}, {"$set": {"name": "Changed"}})
        changed: str = (await coach.post(path, item)).ok(201)["exercise"]["name"]
        await services.db["exercises"].update_one({"_id": ObjectId(str(exercise_id))}, {"$set": {"name": name}})
        return changed

    assert await name_after_a_change(own["_id"], "Sled") == "Changed"
    assert await name_after_a_change(exercise["_id"], exercise["name"]) == exercise["name"]
