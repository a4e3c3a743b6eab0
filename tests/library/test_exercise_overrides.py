"""A company's own video, instructions and aliases of a shared exercise: they appear wherever the exercise is read."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from coaching_service.core.database.context import Services
from coaching_service.library.exercises import service as shared_library
from tests.core.test_uploads import form, stored
from tests.support.client import MONDAY, UNKNOWN, CoachClient
from tests.support.media_files import picture
from tests.support.training import Json, client_path, exercise_of

OVERRIDE = {
    "videoLink": "https://video.example/goblet",
    "defaultInstructions": "Heels on the plate.",
    "aliases": ["Zqcup squat"],
}


async def find(coach: CoachClient, keywords: str, **query: Any) -> list[Json]:
    page = await coach.get("/exercises/unified", pageSize=50, pageNum=1, keywords=keywords, **query)
    exercises: list[Json] = page.ok()["docs"]
    return exercises


@pytest.fixture
async def goblet(coach: CoachClient) -> Json:
    return (await find(coach, "goblet squat"))[0]


@pytest.fixture
def path(goblet: Json) -> str:
    return f"/exercises/{goblet['_id']}"


async def test_company_sees_its_override_everywhere(
    coach: CoachClient, other_company: CoachClient, goblet: Json, path: str
) -> None:
    changed = (await coach.put(f"{path}/override", OVERRIDE)).ok()

    assert changed["videoLink"] == OVERRIDE["videoLink"]
    assert changed["defaultInstructions"] == OVERRIDE["defaultInstructions"]
    assert changed["aliases"] == [*goblet["aliases"], "Zqcup squat"]
    assert changed["version"] > goblet["version"]
    assert {name for name in goblet if goblet[name] != changed[name]} == {
        *("videoLink", "defaultInstructions", "aliases", "version", "updatedAt")
    }
    assert (await coach.get(path)).ok() == changed
    assert (await find(coach, "goblet squat"))[0] == changed
    listed = (await coach.get("/exercises/unified", pageSize=50, pageNum=1, type="public")).ok()
    assert listed["docs"][0]["version"] == 0, "others stay as they are"
    assert (await other_company.get(path)).ok() == goblet


async def test_blocks_show_the_companys_instructions(coach: CoachClient, goblet: Json, path: str) -> None:
    block = await coach.schedule(ana := await coach.create_customer())
    items = f"{client_path(ana)}/wblocks/{block['_id']}/witems"
    entry = {"exerciseId": goblet["_id"], "sets": [{"type": "reps"}]}
    circuit = {"type": "CIRCUIT", "circuitName": "Finisher", "circuitExercises": [entry]}
    (await coach.post(items, exercise_of(goblet))).ok(201)
    (await coach.put(f"{path}/override", OVERRIDE)).ok()

    added = (await coach.post(items, circuit)).ok(201)

    expected = {
        "_id": goblet["_id"],
        "name": "Goblet Squat",
        "defaultInstructions": OVERRIDE["defaultInstructions"],
    }
    assert added["circuitExercises"][0]["exercise"] == expected
    [read] = await coach.calendar(ana, MONDAY)
    assert read["items"][0]["exercise"] == expected
    assert read["items"][1]["circuitExercises"][0]["exercise"] == expected


async def test_own_alias_ranks_as_an_alias(coach: CoachClient, other_company: CoachClient, path: str) -> None:
    await coach.create_exercise("Thing", tags=["zqcup squat"])
    (await coach.put(f"{path}/override", {"aliases": ["Zqcup squat", "Monday's zqmug"]})).ok()

    assert [each["name"] for each in await find(coach, "zqcup squat")] == ["Goblet Squat", "Thing"]
    assert [each["name"] for each in await find(coach, "zqmug", type="public")] == ["Goblet Squat"]
    assert await find(other_company, "zqcup") == []
    (await coach.delete(f"{path}/override")).ok()
    assert [each["name"] for each in await find(coach, "zqcup")] == ["Thing"]


async def test_override_replaces_the_previous_one(coach: CoachClient, goblet: Json, path: str) -> None:
    (await coach.put(f"{path}/override", OVERRIDE)).ok()
    changed = (await coach.put(f"{path}/override", {"aliases": ["Other", goblet["aliases"][0].upper()]})).ok()
    assert changed["videoLink"] == goblet["videoLink"]
    assert changed["defaultInstructions"] == goblet["defaultInstructions"]
    assert changed["aliases"] == [*goblet["aliases"], "Other"], "an alias that is shared already is not repeated"


async def test_removed_override_leaves_the_shared_exercise(coach: CoachClient, goblet: Json, path: str) -> None:
    (await coach.put(f"{path}/override", OVERRIDE)).ok()
    (await coach.send("POST", f"{path}/media", data=form(picture(), "file"))).ok(201)
    assert await stored(coach) == (2, 0)

    removed = (await coach.delete(f"{path}/override")).ok()

    assert removed | {"version": goblet["version"], "updatedAt": goblet["updatedAt"]} == goblet
    assert await stored(coach) == (0, 0), "its files are deleted"
    assert (await coach.get(path)).ok() == removed
    assert (await coach.delete(f"{path}/override")).ok()["name"] == goblet["name"], "repeating it is harmless"


async def test_override_of_an_untouched_exercise_can_be_removed(coach: CoachClient, goblet: Json, path: str) -> None:
    assert (await coach.delete(f"{path}/override")).ok() == goblet


async def test_media_and_override_keep_each_other(coach: CoachClient, path: str) -> None:
    entry = (await coach.send("POST", f"{path}/media", data=form(picture(), "file"))).ok(201)
    changed = (await coach.put(f"{path}/override", OVERRIDE)).ok()
    assert [each["_id"] for each in changed["media"]] == [entry["_id"]]
    (await coach.delete(f"{path}/media/{entry['_id']}")).ok(204)
    assert (await coach.get(path)).ok()["videoLink"] == OVERRIDE["videoLink"]


async def test_outdated_version_is_refused(coach: CoachClient, goblet: Json, path: str) -> None:
    first = (await coach.put(f"{path}/override", OVERRIDE | {"version": goblet["version"]})).ok()
    (await coach.put(f"{path}/override", OVERRIDE | {"version": goblet["version"]})).refused(409)
    (await coach.delete(f"{path}/override")).ok()
    (await coach.put(f"{path}/override", OVERRIDE | {"version": first["version"]})).refused(409)
    now = (await coach.get(path)).ok()["version"]
    (await coach.put(f"{path}/override", OVERRIDE | {"version": now})).ok()


async def test_concurrent_overrides_and_uploads_are_all_applied(coach: CoachClient, path: str) -> None:
    replies = await asyncio.gather(
        *(coach.send("POST", f"{path}/media", data=form(picture(), "file")) for _ in range(4)),
        coach.put(f"{path}/override", OVERRIDE),
    )
    assert sorted(reply.status for reply in replies) == [200, 201, 201, 201, 201]
    after = (await coach.get(path)).ok()
    assert (len(after["media"]), after["videoLink"]) == (4, OVERRIDE["videoLink"])


async def test_own_exercise_has_no_override(coach: CoachClient) -> None:
    own = await coach.create_exercise()
    for reply in (
        await coach.put(f"/exercises/{own['_id']}/override", OVERRIDE),
        await coach.delete(f"/exercises/{own['_id']}/override"),
    ):
        assert reply.refused(409, "shared")["code"] == "OWN_EXERCISE"
    (await coach.put(f"/exercises/{UNKNOWN}/override", OVERRIDE)).refused(404, "Exercise")
    (await coach.delete(f"/exercises/{UNKNOWN}/override")).refused(404, "Exercise")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"videoLink": "javascript:alert(1)"}, "videoLink"),
        ({"aliases": ["ok", ""]}, "aliases.1"),
        ({"aliases": {"$ne": 1}}, "aliases"),
        ({"defaultInstructions": 5}, "defaultInstructions"),
        ({"defaultInstructions": " "}, "defaultInstructions"),
    ],
)
async def test_invalid_override_is_rejected(coach: CoachClient, path: str, body: Json, field: str) -> None:
    error = (await coach.put(f"{path}/override", body)).refused(400)
    assert error["message"][0].startswith(field)


async def test_publishing_the_library_again_keeps_overrides(
    coach: CoachClient, services: Services, goblet: Json, path: str
) -> None:
    (await coach.put(f"{path}/override", OVERRIDE)).ok()
    await services.db["exercises"].update_one(
        {"companyId": None, "name": goblet["name"]}, {"$set": {"digest": "older"}}
    )
    assert await shared_library.publish_shared(services) == 1
    after = (await coach.get(path)).ok()
    assert after["videoLink"] == OVERRIDE["videoLink"]
    (await coach.delete(f"{path}/override")).ok()
