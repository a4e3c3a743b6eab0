"""Who a client is: changing it while others do, groups, archiving, deleting."""

from __future__ import annotations

import secrets
from typing import Any

from coaching_service.people.team import service as team
from tests.client import CoachClient
from tests.conftest import PASSWORD
from tests.web.conftest import NewVisitor
from tests.web.visitor import Visitor


def details_of(customer: dict[str, Any]) -> str:
    return f"/app/customers/{customer['_id']}/details"


async def stored(coach: CoachClient, customer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = (await coach.get(f"/coach/customers/{customer['_id']}")).ok()
    return found


async def test_details_are_changed(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana", surname="Flores", phone="1", birthday="1990-01-31")
    page = await owner_page.get(details_of(ana))

    (await owner_page.submit(page, details_of(ana), phone="", timezone="Europe/Madrid")).says("Changes saved.")

    kept = await stored(coach, ana)
    assert (kept["surname"], kept["phone"], kept["timezone"]) == ("Flores", None, "Europe/Madrid")
    assert kept["birthday"] == "1990-01-31"


async def test_who_was_slower_sees_both_and_saves_on(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana", surname="Flores", phone="1", groups=["A"])
    page = await owner_page.get(details_of(ana))
    await coach.patch(f"/coach/customers/{ana['_id']}", {"phone": "222", "assignedTo": str(coach.ctx.caller.id)})

    told = await owner_page.submit(page, details_of(ana), phone="333", assignedTo="", groups="B")

    told.ok(409).says(
        "This has been changed since you opened the page", "Stored now: 222", "Stored now: Olga Owner", "Stored now: A"
    )
    assert told.text.count("Stored now") == 3, "what is alike needs no look"
    assert told.form(details_of(ana)).controls["phone"]["value"] == "333"
    assert (await stored(coach, ana))["phone"] == "222"
    (await owner_page.submit(told, details_of(ana))).ok().says("Changes saved.")
    kept = await stored(coach, ana)
    assert (kept["phone"], kept["customerRoleData"]["groups"]) == ("333", ["B"])


async def test_a_comma_in_a_group_s_name_is_part_of_it(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana", groups=["Smith, John", "VIP"])
    page = await owner_page.get(details_of(ana))

    (await owner_page.submit(page, details_of(ana), phone="2")).ok()

    assert (await stored(coach, ana))["customerRoleData"]["groups"] == ["Smith, John", "VIP"]
    (await owner_page.submit(await owner_page.get(details_of(ana)), details_of(ana), groups=["VIP", "New\r\nOne, two"]))
    assert (await stored(coach, ana))["customerRoleData"]["groups"] == ["VIP", "New", "One, two"]
    (await owner_page.submit(await owner_page.get(details_of(ana)), details_of(ana), groups=[""])).ok()
    assert (await stored(coach, ana))["customerRoleData"]["groups"] == []


async def test_many_groups_stay_and_one_too_long_is_told_at_its_field(coach: CoachClient, owner_page: Visitor) -> None:
    many = [f"A group named {at:03}" for at in range(50)]
    ana = await coach.create_customer("Ana", groups=many)
    page = await owner_page.get(details_of(ana))

    (await owner_page.submit(page, details_of(ana), phone="2")).ok().says("Changes saved.")
    refused = await owner_page.submit(await owner_page.get(details_of(ana)), details_of(ana), groups=["x" * 101, "Own"])

    refused.ok(400).says("This must not be longer than 100 characters.")
    assert ("groups", "x" * 101 + "\nOwn") in refused.form(details_of(ana)).fields, "what was typed stays"
    assert (await stored(coach, ana))["customerRoleData"]["groups"] == many


async def test_a_name_cannot_be_emptied(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    for nothing in ("", "  "):
        page = await owner_page.get(details_of(ana))
        (await owner_page.submit(page, details_of(ana), name=nothing)).ok(400).says("This should not be empty.")
    assert (await stored(coach, ana))["name"] == "Ana"


async def test_a_trainer_who_has_left_is_told_and_the_form_kept(
    coach: CoachClient, owner_page: Visitor, password_hash: str
) -> None:
    ana = await coach.create_customer("Ana")
    eli = await team.create_employee(
        coach.ctx, "Eli", f"e-{secrets.token_hex(6)}@example.com", [], "all", password_hash
    )
    page = (await owner_page.get(details_of(ana))).says("Eli")
    await team.remove_employee(coach.ctx, eli["_id"])

    told = await owner_page.submit(page, details_of(ana), phone="777", assignedTo=str(eli["_id"]))

    told.ok(400).says("This must be a coach of your team; this coach has left it.")
    assert told.form(details_of(ana)).controls["phone"]["value"] == "777"


async def test_who_gives_a_client_away_is_led_to_those_left(
    coach: CoachClient, new_visitor: NewVisitor, password_hash: str
) -> None:
    email = f"eli-{secrets.token_hex(6)}@example.com"
    eli = await team.create_employee(
        coach.ctx, "Eli", email, ["customers.view", "customers.edit"], "assigned", password_hash
    )
    ana = await coach.create_customer("Ana", assignedTo=str(eli["_id"]))
    browser = new_visitor()
    (await browser.sign_in(email, PASSWORD)).ok()

    page = await browser.get(details_of(ana))
    left = await browser.submit(page, details_of(ana), assignedTo=str(coach.ctx.caller.id))

    left.ok().says("Changes saved. Ana is no longer assigned to you.", "Clients")
    assert "/plans" not in " ".join(page.links), "a tab that would be refused is not offered"


async def test_a_client_is_archived_brought_back_and_deleted(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    base = f"/app/customers/{ana['_id']}"
    page = await owner_page.get(f"{base}/details")

    for _ in range(2):  # a double click, a replay, a tab left open: the same again
        archived = await owner_page.submit(page, f"{base}/archive")
        archived.ok().says("Ana is archived and cannot sign in.", "Restore")
    for _ in range(2):
        (await owner_page.submit(archived, f"{base}/restore")).ok().says("Ana is active again.")
    assert f"{base}/invite" not in [form.action for form in page.forms]
    page.says("Add an email address above to send an invitation.")
    asked = (await owner_page.get(f"{base}/delete")).says(
        "All of this client’s data will be deleted:", "This cannot be undone."
    )
    (await owner_page.submit(asked, f"{base}/delete")).says("Ana deleted.")

    (await owner_page.get(base)).ok(404)
