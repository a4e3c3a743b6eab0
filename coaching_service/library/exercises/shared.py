"""The shared exercise library: files beside this one, published to the database by the operator."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any

from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import Document
from coaching_service.core.ids import stable_id
from coaching_service.library.exercises import muscles, store
from coaching_service.library.exercises.service import SHARED_LIBRARY


@cache
def entries() -> tuple[dict[str, Any], ...]:
    """The library as it is written: name, aliases, type, level, equipment, primary, secondary, tags, cue."""
    folder = files(__package__) / "shared_library"
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".json"))
    return tuple(entry for name in names for entry in json.loads((folder / name).read_text("utf-8")))


async def publish(services: Services) -> int:
    """Put the library into the database, or bring it up to date; gives how many exercises were written or deleted."""
    return await store.publish(services, [_document(entry) for entry in entries()])


def _document(entry: dict[str, Any]) -> Document:
    trained = [(name, role) for role in ("primary", "secondary") for name in entry[role]]
    return {
        "_id": stable_id("exercise", entry["name"]),
        "name": entry["name"],
        "aliases": entry["aliases"],
        "type": entry["type"],
        "level": entry["level"],
        "defaultInstructions": entry["cue"],
        "videoLink": None,
        "tags": entry["tags"],
        "muscleGroups": [{"_id": muscles.ID_OF[name], "name": name, "role": role} for name, role in trained],
        "equipment": entry["equipment"],
        "media": [],
        "image": None,
        "thumbnail": None,
        "libraryId": SHARED_LIBRARY,
        "digest": hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest(),
    }
