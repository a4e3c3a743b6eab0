"""Program pages: creating, filling, assigning, changing and deleting programs."""

from __future__ import annotations

from typing import Any

from tests.support import training
from tests.support.client import MONDAY, CoachClient
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import Colleague


async def base(coach: CoachClient, **fields: Any) -> dict[str, Any]:
    created: dict[str, Any] = (await coach.post("/coach/programs", {"name": "Base", **fields})).ok(201)
    return created


async def plan_of(coach: CoachClient, program: dict[str, Any]) -> list[dict[str, Any]]:
    path = f"/coach/programs/{program['_id']}/wblock"
    results: list[dict[str, Any]] = (await coach.get(path, startDay=1, endDay=3_660)).ok()
    return results


async def workout(coach: CoachClient, program: dict[str, Any], day: int, name: str, *items: Any) -> dict[str, Any]:
    path = f"/coach/programs/{program['_id']}/wblocks"
    new = {"name": name, "day": day, "items": list(items)}
    return await training.read(coach, (await coach.post(path, new)).ok(201))


def page_of(program: dict[str, Any], block: dict[str, Any] | None = None) -> str:
    return f"/app/programs/{program['_id']}" + (f"/blocks/{block['_id']}" if block else "")


async def test_archived_program_cannot_be_assigned(coach: CoachClient, owner_page: Visitor) -> None:
    await coach.create_customer("Ana")
    program = await base(coach)
    await workout(coach, program, 1, "One")
    page = (await owner_page.get(page_of(program))).says("Assign to this client")
    archived = (await owner_page.submit(page, f"{page_of(program)}/archive")).says("Base archived.")
    assert "Assign to this client" not in archived.text


async def test_assigning_a_program_again_requires_confirmation(coach: CoachClient, owner_page: Visitor) -> None:
    ana, program = await coach.create_customer("Ana"), await base(coach)
    for day in (1, 3):
        await workout(coach, program, day, f"Day {day}")
    assign = f"{page_of(program)}/assign"
    page = await owner_page.get(page_of(program))
    (await owner_page.submit(page, assign)).ok(400).says("This must be chosen.")
    (await owner_page.submit(page, assign, customerId=ana["_id"], startDate=MONDAY)).says("2 workouts scheduled.")

    again = {"customerId": ana["_id"], "startDate": "2026-03-04", "onConflict": "add"}
    confirmation = await owner_page.submit(page, assign, **again)
    confirmation.ok(409).says("This client already has workouts of this program on some of these days")
    assert len(await coach.calendar(ana)) == 2
    (await owner_page.submit(confirmation, assign, repeat="true")).ok().says("2 workouts scheduled.")
    later = await owner_page.submit(page, assign, customerId=ana["_id"], startDate="2026-03-20")
    later.ok().says("2 workouts scheduled.")


def titles(plan: list[dict[str, Any]]) -> list[list[str]]:
    return [[item["taskFields"]["title"] for item in block["items"]] for block in plan]


async def test_program_is_filled_and_assigned(coach: CoachClient, owner_page: Visitor) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Garage Squat")
    created = await owner_page.submit(await owner_page.get("/app/programs"), "/app/programs", name="Base")
    here = created.says("Base created.", "Add workouts below").path
    assert created.form(f"{here}/blocks").controls["day"]["value"] == "1"

    wrong = await owner_page.submit(created, f"{here}/blocks", name="", day="0")
    wrong.ok(400).says("This must not be less than 1.")
    (await owner_page.submit(created, f"{here}/blocks", name="")).ok(400).says("This should not be empty.")
    legs = (await owner_page.submit(created, f"{here}/blocks", name="Legs")).ok()
    legs.says("Legs added. Add its exercises here.", "Base", "Day 1")
    block = legs.path
    results = await owner_page.get(f"{block}?keywords=garage")
    added = await owner_page.submit(results, f"{block}/items", exerciseId=squat["_id"], sets="4", load="82,5")
    added.ok().says("Garage Squat added.", "4 × 8–10 × 82.5 kg")
    (await owner_page.submit(added, f"{block}/tasks", title="Walk")).ok().says("Walk added.")
    plan = await owner_page.get(here)
    assert plan.form(f"{here}/blocks").controls["day"]["value"] == "2", "the day after the last workout"
    rest = await owner_page.submit(plan, f"{here}/blocks", name="", isRest="true")
    rest.ok().says("Day 2 is a rest day.", "Week 1", "Garage Squat")

    await owner_page.submit(rest, f"{here}/assign", customerId=ana["_id"], startDate=MONDAY)
    first, second = await coach.calendar(ana)
    assert [item["type"] for item in first["items"]] == ["EXERCISE", "TASK"]
    assert (second["name"], second["isRest"]) == ("Rest", True)


