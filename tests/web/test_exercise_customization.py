"""The pages for pictures and videos of exercises, and for a company's own texts of shared ones."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.core.test_uploads import fetch, stored
from tests.support.client import CoachClient
from tests.support.media_files import animation, mp4, picture, track, webm
from tests.support.visitor import Visitor
from tests.web.conftest import Colleague


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
