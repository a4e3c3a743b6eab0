"""A form that is sent several times (double click, reload, back button) runs once."""

from __future__ import annotations

import asyncio
import time

from coaching_service.core.ids import ObjectId
from tests.support.client import MONDAY, CoachClient
from tests.support.service_process import until
from tests.support.visitor import Visitor

KEYS, NEW, PROGRAMS = "/app/settings/api-keys", "/app/customers/new", "/app/programs"


async def test_client_form_sent_twice_adds_one_client(coach: CoachClient, owner_page: Visitor) -> None:
    page = await owner_page.get(NEW)
    first = await owner_page.submit(page, NEW, name="Ana")
    again = await owner_page.submit(page, NEW, name="Ana")

    assert again.ok().path == first.path
    again.says("Ana added.", "The form was sent twice and processed once.")
    assert await coach.names() == ["Ana"]
    (await owner_page.submit(page, NEW, name="Björn")).says("Björn added.")
    assert await coach.names() == ["Ana", "Björn"], "other values are another submission"


async def test_concurrent_submissions_run_once(coach: CoachClient, owner_page: Visitor) -> None:
    page = await owner_page.get(PROGRAMS)
    both = await asyncio.gather(*(owner_page.submit(page, PROGRAMS, name="Base") for _ in range(2)))
    assert both[0].ok().path == both[1].ok().path
    assert (await coach.get("/coach/programs", archived="false", pageSize=5, pageNum=1)).ok()["totalDocs"] == 1


async def test_rejected_form_can_be_sent_again(coach: CoachClient, owner_page: Visitor) -> None:
    page = await owner_page.get(NEW)
    for _ in range(2):
        (await owner_page.submit(page, NEW, name=" ")).ok(400).says("This should not be empty.")
    assert await coach.names() == []


async def test_note_sent_twice_is_stored_once(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    here = f"/app/customers/{ana['_id']}/notes"
    page = await owner_page.get(here)
    for _ in range(2):
        (await owner_page.submit(page, here, content="Knee")).ok().says("Note added.")
    assert len((await coach.get(f"/coach/customers/{ana['_id']}/notes")).ok()) == 1


async def test_both_of_two_submissions_that_revoke_a_key_wait(coach: CoachClient, owner_page: Visitor) -> None:
    """The second one is not answered while other processes may still use the key (see CacheWait)."""
    [key] = (await (await coach.interactive()).get("/coach/api-keys")).ok()
    path = f"{KEYS}/{key['_id']}/delete"
    page = await owner_page.get(path)

    async def seconds() -> float:
        began = time.monotonic()
        (await owner_page.submit(page, path)).ok()
        return time.monotonic() - began

    assert min(await asyncio.gather(seconds(), seconds())) >= 0.25
    assert await seconds() >= 0.25


async def test_reloading_the_new_api_key_page_creates_no_second_key(coach: CoachClient, owner_page: Visitor) -> None:
    page = await owner_page.get(KEYS)
    created = (await owner_page.submit(page, KEYS, name="Website")).ok().says("New API key: Website")
    secret = created.html.partition('id="secret">')[2].partition("<")[0]

    again = await owner_page.submit(page, KEYS, name="Website")

    again.ok().says("Website has already been created. Select Show to see its secret.")
    assert secret not in again.html
    keys = (await (await coach.interactive()).get("/coach/api-keys")).ok()
    assert [key["name"] for key in keys if key["name"] != "Test"] == ["Website"]
    assert secret not in str(await coach.ctx.db["replays"].find({"companyId": coach.ctx.company_id}).to_list(None))


async def test_reload_does_not_assign_a_program_again(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "One", "day": 1})).ok(201)
    bulk = "/app/customers/bulk"
    confirmation = await owner_page.get(bulk, params={"ids": ana["_id"], "action": "assign-program"})
    (await owner_page.submit(confirmation, bulk, programId=program["_id"], startDate=MONDAY)).says("1 client changed")

    again = await owner_page.submit(confirmation, bulk, programId=program["_id"], startDate=MONDAY)

    assert again.ok().path.startswith("/app/jobs/")
    assert len(await coach.calendar(ana)) == 1


async def test_repeated_client_deletion_reports_that_it_ran_once(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    here = f"/app/customers/{ana['_id']}/delete"
    confirmation = await owner_page.get(here)
    (await owner_page.submit(confirmation, here)).ok().says("Ana deleted.")
    erased = {"arguments.customerId": ObjectId(ana["_id"]), "arguments.isSecondPass": True}
    await until(lambda: coach.ctx.db["jobs"].find_one(erased), "the client is erased")
    (await owner_page.submit(confirmation, here)).ok().says("The form was sent twice and processed once.")


async def test_stored_outcome_names_its_client_for_erasure(coach: CoachClient, owner_page: Visitor) -> None:
    page = await owner_page.get(NEW)
    (await owner_page.submit(page, NEW, name="Ana")).ok()
    (ana,) = (await coach.customers())["docs"]
    saved = await coach.ctx.db["replays"].find({"companyId": coach.ctx.company_id}).to_list(None)
    assert [str(each["about"]) for each in saved] == [ana["_id"]], "erased together with the client"