async def test_items_are_moved_and_removed(coach: CoachClient, owner_page: Visitor) -> None:
    program = await base(coach)
    legs = await workout(coach, program, 1, "Legs", training.task("Walk"), training.task("Run"))
    arms = await workout(coach, program, 40, "Arms", training.task("Swim"))
    walk, run = legs["items"]
    here = page_of(program, legs)
    page = (await owner_page.get(here)).says("Day 40: Arms")

    swapped = await owner_page.submit(page, f"{here}/items/{run['_id']}/move", place="1")
    swapped.ok().says("Moved.")
    assert titles(await plan_of(coach, program)) == [["Run", "Walk"], ["Swim"]]
    moved = await owner_page.submit(swapped, f"{here}/items/{walk['_id']}/move", target=arms["_id"], place="9")
    moved.ok().says("Moved to Arms.", "Day 40")
    assert titles(await plan_of(coach, program)) == [["Run"], ["Swim", "Walk"]]
    again = await owner_page.submit(page, f"{here}/items/{walk['_id']}/move", target=arms["_id"], place="1")
    again.ok(409).says("This item is no longer in the workout")
    wrong = await owner_page.submit(page, f"{here}/items/{run['_id']}/move", place="soon")
    wrong.ok(400).says("Position: This must be a whole number.")

    (await owner_page.submit(page, f"{here}/items/{run['_id']}/delete")).ok().says("Item removed.", "No items yet")
    assert titles(await plan_of(coach, program)) == [[], ["Swim", "Walk"]]


async def test_workout_is_updated_copied_and_deleted(coach: CoachClient, owner_page: Visitor) -> None:
    program = await base(coach)
    legs = await workout(coach, program, 1, "Legs", training.task("Walk"))
    here = page_of(program, legs)
    page = await owner_page.get(here)

    changed = (await owner_page.submit(page, here, name="Lower body", day="3")).ok()
    changed.says("Changes saved.", "Lower body", "Day 3")
    overtaken = await owner_page.submit(page, here, name="Upper body", day="3")
    overtaken.ok(409).says("This has been changed since", "Saved value: Lower body")
    (await owner_page.submit(changed, f"{here}/copy", day="")).ok(400).says("This must be a whole number.")
    (await owner_page.submit(changed, f"{here}/copy", day="10")).ok().says("Lower body copied.", "Week 2", "Day 10")
    assert [block["day"] for block in await plan_of(coach, program)] == [3, 10]
    confirmation = (await owner_page.get(f"{here}/delete")).says(
        "Delete the workout “Lower body” on day 3?", "1 item will be deleted"
    )
    (await owner_page.submit(confirmation, f"{here}/delete")).ok().says("Lower body deleted.", "Day 10")
    assert [block["day"] for block in await plan_of(coach, program)] == [10]


