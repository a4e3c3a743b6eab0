"""Exercise pages: creating, changing and deleting the company's own exercises."""

from __future__ import annotations

from typing import Any

from tests.support.client import CoachClient
from tests.support.visitor import Visitor
from tests.web.conftest import Colleague


def page_of(exercise: dict[str, Any]) -> str:
    return f"/app/exercises/{exercise['_id']}"


async def own(coach: CoachClient, **details: Any) -> dict[str, Any]:
    first, second, *_ = (await coach.get("/muscle-groups")).ok()
    muscles = [{"_id": first["_id"], "role": "primary"}, {"_id": second["_id"], "role": "secondary"}]
    given = {"muscleGroups": muscles, "aliases": ["Sled, heavy"], "tags": ["outdoors"], "level": "expert"}
    more = {"videoLink": "https://example.com/sled", "media": [{"type": "image", "url": "https://example.com/a.jpg"}]}
    created: dict[str, Any] = await coach.create_exercise("Sled push", **given, **more, **details)
    return created


async def test_unchanged_exercise_fields_are_kept(coach: CoachClient, owner_page: Visitor) -> None:
    sled = await own(coach)
    seen = await owner_page.get(page_of(sled))
    change = next(link for link in seen.links if link.endswith("/edit"))
    page = (await owner_page.get(change)).ok().says("Edit Sled push", "Secondary muscles")

    saved = await owner_page.submit(page, change, name="Sled drag", equipment="Sled", defaultInstructions="Low\r\nslow")

    saved.ok().says("Changes saved.", "Sled drag", "Expert", "Also: Sled, heavy", "Low slow", "(secondary)")
    after = (await coach.get(f"/exercises/{sled['_id']}")).ok()
    for name in ("muscleGroups", "aliases", "tags", "level", "type", "videoLink", "media", "image"):
        assert after[name] == sled[name], name
    assert (after["name"], after["equipment"], after["defaultInstructions"]) == ("Sled drag", "Sled", "Low\nslow")


async def test_load_of_an_own_exercise_is_marked_as_assistance(coach: CoachClient, owner_page: Visitor) -> None:
    dip = await coach.create_exercise("Assisted dip")
    page = await owner_page.get(f"{page_of(dip)}/edit")
    saved = await owner_page.submit(page, f"{page_of(dip)}/edit", loadType="assistance")
    saved.ok().says("Changes saved.", "the load is assistance")
    assert (await coach.get(f"/exercises/{dip['_id']}")).ok()["loadType"] == "assistance"
    (await owner_page.submit(await owner_page.get(f"{page_of(dip)}/edit"), f"{page_of(dip)}/edit", name="Dip")).ok()
    assert (await coach.get(f"/exercises/{dip['_id']}")).ok()["loadType"] == "assistance", "an unchanged choice stays"


async def test_exercise_errors_are_shown_at_their_fields(coach: CoachClient, owner_page: Visitor) -> None:
    sled = await own(coach)
    here = f"{page_of(sled)}/edit"
    page = await owner_page.get(here)
    primary = sled["muscleGroups"][0]["_id"]

    wrong = await owner_page.submit(page, here, secondaryMuscles=primary, videoLink="")
    wrong.ok(400).says("This must not contain a primary muscle.")
    (await owner_page.submit(page, here, name=" ")).ok(400).says("This should not be empty.")
    (await owner_page.submit(wrong, here, secondaryMuscles=None)).ok().says("Changes saved.")
    after = (await coach.get(f"/exercises/{sled['_id']}")).ok()
    assert after["videoLink"] is None
    assert [(muscle["_id"], muscle["role"]) for muscle in after["muscleGroups"]] == [(primary, "primary")]


async def test_conflicting_exercise_change_shows_the_saved_value(coach: CoachClient, owner_page: Visitor) -> None:
    sled = await own(coach)
    here = f"{page_of(sled)}/edit"
    page = await owner_page.get(here)
    (await coach.patch(f"/exercises/{sled['_id']}", {"equipment": "Rope", "muscleGroups": []})).ok()

    rejected = await owner_page.submit(page, here, equipment="Sled")

    rejected.ok(409).says("This has been changed since you opened the page", "Saved value: Rope", "Saved value: none")
    (await owner_page.submit(rejected, here)).ok().says("Changes saved.")
    assert (await coach.get(f"/exercises/{sled['_id']}")).ok()["equipment"] == "Sled"


async def test_only_own_exercises_can_be_edited_with_permission(
    coach: CoachClient, owner_page: Visitor, colleague: Colleague
) -> None:
    (shared,) = (await coach.get("/exercises/unified", pageSize=1, pageNum=1, type="public")).ok()["docs"]
    assert f"{page_of(shared)}/edit" not in (await owner_page.get(page_of(shared))).ok().links
    page = (await owner_page.get(f"{page_of(shared)}/edit")).ok().says("cannot be changed")
    assert [form.action for form in page.forms] == ["/app/sign-out"]
    sled = await own(coach)
    reader = await colleague("exercises.view")
    assert f"{page_of(sled)}/edit" not in (await reader.get(page_of(sled))).ok().links


async def test_exercises_are_searched_and_created(owner_page: Visitor) -> None:
    (await owner_page.get("/app/exercises?keywords=nordic")).ok().says("Nordic")
    (await owner_page.get("/app/exercises?keywords=zzz")).says("No exercise matches")
    (await owner_page.get("/app/exercises?type=my")).says("No exercise matches")
    page = await owner_page.get("/app/exercises/new")
    muscle = page.html.partition('name="primaryMuscles" value="')[2].partition('"')[0]

    created = await owner_page.submit(
        page, "/app/exercises/new", name="Garage Squat", primaryMuscles=[muscle], level="expert"
    )

    created.ok().says("Garage Squat added to your library.", "Expert")
    gone = await owner_page.submit(created, created.forms[-1].action)
    gone.says("Exercise deleted.")
