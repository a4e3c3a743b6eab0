"""Copying, adjusting, replacing and clearing days on the calendar of a client, with previews and undo."""

from __future__ import annotations

from typing import Any

from tests.support import training
from tests.support.client import MONDAY, CoachClient
from tests.support.visitor import HtmlPage, Visitor

Json = dict[str, Any]
WEEK_AFTER = "2026-03-09"


async def week_with_squats(coach: CoachClient) -> tuple[Json, Json]:
    """Return a client with a workout on Monday, 3 x 8-10 at 60 kg, and the exercise."""
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    await training.block_with(coach, ana, training.exercise_of(squat))
    return ana, squat


async def blocks_of(coach: CoachClient, customer: Json, start: str, end: str) -> list[Json]:
    listed = await coach.get(f"/coach/customers/{customer['_id']}/wblock", startDate=start, endDate=end)
    blocks: list[Json] = listed.ok()
    return blocks


def loads_of(block: Json) -> list[float]:
    return [each["load"] for item in block["items"] for each in item["exerciseSets"]]


def page_path(customer: Json, week: str = MONDAY) -> str:
    return f"/app/customers/{customer['_id']}?week={week}"


def path_of(customer: Json, operation: str) -> str:
    return f"/app/customers/{customer['_id']}/schedule/{operation}"


async def preview(visitor: Visitor, page: HtmlPage, customer: Json, operation: str, **typed: Any) -> HtmlPage:
    form = page.form(path_of(customer, operation))
    form.action = form.action.replace(f"/{operation}", f"/{operation}/preview")
    return await visitor.submit(page, path_of(customer, f"{operation}/preview"), **typed)


async def test_week_is_copied_with_progression_and_undone(coach: CoachClient, owner_page: Visitor) -> None:
    ana, _ = await week_with_squats(coach)
    page = await owner_page.get(page_path(ana))

    shown = await preview(owner_page, page, ana, "copy", loadChange="+2,5", repeat="2")

    shown.ok().says("Preview: 2 workouts copied", "Mon 9 Mar 2026", "Mon 16 Mar 2026", "62.5 kg", "65 kg")
    assert await blocks_of(coach, ana, WEEK_AFTER, "2026-03-31") == [], "a preview changes nothing"
    assert shown.form(path_of(ana, "copy")).controls["loadChange"]["value"] == "+2,5", "the typed value stays"

    copied = await owner_page.submit(shown, path_of(ana, "copy"))

    copied.ok().says("2 workouts copied.", "Undo")
    assert copied.path == page_path(ana, WEEK_AFTER)
    (first, second) = await blocks_of(coach, ana, WEEK_AFTER, "2026-03-31")
    assert (loads_of(first)[0], loads_of(second)[0]) == (62.5, 65)

    undo = next(form.action for form in copied.forms if form.action.endswith("/undo"))
    (await owner_page.submit(copied, undo)).ok()
    assert await blocks_of(coach, ana, WEEK_AFTER, "2026-03-31") == []


async def test_week_is_adjusted(coach: CoachClient, owner_page: Visitor) -> None:
    ana, _ = await week_with_squats(coach)
    page = await owner_page.get(page_path(ana))
    nothing = await owner_page.submit(page, path_of(ana, "adjust"))
    nothing.ok(400).says("enter a change of load or of reps")

    shown = await preview(owner_page, page, ana, "adjust", loadChange="-10", loadChangeIn="percent")
    shown.ok().says("Preview: 1 exercise changed", "55 kg")
    (await owner_page.submit(shown, path_of(ana, "adjust"))).ok().says("1 exercise changed.")

    (block,) = await blocks_of(coach, ana, MONDAY, MONDAY)
    assert loads_of(block)[0] == 55, "54 kg, rounded to 2.5 kg"


async def test_exercise_is_replaced_by_name(coach: CoachClient, owner_page: Visitor) -> None:
    ana, squat = await week_with_squats(coach)
    step = await coach.create_exercise("Cossack step")
    page = await owner_page.get(page_path(ana))
    chosen = {"exerciseId": squat["_id"]}

    unknown = await owner_page.submit(page, path_of(ana, "replace-exercise"), **chosen, withExercise="Zzyzx")
    unknown.ok(400).says("This is not an exercise of yours")
    shown = await preview(owner_page, page, ana, "replace-exercise", **chosen, withExercise="cossack step")
    shown.ok().says("Preview: Replaced by Cossack step in 1 place")
    (await owner_page.submit(shown, path_of(ana, "replace-exercise"))).ok().says("in 1 place.")

    (block,) = await blocks_of(coach, ana, MONDAY, MONDAY)
    assert [item["exerciseId"] for item in block["items"]] == [step["_id"]]


async def test_clearing_keeps_what_was_done(coach: CoachClient, owner_page: Visitor) -> None:
    ana, squat = await week_with_squats(coach)
    block = await training.block_with(coach, ana, training.exercise_of(squat))
    (await training.log(coach, block, block["items"][0])).ok()
    page = await owner_page.get(page_path(ana))

    shown = await preview(owner_page, page, ana, "clear")
    shown.ok().says("Preview: 1 workout removed, 1 kept because it was done")
    assert len(await blocks_of(coach, ana, MONDAY, MONDAY)) == 2
    (await owner_page.submit(shown, path_of(ana, "clear"))).ok().says("1 workout removed, 1 kept")
    (left,) = await blocks_of(coach, ana, MONDAY, MONDAY)
    assert left["_id"] == block["_id"]


async def test_wrong_days_are_marked(coach: CoachClient, owner_page: Visitor) -> None:
    ana, _ = await week_with_squats(coach)
    page = await owner_page.get(page_path(ana))
    wrong = await owner_page.submit(page, path_of(ana, "copy"), endDate="2026-03-01", loadChange="much")
    form = wrong.ok(400).form(path_of(ana, "copy"))
    invalid = {name for name, control in form.controls.items() if control.get("aria-invalid")}
    assert "loadChange" in invalid
    assert await blocks_of(coach, ana, WEEK_AFTER, "2026-03-31") == []
