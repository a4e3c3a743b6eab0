"""Many clients at once: those that were looked at and no others, and only what a coach may do."""

from __future__ import annotations

from tests.client import CoachClient
from tests.web.conftest import Colleague
from tests.web.visitor import Visitor

LIST, BULK = "/app/customers", "/app/customers/bulk"


async def test_a_client_nobody_looked_at_is_not_erased(coach: CoachClient, owner_page: Visitor) -> None:
    for name in ("Ana", "Björn", "Chidi"):
        await coach.create_customer(name)
    asked = await owner_page.get(BULK, params={"all": "true", "action": "delete"})
    asked.says("3 clients will be deleted.", "Ana", "Björn", "Chidi")
    await coach.create_customer("Dora")

    changed = await owner_page.submit(asked, BULK)

    changed.ok(409).says(
        "Nothing was changed: the selection changed to 4 clients.", "4 clients will be deleted.", "Dora"
    )
    assert await coach.names() == ["Ana", "Björn", "Chidi", "Dora"]
    (await owner_page.submit(changed, BULK)).ok().says("4 clients changed")
    assert await coach.names() == []


async def test_one_who_left_and_one_who_came_are_told_apart(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    asked = await owner_page.get(BULK, params={"all": "true", "action": "archive"})
    await coach.delete(f"/coach/customers/{ana['_id']}")
    await coach.create_customer("Björn")
    (await owner_page.submit(asked, BULK)).ok(409).says("the selection changed to 1 client", "Björn")
    assert await coach.names() == ["Björn"]


async def test_of_many_the_first_are_named(coach: CoachClient, owner_page: Visitor) -> None:
    ids = [(await coach.create_customer(f"Client {number:02}"))["_id"] for number in range(15)]
    for params in ({"all": "true"}, {"ids": ids}):
        asked = await owner_page.get(BULK, params={**params, "action": "archive"})
        asked.says("15 clients", "Client 00", "Client 11", "and 3 more")
        assert "Client 12" not in asked.text


async def test_groups_in_use_are_ticked_commas_and_all(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana", groups=["Legs, arms", "Evening"])
    asked = await owner_page.get(BULK, params={"ids": ana["_id"], "action": "groups-remove"})
    assert 'value="Legs, arms"' in asked.html
    assert "New ones" not in asked.text
    (await owner_page.submit(asked, BULK)).ok(400).says("This is required.")
    (await owner_page.submit(asked, BULK, groupNames=["Legs, arms", ""])).says("1 client changed")
    kept = (await coach.get(f"/coach/customers/{ana['_id']}")).ok()
    assert kept["customerRoleData"]["groups"] == ["Evening"]
    await coach.patch(f"/coach/customers/{ana['_id']}", {"groups": []})
    nothing = await owner_page.get(BULK, params={"ids": ana["_id"], "action": "groups-remove"})
    assert [form for form in nothing.says("No groups yet").forms if form.action.startswith(BULK)] == []


async def test_when_all_are_archived_a_reload_and_the_list_say_so(coach: CoachClient, owner_page: Visitor) -> None:
    await coach.create_customer("Ana")
    asked = await owner_page.get(BULK, params={"all": "true", "action": "archive"})
    (await owner_page.submit(asked, BULK)).says("1 client changed")

    again = await owner_page.submit(asked, BULK)

    again.ok().says("The action may already have been completed", "No active clients", "You have 1 archived client.")
    (await owner_page.get(next(link for link in again.links if "archived" in link))).says("Ana")


async def test_a_search_that_is_too_long_is_cut_and_not_dropped(coach: CoachClient, owner_page: Visitor) -> None:
    await coach.create_customer("Ana", groups=["Morning"])
    for words in ("x" * 300, "x\x00y"):
        seen = await owner_page.get(LIST, params={"keywords": words, "groups": "Morning"})
        seen.ok().says("No clients found")
        assert seen.form(LIST, "get").controls["keywords"]["value"] == words.replace("\x00", " ")[:200]
    for library in ("/app/exercises", "/app/programs"):
        (await owner_page.get(library, params={"keywords": "x" * 300})).ok().says("matches")


async def test_whoever_only_looks_is_offered_nothing_to_do(coach: CoachClient, colleague: Colleague) -> None:
    await coach.create_customer("Ana")
    seen = (await (await colleague("customers.view")).get(LIST)).says("Ana")
    assert 'type="checkbox" name="ids"' not in seen.html
    assert "Bulk action" not in seen.text


async def test_a_program_is_offered_to_those_who_see_programs(coach: CoachClient, colleague: Colleague) -> None:
    ana = await coach.create_customer("Ana")
    eli = await colleague("customers.view", "customers.edit", "metrics.edit")
    seen = (await eli.get(LIST)).says("Add to groups…")
    assert "Assign a program" not in seen.text
    assert "Assign a metric set" not in seen.text
    asked = await eli.get(BULK, params={"ids": ana["_id"], "action": "assign-program"})
    asked.ok(403).says("The permission “Programs: view” is missing.")


async def test_a_company_without_programs_is_told_so(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    for action, told in (("assign-program", "No programs yet"), ("assign-metrics-set", "No metric sets yet")):
        asked = await owner_page.get(BULK, params={"ids": ana["_id"], "action": action})
        asked.ok().says(told)
        assert [form.action for form in asked.forms if form.action.startswith(BULK)] == []


async def test_who_may_not_add_clients_is_not_told_to(coach: CoachClient, colleague: Colleague) -> None:
    (await (await colleague("customers.view")).get(LIST)).says("No clients yet", "Clients added by your colleagues")
    (await (await colleague("customers.view", scope="assigned")).get(LIST)).says("You see the clients assigned")


async def test_beyond_the_last_page_the_way_back_is_shown(coach: CoachClient, owner_page: Visitor) -> None:
    for number in range(26):
        await coach.create_customer(f"Client {number:02}")
    past = (await owner_page.get(f"{LIST}?page=99999&keywords=client")).ok()
    past.says("There is no page 99999", "Go to page 2")
    assert "Your first client" not in past.text
    back = await owner_page.get(next(link for link in past.links if "page=2" in link))
    back.says("Client 25", "Page 2 of 2")
    for library in ("/app/exercises", "/app/exercises?keywords=squat"):
        (await owner_page.get(library, params={"page": "99999"})).ok().says("There is no page 99999")
