"""The shared exercise library, entry by entry."""

from __future__ import annotations

from collections import Counter

from coaching_service.kernel.storage.context import Services
from coaching_service.library.exercises import shared
from coaching_service.library.exercises.muscles import MUSCLES
from coaching_service.library.exercises.schemas import LEVELS, TYPES

ENTRIES = shared.entries()


def test_there_are_at_least_three_hundred() -> None:
    assert len(ENTRIES) >= 300


def test_every_entry_is_whole() -> None:
    for entry in ENTRIES:
        about = entry["name"]
        assert set(entry) == {"name", "aliases", "type", "level", "equipment", "primary", "secondary", "tags", "cue"}
        texts = [entry["name"], entry["equipment"], entry["cue"], *entry["aliases"], *entry["tags"]]
        assert all(isinstance(text, str) and text == text.strip() != "" for text in texts), about
        assert entry["type"] in TYPES, about
        assert entry["level"] in LEVELS, about
        assert entry["tags"], about
        assert entry["cue"].endswith("."), about


def test_every_muscle_is_known_and_trained() -> None:
    for entry in ENTRIES:
        trained = entry["primary"] + entry["secondary"]
        assert entry["primary"], entry["name"]
        assert set(trained) <= set(MUSCLES), entry["name"]
        assert len(trained) == len(set(trained)), entry["name"]
    assert {muscle for entry in ENTRIES for muscle in entry["primary"]} == set(MUSCLES)


def test_nothing_is_there_twice() -> None:
    names = Counter(name.casefold() for entry in ENTRIES for name in (entry["name"], *entry["aliases"]))
    cues = Counter(entry["cue"] for entry in ENTRIES)
    assert [name for name, times in (names + cues).items() if times > 1] == []


async def test_publishing_again_writes_nothing(services: Services) -> None:
    assert await shared.publish(services) == 0
    assert await services.db["exercises"].count_documents({"companyId": None}) == len(ENTRIES)


async def test_publishing_mends_what_has_changed(services: Services) -> None:
    changed = await services.db["exercises"].find_one_and_update(
        {"companyId": None, "name": ENTRIES[0]["name"]}, {"$set": {"digest": "old", "level": "wrong"}}
    )
    assert changed is not None
    assert await shared.publish(services) == 1
    mended = await services.db["exercises"].find_one({"_id": changed["_id"]})
    assert mended is not None
    assert (mended["level"], mended["version"]) == (ENTRIES[0]["level"], changed["version"] + 1)
