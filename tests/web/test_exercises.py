"""Exercise pages: the company's own exercises, and its pictures, videos and texts of shared ones."""

from __future__ import annotations

import re
from typing import Any

import pytest

from coaching_service.web import formatting
from tests.core.test_uploads import fetch, stored
from tests.support.client import CoachClient
from tests.support.media_files import animation, mp4, picture, track, webm
from tests.support.visitor import Visitor
from tests.web.conftest import Colleague


def page_of(exercise: dict[str, Any]) -> str:
    return f"/app/exercises/{exercise['_id']}"


async def create_own(coach: CoachClient, **details: Any) -> dict[str, Any]:
    first, second, *_ = (await coach.get("/muscle-groups")).ok()
    muscles = [{"_id": first["_id"], "role": "primary"}, {"_id": second["_id"], "role": "secondary"}]
    given = {"muscleGroups": muscles, "aliases": ["Sled, heavy"], "tags": ["outdoors"], "level": "expert"}
    more = {"videoLink": "https://example.com/sled", "media": [{"type": "image", "url": "https://example.com/a.jpg"}]}
    created: dict[str, Any] = await coach.create_exercise("Sled push", **given, **more, **details)
    return created


async def test_unchanged_exercise_fields_are_kept(coach: CoachClient, owner_page: Visitor) -> None:
    sled = await create_own(coach)
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
    sled = await create_own(coach)
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
    sled = await create_own(coach)
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
    assert {form.action for form in page.forms} == {"/app/search", "/app/sign-out"}
    sled = await create_own(coach)
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
    [delete] = [form.action for form in created.forms if form.action.endswith("/delete")]
    gone = await owner_page.submit(created, delete)
    gone.says("Exercise deleted.")
    with_file = await owner_page.submit(page, "/app/exercises/new", name="Barn Squat", file=("a.jpg", picture()))
    with_file.ok().says("Barn Squat added to your library.")
    assert len(re.findall(r'<img src="/files/', with_file.html)) == 1
    listed = (await owner_page.get("/app/exercises?type=my")).ok().says("Barn Squat")
    assert len(re.findall(r'<img src="/files/', listed.html)) == 1
    wrong = await owner_page.submit(page, "/app/exercises/new", name="Shed Squat", file=("a.pdf", b"%PDF-1.7"))
    wrong.ok(400)
    assert wrong.form("/app/exercises/new").controls["name"]["value"] == "Shed Squat"
    (await owner_page.get("/app/exercises?keywords=shed squat")).says("No exercise matches")


@pytest.mark.parametrize(
    ("link", "frame"),
    [
        ("https://www.youtube.com/watch?v=dQw4w9WgXcQ", "https://www.youtube-nocookie.com/embed/dQw4w9WgXcQ?start=0"),
        (
            "https://m.youtube.com/watch?list=a&v=dQw4w9WgXcQ&t=90",
            "https://www.youtube-nocookie.com/embed/dQw4w9WgXcQ?start=90",
        ),
        ("https://youtu.be/dQw4w9WgXcQ?t=1m30s", "https://www.youtube-nocookie.com/embed/dQw4w9WgXcQ?start=90"),
        ("http://youtube.com/shorts/dQw4w9WgXcQ", "https://www.youtube-nocookie.com/embed/dQw4w9WgXcQ?start=0"),
        ("https://vimeo.com/76979871", "https://player.vimeo.com/video/76979871#t=0s"),
        ("https://vimeo.com/76979871/abcdef1234#t=10s", "https://player.vimeo.com/video/76979871?h=abcdef1234#t=10s"),
        (
            "https://player.vimeo.com/video/76979871?h=abcdef1234",
            "https://player.vimeo.com/video/76979871?h=abcdef1234#t=0s",
        ),
        ("https://vimeo.com/channels/staffpicks/76979871", "https://player.vimeo.com/video/76979871#t=0s"),
        ("https://youtube.com.example.com/watch?v=dQw4w9WgXcQ", None),
        ("https://example.com/?u=https://youtu.be/dQw4w9WgXcQ", None),
        ("https://www.youtube.com/watch?v=dQw4w9WgXcQ1", None),
        ("https://www.youtube.com/@channel", None),
        ("https://vimeo.com/1", None),
    ],
)
def test_links_to_videos_are_embedded(link: str, frame: str | None) -> None:
    video = formatting.embedded_video(link)
    address = re.sub(r"(autoplay|rel|dnt)=\d&?", "", video["address"]).replace("?#", "#") if video else None
    assert address == frame


@pytest.fixture
async def shared(coach: CoachClient) -> Any:
    page = (await coach.get("/exercises/unified", pageSize=1, pageNum=1, keywords="goblet squat", type="public")).ok()
    return page["docs"][0]


