"""Pages of linked programs: who is on a program, the preview and the update, and the programs of groups."""

from __future__ import annotations

from tests.support.client import CoachClient
from tests.support.training import Json, client_path, path_of
from tests.support.visitor import Visitor
from tests.training.test_client_programs import assign, days_from_today, program_with
from tests.training.test_program_sync import add_day, blocks_of, calendar, until_numbered
from tests.web.conftest import Colleague


def page_of(program: Json) -> str:
    return f"/app/programs/{program['_id']}"


async def test_clients_are_updated_from_the_page_of_a_program(coach: CoachClient, owner_page: Visitor) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    program = await program_with(coach, 1, 2, 9)
    for client, start in ((ana, -7), (bo, 5)):
        await assign(coach, program, client, days_from_today(start))
    page = await owner_page.get(page_of(program))
    page.says("2 clients are on it: update them", "Ana : week 2 of 2", "Bo : starts")
    (await owner_page.get(f"/app/customers/{ana['_id']}")).says("Base : week 2 of 2")
    (await owner_page.get(f"/app/customers/{bo['_id']}")).says("Base : starts")
    (await owner_page.get(f"{page_of(program)}/sync")).says("All clients on Base are up to date.")
    planned, own = await blocks_of(coach, program), await calendar(coach, bo)
    (await coach.patch(path_of(planned[2]), {"name": "Sprints"})).ok()
    (await coach.patch(path_of(own[0]), {"name": "By hand"})).ok()
    await add_day(coach, program, 10, "Bike")
    edited = await owner_page.get(f"{page_of(program)}/blocks/{planned[2]['_id']}")
    edited.says("2 clients are on it: update them")

    preview = await owner_page.get(f"{page_of(program)}/sync")

    preview.says("2 of 2 clients on Base have workouts that differ", "Changed in the program (1)", "Sprints", "Bike")
    preview.says("Changed by hand for this client (1)", "In the past (2)")
    (await owner_page.submit(preview, f"{page_of(program)}/sync", assignmentIds=[])).ok(400)
    done = await owner_page.submit(preview, f"{page_of(program)}/sync")
    done.says("2 clients updated: 2 workouts changed, 2 workouts added.", "Undo")
    assert [block["name"] for block in await calendar(coach, bo)] == ["By hand", "Day 2", "Sprints", "Bike"]
    undo = next(form.action for form in done.forms if form.action.endswith("/undo"))
    await until_numbered(coach, undo.split("/")[-2], 2)
    await owner_page.submit(done, undo)
    assert [block["name"] for block in await calendar(coach, bo)] == ["By hand", "Day 2", "Day 9"]
    again = await owner_page.get(f"{page_of(program)}/sync")
    nothing = await owner_page.submit(again, f"{page_of(program)}/sync", assignmentIds=[], include=[])
    nothing.ok(400).says("should not be empty")


async def test_who_sees_the_clients_of_a_program(coach: CoachClient, colleague: Colleague) -> None:
    program = await program_with(coach, 1)
    await assign(coach, program, await coach.create_customer("Ana"), days_from_today(0))
    reader = await colleague("programs.view", "customers.view")
    page = (await reader.get(page_of(program))).says("On this program (1)")
    assert "update the client" not in page.text
    assert "Ana" not in (await (await colleague("programs.view")).get(page_of(program))).text
    assert (
        "Ana"
        not in (await (await colleague("programs.view", "customers.view", scope="assigned")).get(page_of(program))).text
    )


async def test_the_page_of_a_sync_needs_the_client_and_the_program(coach: CoachClient, colleague: Colleague) -> None:
    program = await program_with(coach, 1)
    for permissions in (("customers.view", "customers.edit"), ("programs.view",)):
        (await (await colleague(*permissions)).get(f"{page_of(program)}/sync")).ok(403)
    (await (await colleague("customers.view", "programs.view")).get(f"{page_of(program)}/sync")).ok()


async def test_a_program_is_duplicated(coach: CoachClient, owner_page: Visitor) -> None:
    program = await program_with(coach, 1, 3, rest=(2,), name="B" * 198)
    page = await owner_page.get(page_of(program))
    copy = await owner_page.submit(page, f"{page_of(program)}/duplicate")
    copy.says(f"{'B' * 193} (copy) created.", "Day 3")
    blocks = await blocks_of(coach, {"_id": copy.path.rpartition("/")[2]})
    assert [(block["name"], block["day"], block["isRest"]) for block in blocks] == [
        ("Day 1", 1, False),
        ("Day 2", 2, True),
        ("Day 3", 3, False),
    ]
    assert {block["programId"] for block in blocks} == {copy.path.rpartition("/")[2]}


async def test_a_group_gets_a_program(coach: CoachClient, owner_page: Visitor, colleague: Colleague) -> None:
    ana = await coach.create_customer("Ana", groups=["Early & late"])
    program = await program_with(coach, 1)
    (await owner_page.get("/app/customers/groups")).says("Early & late", "Set a program")
    action = "/app/customers/groups/program"
    address = f"{action}?group=Early+%26+late"
    form = await owner_page.get(address)
    (await owner_page.submit(form, action, startOn="date", programId=program["_id"])).ok(400).says("is required")
    saved = await owner_page.submit(form, action, programId=program["_id"], startOn="joinDay", existing="true")
    saved.says("Early & late has a program. 1 client got it now.", "on the day of joining", "Base")
    assert len(await calendar(coach, ana)) == 1
    others = (await (await colleague("customers.view")).get("/app/customers/groups")).says("Early & late", "A program,")
    assert "Base" not in others.text
    bo = await coach.create_customer("Bo")
    (await coach.patch(client_path(bo), {"groups": ["Early & late"]})).ok()
    assert len(await calendar(coach, bo)) == 1
    form = await owner_page.get(address)
    removed = await owner_page.submit(form, f"{action}/remove")
    removed.says("Early & late has no program any more.")
    (await (await colleague("customers.view", "customers.edit")).get(address)).ok(403)
