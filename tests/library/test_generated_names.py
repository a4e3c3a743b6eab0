"""Generated names mean no exercise of another part of the body, and cost little."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises._search_index import index_of
from coaching_service.library.exercises.models import SearchEntry
from coaching_service.library.exercises.name_resolution import resolve_name
from tests.support.sampled import MORE, some

# What a coach expects to be trained by an exercise that has the word in its name.
TRAINED = {
    "Leg": {"Quadriceps", "Hamstrings", "Glutes", "Adductors", "Abductors", "Abdominals"},  # also leg raises
    "Biceps": {"Biceps"},
    "Triceps": {"Triceps"},
    "Calf": {"Calves"},
    "Hamstring": {"Hamstrings"},
    "Chest": {"Chest"},
    "Shoulder": {"Front Deltoids", "Side Deltoids", "Rear Deltoids"},
    "Back": {"Lower Back", "Upper Back", "Latissimus Dorsi", "Trapezius"},
    "Glute": {"Glutes"},
    "Wrist": {"Forearms"},
    "Neck": {"Neck", "Trapezius"},
    "Lat": {"Latissimus Dorsi"},
}
# What a movement trains if its name states nothing else.
USUAL = {
    "Curl": {"Biceps", "Forearms"},
    "Press": {"Chest", "Front Deltoids", "Triceps"},
    "Fly": {"Chest", "Rear Deltoids"},
    "Row": {"Upper Back", "Latissimus Dorsi"},
    "Shrug": {"Trapezius"},
    "Pushdown": {"Triceps"},
    "Extension": None,
    "Raise": None,
}
POSITIONS = ("Seated", "Standing", "Lying", "Incline", "Bent-Over", "Kneeling", "Single-Arm", "Prone", "Reverse")
EQUIPMENT = ("Machine", "Cable", "Dumbbell", "Barbell", "Band", "Plate")
LIBRARY = {ObjectId(): entry for entry in exercises.shared_entries()}
_NAMES = 600 if MORE > 1 else 150


def _entry(exercise_id: ObjectId, entry: exercises.LibraryEntry, *, suffix: str = "") -> SearchEntry:
    texts = [entry["name"] + suffix, *entry["aliases"], *entry["tags"], *entry["primary"], *entry["secondary"]]
    return {
        "_id": exercise_id,
        "search": "\n".join(map(normalize, [*texts, entry["equipment"]])),
        "names": 1,
        "aliases": len(entry["aliases"]),
        "isOwn": bool(suffix),
        "isCommon": not suffix,
    }


INDEX = index_of([_entry(exercise_id, entry) for exercise_id, entry in LIBRARY.items()])


def _trained_by(name: str) -> set[str] | None:
    """The muscles of the exercise that a name means; None if it means none."""
    match = resolve_name(INDEX, name, {}).match
    return None if match is None else {*LIBRARY[match.exercise_id]["primary"], *LIBRARY[match.exercise_id]["secondary"]}


def _composed_names() -> Iterator[tuple[str, set[str]]]:
    for position, equipment, part, movement in product(POSITIONS, EQUIPMENT, ("", *TRAINED), USUAL):
        if expected := TRAINED.get(part) or USUAL[movement]:
            yield " ".join(filter(None, (position, equipment, part, movement))), expected


def test_composed_names_mean_no_exercise_of_another_part_of_the_body() -> None:
    names = random.Random(35).sample(list(_composed_names()), _NAMES)
    meant = {name: trained for name, _ in names if (trained := _trained_by(name)) is not None}
    assert len(meant) > _NAMES / 200, "some names mean an exercise"
    assert {name: meant[name] for name, expected in names if name in meant and not meant[name] & expected} == {}


def test_names_of_the_library_with_another_part_of_the_body_mean_no_exercise_of_the_former() -> None:
    wrong, tried = [], 0
    for entry in some([*LIBRARY.values()], len(LIBRARY) // 6):
        for part, other in product(TRAINED, TRAINED):
            changed = re.sub(rf"\b{part}\b", other, entry["name"])
            if changed == entry["name"] or TRAINED[part] & TRAINED[other]:
                continue
            tried += 1
            trained = _trained_by(changed)
            if trained is not None and not trained & TRAINED[other]:
                wrong.append((changed, trained))
    assert tried > (200 if MORE > 1 else 60)
    assert wrong == []


def test_name_without_its_part_of_the_body_does_not_mean_the_exercise() -> None:
    for name in ("Seated Machine Curl", "Lying Curl Machine", "Standing Raise on Toes", "Seated Band Curl"):
        match = resolve_name(INDEX, name, {}).match
        assert match is None or not {"Hamstrings", "Calves"} & {*LIBRARY[match.exercise_id]["primary"]}, name


def test_unknown_names_cost_little_with_thousands_of_exercises() -> None:
    """Under 2 ms of CPU each, were 50; this allows for a slow machine."""
    entries = [_entry(exercise_id, entry) for exercise_id, entry in LIBRARY.items()]
    while len(entries) < 3_000:
        entries += [_entry(ObjectId(), each, suffix=f" {len(entries)}") for each in LIBRARY.values()]
    index = index_of(entries[:3_000])
    names = [f"Wibble {first} {second} thing" for first, second in product(POSITIONS, EQUIPMENT)][:48]
    names += ["x" * 80, "dumbbell press " * 5]
    resolve_name(index, "Leg press", {})  # the vocabulary is listed with the first name
    started = time.thread_time()
    resolutions = [resolve_name(index, name, {}) for name in names]
    seconds = time.thread_time() - started
    assert not any(each.match for each in resolutions)
    assert seconds < 50 * 0.008


# What coaches write in place of names: see the file.
NAMES_OF_COACHES = Path(__file__).with_name("names_of_coaches.txt")


def test_names_as_coaches_write_them_mean_what_coaches_mean() -> None:
    """At most one in a hundred is read as another exercise, and at most 15 are asked about."""
    numbers = {LIBRARY[entry["_id"]]["name"]: number for number, entry in enumerate(INDEX.entries)}
    wrong, asked, total = [], [], 0
    for line in NAMES_OF_COACHES.read_text().splitlines():
        if line.startswith("#"):
            continue
        name, meant, calendar = [*line.split(" | "), ""][:3]
        planned = [numbers[each] for each in calendar.split("; ") if each]
        match = resolve_name(INDEX, name, {}, planned).match
        found = LIBRARY[match.exercise_id]["name"] if match else "ask"
        total += 1
        asked += [line] if found == "ask" else []
        wrong += [(line, found)] if found not in ("ask", meant) else []
    assert total >= 390
    assert len(wrong) <= total * 0.01, wrong
    assert len(asked) <= total * 0.15, asked