async def test_client_workout_uses_the_same_forms(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    legs = await training.block_with(coach, ana, training.task("Walk"), training.task("Run"))
    arms = await training.block_with(coach, ana, date="2026-03-08", name="Arms")
    await training.block_with(coach, ana, date="2026-03-09", name="Next week")
    here = f"/app/customers/{ana['_id']}/blocks/{legs['_id']}"
    page = (await owner_page.get(here)).says("Sun 8 Mar 2026: Arms")
    assert "Next week" not in page.text

    moved = await owner_page.submit(page, f"{here}/items/{legs['items'][0]['_id']}/move", target=arms["_id"])
    moved.ok().says("Moved to Arms.", "Week of Mon 2 Mar 2026")
    (await owner_page.submit(await owner_page.get(here), here, name="Lower body")).ok().says("Lower body")
    first, second = await coach.calendar(ana)
    assert (first["name"], first["date"]) == ("Lower body", MONDAY)
    assert titles([first, second]) == [["Run"], ["Walk"]]


async def test_program_details_are_updated(coach: CoachClient, owner_page: Visitor) -> None:
    program = await base(coach, description="Three days", tags=["gym, home", "new"])
    here = page_of(program)
    page = await owner_page.get(f"{here}/edit")

    saved = await owner_page.submit(page, f"{here}/edit", name="First weeks", tags="gym, home\nstrength")
    saved.ok().says("Changes saved.", "First weeks", "strength")
    stored = (await coach.get(f"/coach/programs/{program['_id']}")).ok()
    assert (stored["description"], stored["tags"]) == ("Three days", ["gym, home", "strength"])
    rejected = await owner_page.submit(page, f"{here}/edit", description="Four days", tags="gym, home\nstrength")
    rejected.ok(409).says("Saved value: First weeks", "Saved value: Three days")
    assert rejected.text.count("Saved value") == 2
    (await owner_page.submit(rejected, f"{here}/edit", name=" ")).ok(400).says("This should not be empty.")
    (await owner_page.submit(rejected, f"{here}/edit")).ok().says("Four days")


async def test_program_deletion_is_confirmed_with_its_contents(coach: CoachClient, owner_page: Visitor) -> None:
    ana, program = await coach.create_customer("Ana"), await base(coach)
    await workout(coach, program, 1, "Legs", training.task("Walk"), training.task("Run"))
    await coach.post(f"/coach/programs/{program['_id']}/assign", {"customerId": ana["_id"], "startDate": MONDAY})

    confirmation = (await owner_page.get(f"{page_of(program)}/delete")).ok()
    confirmation.says(
        "Delete the program “Base”?", "1 workout with 2 items will be deleted.", "stay on their calendars"
    )
    gone = await owner_page.submit(confirmation, f"{page_of(program)}/delete")

    gone.ok().says("Base deleted.", "No programs yet")
    assert len(await coach.calendar(ana)) == 1
    (await owner_page.get(page_of(program))).ok(404)


async def test_program_pages_are_read_only_without_edit_permission(coach: CoachClient, colleague: Colleague) -> None:
    program = await base(coach)
    legs = await workout(coach, program, 1, "Legs", training.task("Walk"))
    eli = await colleague("programs.view", "customers.view", "exercises.view")

    def forms(page: HtmlPage) -> list[str]:
        return [form.action for form in page.forms if form.action not in ("/app/sign-out", "/app/search")]

    plan = (await eli.get(page_of(program))).ok().says("Legs", "Walk")
    block = (await eli.get(page_of(program, legs))).ok().says("Legs", "Walk", "Day 1")
    assert forms(plan) + forms(block) == []
    assert not [link for link in plan.links + block.links if link.endswith(("/edit", "/delete"))]
    empty = await base(coach, name="Empty")
    (await eli.get(page_of(empty))).says("A colleague with permission to edit programs can add workouts.")


async def test_program_is_created_assigned_and_archived(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    page = await owner_page.get("/app/programs")
    created = await owner_page.submit(
        page.says("No programs yet"), "/app/programs", name="Base", tags="gym, at home\nnew"
    )
    created.ok().says("Base created.", "gym", "No workouts yet")
    (program,) = (await coach.get("/coach/programs", archived="false", pageSize=5, pageNum=1)).ok()["docs"]
    await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "Day one", "day": 8})
    here = f"/app/programs/{program['_id']}"

    page_shown = (await owner_page.get(here)).says("Week 2", "Day 8", "Day one")
    planned = await owner_page.submit(page_shown, f"{here}/assign", customerId=ana["_id"], startDate="2026-02-23")
    planned.ok().says("1 workout scheduled.", "23 Feb")
    assert [block["date"] for block in await coach.calendar(ana)] == [MONDAY]
    (await owner_page.submit(page_shown, f"{here}/archive")).says("Base archived.")


async def test_archiving_a_program_twice_leaves_it_archived(coach: CoachClient, owner_page: Visitor) -> None:
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    here = f"/app/programs/{program['_id']}"
    pages = [await owner_page.get(here) for _ in range(2)]
    for page in (*pages, pages[0]):
        (await owner_page.submit(page, f"{here}/archive")).ok().says("Base archived.")
    stored = (await coach.get(f"/coach/programs/{program['_id']}")).ok()
    assert stored["isArchived"] is True
    back = await owner_page.submit(await owner_page.get(here), f"{here}/restore")
    back.ok().says("Base restored.")
    (await owner_page.submit(pages[0], f"{here}/archive")).ok().says("Archived")
    stored = (await coach.get(f"/coach/programs/{program['_id']}")).ok()
    assert stored["isArchived"] is True, "an old page still archives"


async def test_program_is_assigned_to_any_of_many_clients(coach: CoachClient, owner_page: Visitor) -> None:
    await coach.create_customers(*(f"Client {number:02}" for number in range(51)))
    zoe = await coach.create_customer("Zoe")
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "One", "day": 1})).ok(201)
    here = f"/app/programs/{program['_id']}"
    page = (await owner_page.get(here)).says("Showing the first 50 of 52 clients.")
    assert "Zoe" not in page.text

    results = (await owner_page.get(here, params={"client": "zoe"})).says("1 client found.", "Zoe")
    await owner_page.submit(results, f"{here}/assign", customerId=zoe["_id"], startDate=MONDAY)
    assert len(await coach.calendar(zoe)) == 1
    (await owner_page.get(here, params={"client": "nobody"})).says("No client matches.")