@pytest.fixture
async def own(coach: CoachClient) -> Any:
    return await coach.create_exercise("Garage squat", media=[{"type": "link", "url": "https://example.com/squat"}])


async def upload(visitor: Visitor, exercise: Any, name: str, content: bytes) -> Any:
    here = f"/app/exercises/{exercise['_id']}"
    return await visitor.submit(await visitor.get(here), f"{here}/media", file=(name, content))


@pytest.mark.parametrize("kind", ["own", "shared"])
async def test_pictures_and_videos_are_added_shown_and_deleted(
    coach: CoachClient, owner_page: Visitor, own: Any, shared: Any, kind: str
) -> None:
    exercise = own if kind == "own" else shared
    for name, content in (
        ("a.jpg", picture()), ("b.gif", animation("GIF")), ("c.mp4", mp4()), ("d.webm", webm())
    ):  # fmt: skip
        page = (await upload(owner_page, exercise, name, content)).ok().says("File added.")
    sources = re.findall(r'<(img|video) src="(/files/[^"]+)"', page.html)
    assert [tag for tag, _ in sources] == ["img", "img", "video", "video"]
    kinds = [(await fetch(coach, url.replace("&amp;", "&"))).headers["Content-Type"] for _, url in sources]
    assert kinds == ["image/jpeg", "image/gif", "video/mp4", "video/webm"]

    deletes = [form.action for form in page.forms if form.action.endswith("/delete") and "/media/" in form.action]
    for action in deletes:
        page = (await owner_page.submit(page, action)).ok().says("Deleted.")
    assert await stored(coach) == (0, 0)
    page.says("None yet.")


async def test_file_that_is_not_accepted_is_reported_at_its_field(
    coach: CoachClient, owner_page: Visitor, own: Any
) -> None:
    for name, content, sentence in (
        ("a.mp4", b"text", "This must be an MP4, MOV or WebM video, or a JPEG, PNG, WebP, HEIC or GIF picture."),
        ("a.mp4", mp4()[:-1], "This is incomplete or damaged"),
        ("a.mp4", mp4(track(), track(b"meta")), "This must contain only picture and sound"),
        ("", b"", "This must be chosen."),
    ):
        rejected = (await upload(owner_page, own, name, content)).ok(400).says(sentence)
        form = rejected.form(f"/app/exercises/{own['_id']}/media")
        assert form.controls["file"]["aria-invalid"] == "true"
    assert await stored(coach) == (0, 0)


async def test_shared_exercise_is_customized(coach: CoachClient, owner_page: Visitor, shared: Any) -> None:
    here = f"/app/exercises/{shared['_id']}"
    seen = (await owner_page.get(here)).ok().says("In Spanish: Sentadilla goblet", "Movement")
    assert f"{here}/override" in seen.links
    page = (await owner_page.get(f"{here}/override")).ok().says("Customize Goblet Squat", "As clients see it now")

    rejected = await owner_page.submit(page, f"{here}/override", videoLink="javascript:alert(1)", aliases="Cup squat")
    rejected.ok(400)
    saved = await owner_page.submit(
        rejected, f"{here}/override", videoLink="https://example.com/v", defaultInstructions="Heels up."
    )

    saved.ok().says("Changes saved.", "Cup squat", "Heels up.", "https://example.com/v")
    page = (await owner_page.get(f"{here}/override")).ok()
    assert page.form(f"{here}/override").controls["videoLink"]["value"] == "https://example.com/v"
    (await coach.put(f"/exercises/{shared['_id']}/override", {"defaultInstructions": "Other"})).ok()
    (await owner_page.submit(page, f"{here}/override", defaultInstructions="Mine")).ok(409).says("Saved value: Other")

    page = (await owner_page.get(f"{here}/override")).ok()
    removed = (await owner_page.submit(page, f"{here}/override/delete")).ok().says("Your changes are removed.")
    assert "Heels up." not in removed.text
    after = (await coach.get(f"/exercises/{shared['_id']}")).ok()
    assert (after["videoLink"], after["aliases"]) == (shared["videoLink"], shared["aliases"])


async def test_own_exercise_is_edited_instead(owner_page: Visitor, own: Any) -> None:
    page = (await owner_page.get(f"/app/exercises/{own['_id']}/override")).ok().says("This is your own exercise")
    assert f"/app/exercises/{own['_id']}/edit" in page.links


async def test_colleague_without_permission_sees_no_forms(
    coach: CoachClient, colleague: Colleague, own: Any, shared: Any
) -> None:
    reader = await colleague("exercises.view")
    for exercise in (own, shared):
        page = (await reader.get(f"/app/exercises/{exercise['_id']}")).ok()
        assert [form.action for form in page.forms] == ["/app/sign-out"]
        assert not [link for link in page.links if link.endswith(("/override", "/edit"))]
