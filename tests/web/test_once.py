"""A form is done once, however often it is sent: pressed twice, reloaded, sent from a page brought back."""

from __future__ import annotations

import asyncio

from coaching_service.core.ids import ObjectId
from tests.client import MONDAY, CoachClient
from tests.reliability.service import until
from tests.web.visitor import Visitor

KEYS, NEW, PROGRAMS = "/app/settings/api-keys", "/app/customers/new", "/app/programs"


async def test_a_client_sent_twice_is_added_once(coach: CoachClient, owner_page: Visitor) -> None:
    page = await owner_page.get(NEW)
    first = await owner_page.submit(page, NEW, name="Ana")
    again = await owner_page.submit(page, NEW, name="Ana")

    assert again.ok().path == first.path
    again.says("Ana added.", "The form was sent twice and processed once.")
    assert await coach.names() == ["Ana"]
    (await owner_page.submit(page, NEW, name="Björn")).says("Björn added.")
    assert await coach.names() == ["Ana", "Björn"], "filled in anew it is another form"


async def test_pressed_twice_at_once_it_is_done_once(coach: CoachClient, owner_page: Visitor) -> None:
    page = await owner_page.get(PROGRAMS)
    both = await asyncio.gather(*(owner_page.submit(page, PROGRAMS, name="Base") for _ in range(2)))
    assert both[0].ok().path == both[1].ok().path
    assert (await coach.get("/coach/programs", archived="false", pageSize=5, pageNum=1)).ok()["totalDocs"] == 1


async def test_what_was_not_accepted_can_be_sent_again(coach: CoachClient, owner_page: Visitor) -> None:
    page = await owner_page.get(NEW)
    for _ in range(2):
        (await owner_page.submit(page, NEW, name=" ")).ok(400).says("This should not be empty.")
    assert await coach.names() == []


async def test_a_note_is_kept_once(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    here = f"/app/customers/{ana['_id']}/notes"
    page = await owner_page.get(here)
    for _ in range(2):
        (await owner_page.submit(page, here, content="Knee")).ok().says("Note added.")
    assert len((await coach.get(f"/coach/customers/{ana['_id']}/notes")).ok()) == 1


async def test_the_page_with_a_new_key_makes_no_other_when_it_is_reloaded(
    coach: CoachClient, owner_page: Visitor
) -> None:
    page = await owner_page.get(KEYS)
    made = (await owner_page.submit(page, KEYS, name="Website")).ok().says("New API key: Website")
    secret = made.html.partition('id="secret">')[2].partition("<")[0]

    again = await owner_page.submit(page, KEYS, name="Website")

    again.ok().says("Website has already been created. Select Show to see its secret.")
    assert secret not in again.html
    keys = (await (await coach.interactive()).get("/coach/api-keys")).ok()
    assert [key["name"] for key in keys if key["name"] != "Test"] == ["Website"]
    assert secret not in str(await coach.ctx.db["replays"].find({"companyId": coach.ctx.company_id}).to_list(None))


async def test_a_program_is_not_assigned_again_by_a_reload(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "One", "day": 1})).ok(201)
    bulk = "/app/customers/bulk"
    asked = await owner_page.get(bulk, params={"ids": ana["_id"], "action": "assign-program"})
    (await owner_page.submit(asked, bulk, programId=program["_id"], startDate=MONDAY)).says("1 client changed")

    again = await owner_page.submit(asked, bulk, programId=program["_id"], startDate=MONDAY)

    assert again.ok().path == "/app/customers"
    again.says("This has already been started.")
    assert len(await coach.calendar(ana)) == 1


async def test_a_client_is_deleted_once_and_told_so_twice(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    here = f"/app/customers/{ana['_id']}/delete"
    asked = await owner_page.get(here)
    (await owner_page.submit(asked, here)).ok().says("Ana deleted.")
    erased = {"arguments.customerId": ObjectId(ana["_id"]), "arguments.isSecondPass": True}
    await until(lambda: coach.ctx.db["jobs"].find_one(erased), "what is remembered of her is gone")
    (await owner_page.submit(asked, here)).ok().says("The form was sent twice and processed once.")


async def test_nothing_of_an_erased_client_stays_in_what_is_remembered(coach: CoachClient, owner_page: Visitor) -> None:
    page = await owner_page.get(NEW)
    (await owner_page.submit(page, NEW, name="Ana")).ok()
    (ana,) = (await coach.customers())["docs"]
    kept = await coach.ctx.db["replays"].find({"companyId": coach.ctx.company_id}).to_list(None)
    assert [str(each["about"]) for each in kept] == [ana["_id"]], "so that it goes with the client"
