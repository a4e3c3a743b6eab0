"""Copying, adjusting, replacing and clearing days on the calendar of a client, with previews and undo."""

from __future__ import annotations

from typing import Any

from tests.support import training
from tests.support.client import MONDAY, CoachClient
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import Colleague

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

    assert shown.path.startswith(f"{path_of(ana, 'copy')}/preview?"), "a page, to which Back returns"
    assert "csrf" not in shown.path
    assert "submission" not in shown.path
    assert (await owner_page.get(shown.path)).says("Preview: 2 workouts copied").form(path_of(ana, "copy"))
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
    nothing.ok(400).says("enter a change of load, of reps or of sets")
    (await preview(owner_page, nothing, ana, "adjust")).ok(400).says("enter a change of load, of reps or of sets")

    shown = await preview(owner_page, page, ana, "adjust", loadChange="-10", loadChangeIn="percent")
    shown.ok().says("Preview: 1 exercise changed", "55 kg")
    (await owner_page.submit(shown, path_of(ana, "adjust"))).ok().says("1 exercise changed: Squat 60 → 55 kg (3 sets).")

    (block,) = await blocks_of(coach, ana, MONDAY, MONDAY)
    assert loads_of(block)[0] == 55, "54 kg, rounded to 2.5 kg"


async def test_exercise_is_replaced_by_name(coach: CoachClient, owner_page: Visitor) -> None:
    ana, squat = await week_with_squats(coach)
    step = await coach.create_exercise("Cossack step")
    page = await owner_page.get(page_path(ana))
    chosen = {"exerciseId": squat["_id"]}

    unknown = await owner_page.submit(page, path_of(ana, "replace-exercise"), **chosen, withExercise="Zzyzx")
    unknown.ok(400).says("“Zzyzx” is not an exercise of yours: choose one from the list")
    shown = await preview(owner_page, page, ana, "replace-exercise", **chosen, withExercise="cossack step")
    shown.ok().says(
        "Preview: Squat → Cossack step in 1 place", "Planned loads are removed: the movement or the equipment"
    )
    shown.says("3 × 8–10 × 60 kg → 3 × 8–10")
    page = await owner_page.get(page_path(ana))
    kept = await preview(owner_page, page, ana, "replace-exercise", **chosen, withExercise="cossack step", load="90")
    kept.ok().says("Planned loads become 90 % of what they were", "3 × 8–10 × 60 kg → 3 × 8–10 × 55 kg")
    (await owner_page.submit(shown, path_of(ana, "replace-exercise"))).ok().says("Squat → Cossack step in 1 place.")

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


async def test_rounding_is_shown_and_chosen(coach: CoachClient, owner_page: Visitor) -> None:
    ana, _ = await week_with_squats(coach)
    page = await owner_page.get(page_path(ana))
    assert page.form(path_of(ana, "adjust")).controls["rounding"]["value"] == "2.5"
    page.says("A smaller change is applied exactly.")

    shown = await preview(owner_page, page, ana, "adjust", loadChange="2")
    shown.ok().says("Squat 60 → 62 kg (3 sets)")
    shown = await preview(owner_page, shown, ana, "adjust", loadChange="7")
    shown.ok().says("Squat 60 → 67.5 kg")
    shown = await preview(owner_page, shown, ana, "adjust", loadChange="7", rounding="")
    shown.ok().says("Squat 60 → 67 kg")
    (await owner_page.submit(shown, path_of(ana, "adjust"), rounding="4")).ok().says("Squat 60 → 68")
    (block,) = await blocks_of(coach, ana, MONDAY, MONDAY)
    assert loads_of(block)[0] == 68


async def test_numbers_of_sets_are_changed(coach: CoachClient, owner_page: Visitor) -> None:
    ana, _ = await week_with_squats(coach)
    page = await owner_page.get(page_path(ana))
    shown = await preview(owner_page, page, ana, "adjust", setsChange="-33", setsChangeIn="percent")
    shown.ok().says("Preview: 1 exercise changed", "Sets:", "Squat 3 → 2 sets")
    (await owner_page.submit(shown, path_of(ana, "adjust"))).ok().says("1 exercise changed: Squat 3 → 2 sets.")
    page = await owner_page.get(page_path(ana))
    shown = await preview(owner_page, page, ana, "copy", setsChange="1", repeat="2")
    shown.ok().says("Squat 2 → 3 sets, 2 → 4 sets")
    (block,) = await blocks_of(coach, ana, MONDAY, MONDAY)
    assert loads_of(block) == [60, 60]


async def test_assisted_exercises_are_marked(coach: CoachClient, owner_page: Visitor) -> None:
    ana, squat = await week_with_squats(coach)
    (await coach.patch(f"/exercises/{squat['_id']}", {"loadType": "assistance"})).ok()
    page = await owner_page.get(page_path(ana))
    shown = await preview(owner_page, page, ana, "adjust", loadChange="-5")
    shown.ok().says("Squat 60 → 55 kg assistance (3 sets, harder)")
    shown = await preview(owner_page, shown, ana, "adjust", loadChange="5")
    shown.ok().says("Squat 60 → 65 kg assistance (3 sets, easier)")


