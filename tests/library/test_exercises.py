"""The exercise library: shared exercises and a company's own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import UNKNOWN, CoachClient


async def names(coach: CoachClient, path: str = "/exercises/unified", **query: Any) -> list[str]:
    page = (await coach.get(path, **{"pageSize": 50, "pageNum": 1, **query})).ok()
    return [exercise["name"] for exercise in page["docs"]]


async def test_unified_list_has_shared_and_own_exercises(coach: CoachClient, other_company: CoachClient) -> None:
    own = await coach.create_exercise("0 Garage Squat")
    await other_company.create_exercise("0 Other")

    unified = (await coach.get("/exercises/unified", pageSize=2, pageNum=1)).ok()

    assert unified["docs"][0] == own
    assert unified["docs"][1]["companyId"] is None
    assert own["companyId"] == str(coach.ctx.company_id)
    assert await names(coach, "/exercises") == ["0 Garage Squat"]
    assert await names(coach, type="my") == ["0 Garage Squat"]
    assert "0 Garage Squat" not in await names(coach, type="public")
    assert "0 Other" not in await names(coach)


async def test_matches_are_ordered_by_where_the_keywords_occur(coach: CoachClient) -> None:
    """Contract 6: exact name, words of the name, words of aliases, anything else."""
    await coach.create_exercise("Deep zqsquat")
    await coach.create_exercise("Zqsquat")
    await coach.create_exercise("Pistol", aliases=["One-legged zqsquat"])
    await coach.create_exercise("Thing", tags=["zqsquat"])
    await coach.create_exercise("Another")

    assert await names(coach, keywords="ZQsquát") == ["Zqsquat", "Deep zqsquat", "Pistol", "Thing"]
    page = (await coach.get("/exercises/unified", pageSize=3, pageNum=2, keywords="zqsquat")).ok()
    assert ([e["name"] for e in page["docs"]], page["totalDocs"]) == (["Thing"], 4)


async def test_every_keyword_must_occur_in_name_alias_tag_muscle_or_equipment(coach: CoachClient) -> None:
    muscles = {group["name"]: group["_id"] for group in (await coach.get("/muscle-groups")).ok()}
    await coach.create_exercise(
        "Zercher", tags=["hinge"], equipment="Wooden log", muscleGroups=[{"_id": muscles["Glutes"]}]
    )
    for keywords in ("zerch", "zer glut", "log zercher hin", "wooden glutes hinge zercher", "ZERCHER  LOG"):
        assert await names(coach, "/exercises", keywords=keywords) == ["Zercher"], keywords
    for keywords in ("zercher chest", "zercherrr", "$", ".*", "\x00", "zer\\"):
        assert await names(coach, "/exercises", keywords=keywords) == [], keywords


async def test_list_is_filtered_by_type_and_library(coach: CoachClient) -> None:
    await coach.create_exercise("0 Jog", type="cardio")
    libraries = (await coach.get("/exercise-libraries")).ok()
    own = next(library for library in libraries if library["companyId"])
    shared = next(library for library in libraries if not library["companyId"])

    assert "0 Jog" in await names(coach, type="cardio")
    assert "0 Jog" not in await names(coach, type="strength")
    assert await names(coach, libraryId=own["_id"]) == ["0 Jog"]
    assert "0 Jog" not in await names(coach, libraryId=shared["_id"])
    assert await names(coach, libraryId=UNKNOWN) == []
    (await coach.get("/exercises/unified", pageSize=1, pageNum=1, libraryId="x")).refused(400, "libraryId")
    (await coach.get("/exercises/unified", pageSize=1, pageNum=1, type="dance")).refused(400, "type")


async def test_exercise_is_created_and_changed(coach: CoachClient) -> None:
    muscles = {group["name"]: group["_id"] for group in (await coach.get("/muscle-groups")).ok()}
    exercise = await coach.create_exercise(
        "Sled Push",
        aliases=["Prowler"],
        type="cardio",
        level="expert",
        defaultInstructions="Lean in.",
        videoLink="https://video.example/1",
        muscleGroups=[{"_id": muscles["Quadriceps"]}, {"_id": muscles["Calves"], "role": "secondary"}],
        media=[{"type": "image", "url": "https://pictures.example/sled.jpg"}],
    )
    assert exercise["muscleGroups"][1] == {"_id": muscles["Calves"], "name": "Calves", "role": "secondary"}
    assert exercise["image"] == exercise["thumbnail"] == "https://pictures.example/sled.jpg"

    path = f"/exercises/{exercise['_id']}"
    changed = (await coach.patch(path, {"name": "Sled March", "level": None, "media": [], "version": 0})).ok()

    assert (changed["name"], changed["level"], changed["image"], changed["version"]) == ("Sled March", None, None, 1)
    assert changed["aliases"] == ["Prowler"]
    assert (await coach.get(path)).ok() == changed
    assert await names(coach, "/exercises", keywords="march prowler") == ["Sled March"]
    (await coach.patch(path, {"name": "x", "version": 0})).refused(409)
    assert (await coach.patch(path, {})).ok() == changed


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": "A", "type": "dance"}, "type"),
        ({"name": "A", "level": "god"}, "level"),
        ({"name": "A", "videoLink": "javascript:alert(1)"}, "videoLink"),
        ({"name": "A", "muscleGroups": [{"_id": "x"}]}, "muscleGroups.0._id"),
        ({"name": "A", "muscleGroups": [{"_id": UNKNOWN, "role": "tertiary"}]}, "muscleGroups.0.role"),
        ({"name": "A", "muscleGroups": [{"_id": UNKNOWN}, {"_id": UNKNOWN, "role": "secondary"}]}, "muscleGroups"),
        ({"name": "A", "media": [{"type": "image", "url": "file:///etc/passwd"}]}, "media.0.url"),
        ({"name": "A", "tags": [""]}, "tags.0"),
    ],
)
async def test_invalid_exercise_is_rejected_with_its_field(
    coach: CoachClient, body: dict[str, Any], field: str
) -> None:
    error = (await coach.post("/exercises", body)).refused(400)
    assert [message for message in error["message"] if message.startswith(field)], error


async def test_only_shared_exercises_have_movement_and_translations(coach: CoachClient) -> None:
    own = await coach.create_exercise()
    names = ("movementPattern", "force", "mechanic", "laterality", "translations")
    assert [own[name] for name in names] == [None] * 5
    page = (await coach.get("/exercises/unified", pageSize=1, pageNum=1, keywords="walking lunge")).ok()
    assert [page["docs"][0][name] for name in names[:4]] == ["lunge", "push", "compound", "alternating"]


async def test_unknown_muscle_group_is_not_found(coach: CoachClient) -> None:
    body = {"name": "A", "muscleGroups": [{"_id": UNKNOWN}]}
    (await coach.post("/exercises", body)).refused(404, "Muscle group")


async def test_shared_exercise_cannot_be_changed(coach: CoachClient) -> None:
    [shared] = (await coach.get("/exercises/unified", pageSize=1, pageNum=1, type="public")).ok()["docs"]
    path = f"/exercises/{shared['_id']}"
    assert (await coach.get(path)).ok() == shared
    (await coach.patch(path, {"name": "Mine"})).refused(403, "Shared")
    (await coach.delete(path)).refused(403, "Shared")


async def test_deleted_exercise_is_not_listed(coach: CoachClient) -> None:
    squat = await coach.create_exercise()
    path = f"/exercises/{squat['_id']}"
    (await coach.delete(path)).ok(204)
    for reply in (await coach.get(path), await coach.patch(path, {"name": "x"}), await coach.delete(path)):
        reply.refused(404, "Exercise")
    assert await names(coach, "/exercises") == []


@pytest.mark.parametrize("media_type", ["image", "video", "gif", "link"])
async def test_media_has_a_source_and_a_thumbnail(coach: CoachClient, media_type: str) -> None:
    media = {
        "type": media_type,
        "url": "https://media.example.com/1",
        "source": "YouTube",
        "thumbnailUrl": "https://media.example.com/1.jpg",
    }
    exercise = await coach.create_exercise("Sled Push", media=[media])
    [stored] = exercise["media"]
    assert {name: stored[name] for name in media} == media
    assert (len(stored["_id"]), stored["key"]) == (24, None)
    assert exercise["thumbnail"] == media["thumbnailUrl"]
    assert exercise["image"] == (media["url"] if media_type == "image" else None)


async def test_thumbnail_of_media_must_be_a_link(coach: CoachClient) -> None:
    media = {"type": "gif", "url": "https://media.example.com/1.gif", "thumbnailUrl": "javascript:alert(1)"}
    error = (await coach.post("/exercises", {"name": "Sled Push", "media": [media]})).refused(400)
    assert error["message"][0].startswith("media.0.thumbnailUrl")
