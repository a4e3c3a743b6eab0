"""The details page of a client: concurrent changes, groups, archiving and deleting."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

from coaching_service.core.ids import ObjectId
from coaching_service.people import team
from tests.conftest import PASSWORD
from tests.support.client import CoachClient
from tests.support.training import block_with, task
from tests.support.visitor import Visitor
from tests.web.conftest import Colleague, NewVisitor


def details_of(customer: dict[str, Any]) -> str:
    return f"/app/customers/{customer['_id']}/details"


async def stored(coach: CoachClient, customer: dict[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = (await coach.get(f"/coach/customers/{customer['_id']}")).ok()
    return document


async def test_details_are_changed(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana", surname="Flores", phone="1", birthday="1990-01-31")
    page = await owner_page.get(details_of(ana))

    (await owner_page.submit(page, details_of(ana), phone="", timezone="Europe/Madrid")).says("Changes saved.")

    customer = await stored(coach, ana)
    assert (customer["surname"], customer["phone"], customer["timezone"]) == ("Flores", None, "Europe/Madrid")
    assert customer["birthday"] == "1990-01-31"


async def test_a_client_with_an_absence_has_details(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana", phone="1")
    today = coach.ctx.caller.today()
    away = {"kind": "away", "from": str(today + timedelta(days=5)), "until": str(today + timedelta(days=9))}
    (await coach.post(f"/coach/customers/{ana['_id']}/availability", away)).ok(201)

    page = (await owner_page.get(details_of(ana))).ok().says("Away from ")

    assert page.form(details_of(ana)).controls["phone"]["value"] == "1"


async def test_conflicting_change_shows_stored_values_and_can_be_saved(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana", surname="Flores", phone="1", groups=["A"])
    page = await owner_page.get(details_of(ana))
    changed = await coach.patch(
        f"/coach/customers/{ana['_id']}", {"phone": "222", "assignedTo": str(coach.ctx.caller.id)}
    )
    await coach.wait_until_numbered(str(changed.headers["X-Change-Id"]))

    rejected = await owner_page.submit(page, details_of(ana), phone="333", assignedTo="", groups="B")

    rejected.ok(409).says(
        "This has been changed since you opened the page, by Olga Owner (API key) on ",
        "(client changed), so nothing was saved yet.",
        "Saved value: 222",
        "Saved value: Olga Owner",
        "Saved value: A",
    )
    assert rejected.text.count("Saved value") == 3, "only fields that differ"
    assert rejected.form(details_of(ana)).controls["phone"]["value"] == "333"
    assert (await stored(coach, ana))["phone"] == "222"
    (await owner_page.submit(rejected, details_of(ana))).ok().says("Changes saved.")
    customer = await stored(coach, ana)
    assert (customer["phone"], customer["customerRoleData"]["groups"]) == ("333", ["B"])


async def test_group_name_may_contain_a_comma(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana", groups=["Smith, John", "VIP"])
    page = await owner_page.get(details_of(ana))

    (await owner_page.submit(page, details_of(ana), phone="2")).ok()

    assert (await stored(coach, ana))["customerRoleData"]["groups"] == ["Smith, John", "VIP"]
    (await owner_page.submit(await owner_page.get(details_of(ana)), details_of(ana), groups=["VIP", "New\r\nOne, two"]))
    assert (await stored(coach, ana))["customerRoleData"]["groups"] == ["VIP", "New", "One, two"]
    (await owner_page.submit(await owner_page.get(details_of(ana)), details_of(ana), groups=[""])).ok()
    assert (await stored(coach, ana))["customerRoleData"]["groups"] == []


async def test_group_name_that_is_too_long_is_reported_at_its_field(coach: CoachClient, owner_page: Visitor) -> None:
    many = [f"A group named {at:03}" for at in range(50)]
    ana = await coach.create_customer("Ana", groups=many)
    page = await owner_page.get(details_of(ana))

    (await owner_page.submit(page, details_of(ana), phone="2")).ok().says("Changes saved.")
    refused = await owner_page.submit(await owner_page.get(details_of(ana)), details_of(ana), groups=["x" * 101, "Own"])

    refused.ok(400).says("This must not be longer than 100 characters.")
    assert ("groups", "x" * 101 + "\nOwn") in refused.form(details_of(ana)).fields, "what was typed stays"
    assert (await stored(coach, ana))["customerRoleData"]["groups"] == many


async def test_name_is_required(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    for nothing in ("", "  "):
        page = await owner_page.get(details_of(ana))
        (await owner_page.submit(page, details_of(ana), name=nothing)).ok(400).says("This should not be empty.")
    assert (await stored(coach, ana))["name"] == "Ana"


async def test_trainer_who_left_the_team_is_rejected_and_input_is_preserved(
    coach: CoachClient, owner_page: Visitor, password_hash: str
) -> None:
    ana = await coach.create_customer("Ana")
    eli = await team.create(coach.ctx, "Eli", f"e-{secrets.token_hex(6)}@example.com", [], "all", password_hash)
    page = (await owner_page.get(details_of(ana))).says("Eli")
    await team.delete_employee(coach.ctx, eli["_id"])

    rejected = await owner_page.submit(page, details_of(ana), phone="777", assignedTo=str(eli["_id"]))

    rejected.ok(400).says("This must be a coach of your team; this coach has left it.")
    assert rejected.form(details_of(ana)).controls["phone"]["value"] == "777"


async def test_employee_who_reassigns_a_client_returns_to_the_client_list(
    coach: CoachClient, new_visitor: NewVisitor, password_hash: str
) -> None:
    email = f"eli-{secrets.token_hex(6)}@example.com"
    eli = await team.create(coach.ctx, "Eli", email, ["customers.view", "customers.edit"], "assigned", password_hash)
    ana = await coach.create_customer("Ana", assignedTo=str(eli["_id"]))
    browser = new_visitor()
    (await browser.sign_in(email, PASSWORD)).ok()

    page = await browser.get(details_of(ana))
    response = await browser.submit(page, details_of(ana), assignedTo=str(coach.ctx.caller.id))

    response.ok().says("Changes saved. Ana is no longer assigned to you.", "Clients")
    assert "/plans" not in " ".join(page.links), "a tab that would be refused is not offered"


async def test_client_is_archived_restored_and_deleted(coach: CoachClient, owner_page: Visitor) -> None:
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
    confirmation = (await owner_page.get(f"{base}/delete")).says(
        "All of this client’s data will be deleted:", "This cannot be undone."
    )
    (await owner_page.submit(confirmation, f"{base}/delete")).says("Ana deleted.")

    (await owner_page.get(base)).ok(404)


async def test_deleting_a_client_requires_the_delete_permission(
    coach: CoachClient, owner_page: Visitor, colleague: Colleague
) -> None:
    ana = await coach.create_customer("Ana")
    path = f"/app/customers/{ana['_id']}"
    confirmation = await owner_page.get(f"{path}/delete")
    editor = await colleague("customers.view", "customers.create", "customers.edit")

    details = (await editor.get(f"{path}/details")).ok()
    assert f"{path}/delete" not in details.links
    (await editor.get(f"{path}/delete")).ok(403).says("Clients: delete")
    forged = confirmation.form(f"{path}/delete")
    csrf = dict(details.form(f"{path}/archive").fields)["csrf"]
    data = dict(forged.fields) | {"csrf": csrf}
    (await editor.send("POST", forged.action, data=data, headers={"Sec-Fetch-Site": "same-origin"})).ok(403)
    assert (await stored(coach, ana))["name"] == "Ana"

    remover = await colleague("customers.view", "customers.delete")
    (await remover.submit(await remover.get(f"{path}/delete"), f"{path}/delete")).ok().says("Ana deleted.")


async def test_calendar_link_is_created_and_revoked(
    coach: CoachClient, owner_page: Visitor, anonymous: CoachClient
) -> None:
    ana = await coach.create_customer("Ana")
    here = f"/app/customers/{ana['_id']}"
    page = (await owner_page.get(details_of(ana))).says("Calendar link")
    created = (await owner_page.submit(page, f"{here}/calendar-link")).says("Calendar link created.")
    address = created.html.partition('id="calendar-url">')[2].partition("<")[0]
    link = (await coach.post(f"/coach/customers/{ana['_id']}/calendar-link")).ok(201)
    assert address == link["url"]
    path = address.removeprefix("http://coaching.test")
    assert (await anonymous.get(path)).status == 200
    revoked = (await owner_page.submit(created, f"{here}/calendar-link/revoke")).says("Calendar link revoked.")
    assert address not in revoked.html
    assert (await anonymous.get(path)).status == 404
    (await owner_page.submit(created, f"{here}/calendar-link/revoke")).ok()


async def test_details_say_when_the_client_was_last_seen(
    coach: CoachClient, owner_page: Visitor, new_visitor: NewVisitor
) -> None:
    email = f"ana-{secrets.token_hex(6)}@example.com"
    ana = await coach.create_customer("Ana", email=email, sendInvitation=False, timezone="UTC")
    (await owner_page.get(details_of(ana))).ok().says("Ana has not signed in yet.")
    phone = new_visitor()
    invitation = await phone.get(f"/train/first-access?token={ana['firstAccessToken']}")
    (await phone.submit(invitation, "/train/first-access", password=PASSWORD)).ok()

    used = datetime(2030, 3, 2, 9, 30, tzinfo=UTC)
    await coach.ctx.db["sessions"].update_one({"subjectId": ObjectId(ana["_id"])}, {"$set": {"lastUsedAt": used}})
    page = (await owner_page.get(details_of(ana))).ok()
    page.says("First signed in", "Last seen 2 Mar 2030, 09:30.")
    await coach.ctx.db["sessions"].delete_many({"subjectId": ObjectId(ana["_id"])})
    page = (await owner_page.get(details_of(ana))).ok().says("Last seen", "First signed in")
    assert "2030" not in page.text


async def test_conflict_names_another_tab_or_a_colleague(
    coach: CoachClient, owner_page: Visitor, colleague: Colleague
) -> None:
    ana = await coach.create_customer("Ana")
    block = await block_with(coach, ana, task("Walk"))
    path = f"/app/customers/{ana['_id']}/blocks/{block['_id']}/items/{block['items'][0]['_id']}"
    page = await owner_page.get(path)

    (await owner_page.submit(await owner_page.get(path), f"{path}/task", title="Walk slowly")).ok()
    await _wait_for_numbers(coach)
    stale = (await owner_page.submit(page, f"{path}/task", title="Run")).ok(409)
    stale.says("This has been changed since you opened the page, in another tab of yours on ", "(task changed)")

    eli = await colleague("customers.view", "customers.edit")
    (await eli.submit(await eli.get(path), f"{path}/task", title="Walk fast")).ok()
    await _wait_for_numbers(coach)
    stale = (await owner_page.submit(stale, f"{path}/task", title="Run")).ok(409)
    stale.says("since you opened the page, by Eli", "(task changed)", "Saved value: Walk fast")


async def _wait_for_numbers(coach: CoachClient) -> None:
    """Wait until the changes so far are in the history."""
    later = await coach.post("/coach/forms", {"name": "Later", "questions": [{"label": "How?", "type": "text"}]})
    await coach.wait_until_numbered(str(later.headers["X-Change-Id"]))
