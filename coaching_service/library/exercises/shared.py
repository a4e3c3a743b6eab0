"""The shared exercise library: JSON files in this package, published to the database by the operator."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import TypedDict

from coaching_service.core.database.context import Services
from coaching_service.core.ids import stable_id
from coaching_service.library.exercises import muscles, store
from coaching_service.library.exercises.models import ExerciseType, Level, Role, SharedExercise, TrainedMuscle
from coaching_service.library.exercises.service import SHARED_LIBRARY


class LibraryEntry(TypedDict):
    """An exercise as it is written in the files; `cue` is its instruction."""

    name: str
    aliases: list[str]
    type: ExerciseType
    level: Level
    equipment: str
    primary: list[str]
    secondary: list[str]
    tags: list[str]
    cue: str


@cache
def entries() -> tuple[LibraryEntry, ...]:
    """Return the library as it is written."""
    folder = files(__package__) / "shared_library"
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".json"))
    return tuple(entry for name in names for entry in json.loads((folder / name).read_text("utf-8")))


async def publish(services: Services) -> int:
    """Store the library in the database, or update it. Returns how many exercises were written or deleted."""
    return await store.publish(services, [_to_exercise(entry) for entry in entries()])


def _to_exercise(entry: LibraryEntry) -> SharedExercise:
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
        "media": [],
        "image": None,
        "thumbnail": None,
        "libraryId": SHARED_LIBRARY,
        "digest": hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest(),
    }


def _muscles(names: list[str], role: Role) -> list[TrainedMuscle]:
    return [{"_id": muscles.ID_OF[name], "name": name, "role": role} for name in names]
