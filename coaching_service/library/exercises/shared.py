"""The shared exercise library: JSON files in this package, published to the database by the operator.

ExerciseTranslations are in files of the same names, by the English name of the exercise.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from coaching_service.core.database.context import Services
from coaching_service.core.fields import take
from coaching_service.core.ids import stable_id
from coaching_service.library.exercises import models as exercise_models
from coaching_service.library.exercises import muscles, store
from coaching_service.library.exercises.service import SHARED_LIBRARY


class LibraryEntry(exercise_models.Movement):
    """An exercise as it is written in the files, with its translations; `cue` is its instruction.

    `loadType` is written only where loads are assistance or added to the body's weight.
    """

    loadType: exercise_models.LoadType
    name: str
    aliases: list[str]
    type: exercise_models.ExerciseType
    level: exercise_models.Level
    equipment: str
    primary: list[str]
    secondary: list[str]
    tags: list[str]
    cue: str
    translations: exercise_models.ExerciseTranslations


@cache
def entries() -> tuple[LibraryEntry, ...]:
    """Return the library as it is written."""
    folder = files(__package__) / "shared_library"
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".json"))
    return tuple(entry for name in names for entry in _read_entries(folder, name))


def _read_entries(folder: Traversable, name: str) -> list[LibraryEntry]:
    spanish: dict[str, exercise_models.TranslatedNames] = json.loads(
        (folder / "translations" / "es" / name).read_text("utf-8")
    )
    written: list[LibraryEntry] = json.loads((folder / name).read_text("utf-8"))
    usual: Any = {"loadType": exercise_models.LOAD}
    return [{**usual, **entry, "translations": {"es": spanish[entry["name"]]}} for entry in written]


async def publish(services: Services) -> int:
    """Store the library in the database, or update it. Returns how many exercises were written or deleted."""
    return await store.publish(services, [_to_exercise(entry) for entry in entries()])


def _to_exercise(entry: LibraryEntry) -> exercise_models.SharedExercise:
    return {
        "_id": stable_id("exercise", entry["name"]),
        "name": entry["name"],
        "aliases": entry["aliases"],
        "type": entry["type"],
        "level": entry["level"],
        "defaultInstructions": entry["cue"],
        "videoLink": None,
        "tags": entry["tags"],
        "muscleGroups": [*_muscles(entry["primary"], "primary"), *_muscles(entry["secondary"], "secondary")],
        "equipment": entry["equipment"],
        "loadType": entry["loadType"],
        **take(exercise_models.Movement, entry),
        "translations": entry["translations"],
        "media": [],
        "libraryId": SHARED_LIBRARY,
        "digest": _digest(entry),
    }


def _digest(entry: LibraryEntry) -> str:
    """Return what changes with an entry; the usual type of load, which came later, is left out."""
    content = {name: value for name, value in entry.items() if (name, value) != ("loadType", exercise_models.LOAD)}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _muscles(names: list[str], role: exercise_models.Role) -> list[exercise_models.TrainedMuscle]:
    return [{"_id": muscles.ID_OF[name], "name": name, "role": role} for name in names]