async def test_days_with_workouts_are_marked_and_stay_as_they_are(coach: CoachClient, owner_page: Visitor) -> None:
    ana, squat = await week_with_squats(coach)
    await training.block_with(coach, ana, training.exercise_of(squat), date=WEEK_AFTER, name="Swim")
    page = await owner_page.get(page_path(ana))
    assert dict(page.form(path_of(ana, "copy")).fields)["onConflict"] == "skip"

    shown = await preview(owner_page, page, ana, "copy", repeat="2")
    shown.ok().says(
        "Preview: 1 workout copied, 1 day left as it is",
        "These days have workouts and stay as they are:",
        "Mon 9 Mar 2026: Swim",
    )
    added = await preview(owner_page, shown, ana, "copy", repeat="2", onConflict="add")
    added.ok().says("Preview: 2 workouts copied", "The new ones are added after them:", "Mon 9 Mar 2026: Swim")
    calendar = await owner_page.get(page_path(ana))
    copied = await owner_page.submit(calendar, path_of(ana, "copy"), onConflict=None)  # as the form without a choice
    copied.ok().says("0 workouts copied, 1 day left as it is.")
    assert [block["name"] for block in await blocks_of(coach, ana, WEEK_AFTER, "2026-03-31")] == ["Swim"]


async def test_assigned_program_leaves_days_as_they_are(coach: CoachClient, owner_page: Visitor) -> None:
    ana, _ = await week_with_squats(coach)
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    for day in (1, 3):
        block = {"name": f"Day {day}", "day": day}
        (await coach.post(f"/coach/programs/{program['_id']}/wblocks", block)).ok(201)
    here = f"/app/programs/{program['_id']}"
    chosen = {"customerId": ana["_id"], "startDate": MONDAY}
    page = await owner_page.get(here)
    form = page.form(f"{here}/assign")
    assert dict(form.fields)["onConflict"] == "skip"

    form.action = f"{here}/assign/preview"
    shown = await owner_page.submit(page, f"{here}/assign/preview", **chosen)
    shown.ok().says("Preview: 1 workout scheduled, 1 day left as it is", "Mon 2 Mar 2026: Legs")
    assert len(await blocks_of(coach, ana, MONDAY, "2026-03-31")) == 1
    done = await owner_page.submit(shown, f"{here}/assign", **chosen, onConflict=None)
    done.ok().says("1 workout scheduled, 1 day left as it is.")
    assert [block["name"] for block in await blocks_of(coach, ana, MONDAY, "2026-03-31")] == ["Legs", "Day 3"]


async def test_bulk_assignment_shows_who_has_workouts(coach: CoachClient, owner_page: Visitor) -> None:
    ana, _ = await week_with_squats(coach)
    bea = await coach.create_customer("Bea")
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "Run", "day": 1})).ok(201)
    bulk = "/app/customers/bulk"
    page = await owner_page.get(f"{bulk}?action=assign-program&ids={ana['_id']}&ids={bea['_id']}")
    form = page.form(bulk)
    assert dict(form.fields)["onConflict"] == "skip"
    chosen = {"programId": program["_id"], "startDate": MONDAY}

    form.action = form.action.replace(bulk, f"{bulk}/preview")
    shown = await owner_page.submit(page, f"{bulk}/preview", **chosen)
    shown.ok().says("1 client has workouts on days of the program.", "stay as they are", "Mon 2 Mar 2026: Legs")
    assert await blocks_of(coach, bea, MONDAY, MONDAY) == []
    (await owner_page.submit(shown, bulk, **chosen, onConflict=None)).ok().says("2 clients changed")
    names = [[block["name"] for block in await blocks_of(coach, each, MONDAY, MONDAY)] for each in (ana, bea)]
    assert names == [["Legs"], ["Run"]]


async def test_a_preview_is_only_for_who_may_change_the_calendar(
    coach: CoachClient, owner_page: Visitor, colleague: Colleague
) -> None:
    ana, _ = await week_with_squats(coach)
    shown = await preview(owner_page, await owner_page.get(page_path(ana)), ana, "clear")
    (await (await colleague("customers.view")).get(shown.path)).ok(403)
    bo = await coach.create_customer("Bo")
    path = path_of(ana, "copy") + "/preview"
    (await owner_page.get(path.replace(ana["_id"], "0" * 24))).ok(404)
    assert (await owner_page.get(f"{path_of(bo, 'copy')}/preview")).status == 400, "without values"


async def test_days_of_a_program_are_previewed_on_a_page(coach: CoachClient, owner_page: Visitor) -> None:
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "One", "day": 1})).ok(201)
    path = f"/app/programs/{program['_id']}"
    page = await owner_page.get(path)
    form = page.form(f"{path}/copy-days")
    form.action += "/preview"
    shown = (await owner_page.submit(page, f"{path}/copy-days/preview", repeat="2")).ok()
    shown.says("Preview: 2 workouts copied")
    assert shown.path.startswith(f"{path}/copy-days/preview?startDay=1&")

    (await coach.post(f"{path.replace('/app', '/coach')}/wblocks", {"name": "Two", "day": 8})).ok(201)
    chosen = {"startDay": "1", "endDay": "7", "targetDay": "8", "onConflict": None}
    copied = await owner_page.submit(await owner_page.get(path), f"{path}/copy-days", **chosen)
    copied.ok().says("0 workouts copied, 1 day left as it is.")
