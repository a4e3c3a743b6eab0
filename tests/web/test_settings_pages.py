"""Pages of settings: API keys, team, company, load unit, storage."""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from aiohttp.test_utils import TestServer

from coaching_service import features
from coaching_service.app import create_app
from coaching_service.core.database.context import Services
from coaching_service.core.jobs import worker
from coaching_service.core.media import StorageQuota
from coaching_service.integrations import load_unit
from coaching_service.people import team
from coaching_service.settings import Settings
from coaching_service.web.formatting import format_date
from tests.conftest import PASSWORD
from tests.core.test_uploads import PDF, form
from tests.support.client import CoachClient
from tests.support.results import train
from tests.support.service_process import until
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import Colleague

KEYS, TEAM = "/app/settings/api-keys", "/app/settings/team"


def secret_on(page: HtmlPage) -> str:
    return page.html.partition('id="secret">')[2].partition("<")[0]


async def test_api_key_is_created_used_revealed_and_deleted(
    coach: CoachClient, owner_page: Visitor, anonymous: CoachClient
) -> None:
    page = await owner_page.get(KEYS)
    created = (await owner_page.submit(page, KEYS, name="Website")).ok().says("New API key: Website")
    secret = secret_on(created)
    (await anonymous.with_key(secret).get("/me")).ok()
    assert secret not in (await owner_page.get(KEYS)).html, "the list does not show it"

    (website,) = [
        key for key in (await (await coach.interactive()).get("/coach/api-keys")).ok() if key["name"] != "Test"
    ]
    page_shown = await owner_page.submit(created, f"{KEYS}/{website['_id']}/reveal")
    assert secret_on(page_shown.says("API key: Website", "This view has been recorded in the audit log.")) == secret
    confirmation = (await owner_page.get(f"{KEYS}/{website['_id']}/delete")).says(
        "Delete the API key “Website”?", secret[-4:]
    )
    (await owner_page.submit(confirmation, f"{KEYS}/{website['_id']}/delete")).says("Website deleted.")

    (await anonymous.with_key(secret).get("/me")).refused(401)
    again = await owner_page.submit(confirmation, f"{KEYS}/{website['_id']}/delete")
    again.ok().says(
        "Website deleted. Requests with it are rejected from now on. The form was sent twice and processed once."
    )


async def test_api_key_is_restricted(coach: CoachClient, owner_page: Visitor, anonymous: CoachClient) -> None:
    page = await owner_page.get(KEYS)
    tomorrow = str(coach.ctx.caller.today() + timedelta(days=1))
    created = await owner_page.submit(
        page,
        KEYS,
        name="Reader",
        readOnly="true",
        permissions=["customers.view", "exercises.view"],
        expires=tomorrow,
    )
    created.ok().says("Read only", "2 permissions", "Expires")
    key = anonymous.with_key(secret_on(created))
    assert (await key.get("/me")).ok()["permissions"] == ["customers.view", "exercises.view"]
    (await key.post("/coach/customers", {"name": "Ana"})).refused(403)

    past = await owner_page.submit(created, KEYS, name="Old", expires="2020-01-01")
    past.ok(400).says("This must not be in the past.")
    wrong = await owner_page.submit(created, KEYS, name="", expires="31.12.2026")
    wrong.ok(400).says("This should not be empty.", "This must be a date that exists.")


async def test_employee_is_added_updated_and_removed(coach: CoachClient, owner_page: Visitor) -> None:
    email = f"eli-{secrets.token_hex(6)}@example.com"
    page = await owner_page.get(f"{TEAM}/new")
    taken = await owner_page.submit(page, f"{TEAM}/new", name="Eli", email=str(coach.ctx.caller.email))
    taken.ok(409).says("This e-mail address is already used to sign in.")
    joined = await owner_page.submit(
        taken, f"{TEAM}/new", email=email, permissions=["customers.view"], customersScope="assigned"
    )
    joined.ok().says("Eli added.", "Assigned", "1 of 25")
    (eli,) = (await (await coach.interactive()).get("/coach/employees")).ok()
    await coach.create_customer("Ana", assignedTo=eli["_id"])

    here = f"{TEAM}/{eli['_id']}"
    changed = await owner_page.submit(
        await owner_page.get(here), here, permissions=["customers.view", "customers.edit"], customersScope="all"
    )
    changed.says("Changes to Eli saved.", "2 of 25")
    confirmation = (await owner_page.get(f"{here}/delete")).says(
        "Remove Eli from the team?", "1 client will be unassigned"
    )
    (await owner_page.submit(confirmation, f"{here}/delete")).says("Eli removed.", "No employees yet")
    assert (await coach.customers())["docs"][0]["customerRoleData"]["assignedTo"] is None


async def test_company_is_updated(coach: CoachClient, owner_page: Visitor) -> None:
    page = await owner_page.get("/app/settings/company")
    wrong = await owner_page.submit(page, "/app/settings/company", timezone="Nowhere")
    wrong.ok(400).says("such as Europe/Madrid")
    (await owner_page.submit(page, "/app/settings/company", companyName="Iron", timezone="Europe/Madrid")).says("Iron")
    account = (await coach.get("/coach/account")).ok()
    assert (account["companyName"], account["timezone"]) == ("Iron", "Europe/Madrid")


async def test_company_is_deleted_with_the_owner_password(coach: CoachClient, owner_page: Visitor) -> None:
    await coach.create_customer()
    here = "/app/settings/delete-account"
    page = (await owner_page.get(here)).says("1 client with calendars", "This cannot be undone.")

    rejected = await owner_page.submit(page, here, password="not the password")
    rejected.ok(400).says("This is not your password.")
    (await owner_page.submit(page, here, password=PASSWORD)).ok().says("Your company is deleted.")

    (await coach.get("/me")).refused(401)
    assert (await owner_page.get("/app")).path == "/app/sign-in"


async def test_employee_sees_only_assigned_clients(coach: CoachClient, colleague: Colleague) -> None:
    ana, eli = await coach.create_customer("Ana"), await colleague("customers.view", scope="assigned")
    (await eli.get("/app/customers")).says("No clients yet", "You see the clients assigned to you.")
    for page in ("", "/progress", "/notes", "/photos", "/records", "/details"):
        (await eli.get(f"/app/customers/{ana['_id']}{page}")).ok(403).says("This client is assigned to another coach.")


async def test_selected_permissions_restrict_an_api_key(owner_page: Visitor, anonymous: CoachClient) -> None:
    created = await owner_page.submit(await owner_page.get(KEYS), KEYS, name="One", permissions=["customers.view"])
    created.ok().says("1 permission")
    assert (await anonymous.with_key(secret_on(created)).get("/me")).ok()["permissions"] == ["customers.view"]


@pytest.mark.parametrize("switch", ["confirmInChat", "outreach"])
async def test_key_page_has_switches_for_assistants(coach: CoachClient, owner_page: Visitor, switch: str) -> None:
    """Approving in the chat, and contacting people: only with a key that says so."""
    for value in (None, "true"):
        await owner_page.submit(await owner_page.get(KEYS), KEYS, **{"name": f"Key {value}", switch: value})
    keys = (await (await coach.interactive()).get("/coach/api-keys")).ok()
    chosen = {key["name"]: key["restrictions"][switch] for key in keys}
    assert (chosen["Key None"], chosen["Key true"]) == (False, True)


async def test_api_key_expires_at_the_end_of_the_day_in_the_company_time_zone(
    coach: CoachClient, owner_page: Visitor
) -> None:
    await (await coach.interactive()).patch("/coach/account", {"timezone": "Pacific/Kiritimati"})
    page = await owner_page.get(KEYS)
    (await owner_page.submit(page, KEYS, name="Long", expires="9999-12-31")).ok(400).says(
        "must be from 1900-01-01 to 2199-12-31"
    )
    (await owner_page.submit(page, KEYS, name="Reader", expires="2030-06-01")).ok().says("Expires Sat 1 Jun 2030")
    (key,) = [k for k in (await (await coach.interactive()).get("/coach/api-keys")).ok() if k["name"] == "Reader"]
    assert key["restrictions"]["expiresAt"] == "2030-06-01T09:59:59.999Z"


# At any time one of these has another date than UTC.
@pytest.mark.parametrize("timezone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
async def test_key_shows_when_it_was_created(coach: CoachClient, owner_page: Visitor, timezone: str) -> None:
    session = await coach.interactive()
    (await session.patch("/coach/account", {"timezone": timezone})).ok()
    [key] = (await session.get("/coach/api-keys")).ok()
    created = datetime.fromisoformat(key["createdAt"]).astimezone(ZoneInfo(timezone))
    (await owner_page.get(KEYS)).ok().says(f"Created {format_date(created.date())}")


async def test_employee_cannot_give_an_api_key_more_permissions_than_their_own(colleague: Colleague) -> None:
    eli = await colleague("customers.view")
    page = await eli.get(KEYS)
    assert page.html.count('name="permissions"') == 1
    forged = await eli.submit(page, KEYS, name="More", permissions=["customers.view", "customers.delete"])
    forged.ok(400).says("This must be among your own.")


async def test_conflicting_company_change_shows_the_saved_value(coach: CoachClient, owner_page: Visitor) -> None:
    here = "/app/settings/company"
    page = await owner_page.get(here)
    (await owner_page.submit(await owner_page.get(here), here, companyName="Theirs")).says("Changes saved.")

    stale = await owner_page.submit(page, here, companyName="Mine")
    stale.ok(409).says("Saved value: Theirs")
    (await owner_page.submit(stale, here)).ok().says("Changes saved.")
    assert (await coach.get("/coach/account")).ok()["companyName"] == "Mine"


async def test_company_name_and_time_zone_are_required(coach: CoachClient, owner_page: Visitor) -> None:
    page = await owner_page.get("/app/settings/company")
    for field in ("companyName", "timezone"):
        emptied = await owner_page.submit(page, "/app/settings/company", **{field: " "})
        emptied.ok(400).says("This should not be empty.")


async def test_a_coach_chooses_notifications(coach: CoachClient, owner_page: Visitor) -> None:
    path = "/app/settings/notifications"
    page = await owner_page.get(path)
    (await owner_page.submit(page, path, proposals__mail=None, digestHour="9")).ok().says("Changes saved.")
    settings = (await (await coach.interactive()).get("/me")).ok()["notifications"]
    assert settings["proposals"] == {"mail": False, "push": True}
    assert settings["digestHour"] == 9


async def test_conflicting_permission_change_shows_the_saved_value(
    coach: CoachClient, owner_page: Visitor, password_hash: str
) -> None:
    hired = await team.create(coach.ctx, "Eli", f"{secrets.token_hex(6)}@example.com", [], "all", password_hash)
    here = f"{TEAM}/{hired['_id']}"
    page = await owner_page.get(here)
    (await owner_page.submit(await owner_page.get(here), here, permissions=["forms.view"])).says(
        "Changes to Eli saved."
    )
    stale = await owner_page.submit(page, here, permissions=["metrics.view"])
    stale.ok(409).says("Saved value: Forms: view")
    (await owner_page.submit(stale, here)).ok().says("Changes to Eli saved.")


async def test_form_keeps_its_values_when_a_selected_document_was_deleted(
    coach: CoachClient, owner_page: Visitor
) -> None:
    page = await owner_page.get("/app/customers/new")
    gone = await owner_page.submit(page, "/app/customers/new", name="Ana", assignedTo="f" * 24)
    assert gone.ok(404).form("/app/customers/new").controls["name"]["value"] == "Ana"
    gone.says("your entries are still here")
    page = await owner_page.get("/app/exercises/new")
    gone = await owner_page.submit(page, "/app/exercises/new", name="Squat", primaryMuscles=["f" * 24])
    assert gone.ok(404).form("/app/exercises/new").controls["name"]["value"] == "Squat"


async def test_team_is_listed_with_the_owner_first_then_by_time_added(
    coach: CoachClient, owner_page: Visitor, password_hash: str
) -> None:
    coaches = coach.ctx.db["coaches"]
    for name, added_at in (("Zoe", "2026-01-02"), ("Ben", "2026-01-03"), ("Max", "2026-01-01")):
        employee = await team.create(coach.ctx, name, f"{secrets.token_hex(6)}@example.com", [], "all", password_hash)
        await coaches.update_one({"_id": employee["_id"]}, {"$set": {"createdAt": datetime.fromisoformat(added_at)}})

    page = await owner_page.get(TEAM)

    table = page.html.partition("<tbody>")[2]
    positions = [table.index(f">{name}</") for name in ("Olga Owner", "Max", "Zoe", "Ben")]
    assert positions == sorted(positions)


async def test_owner_sees_the_storage_of_the_company(
    coach: CoachClient, owner_page: Visitor, settings: Settings, services: Services
) -> None:
    plans = f"/coach/customers/{(await coach.create_customer())['_id']}/nutrition-plans"
    (await coach.send("POST", plans, data=form(PDF, "file", "plan.pdf"))).ok(201)

    page = (await owner_page.get("/app/settings/storage")).ok()
    page.says(f"Space {len(PDF)} bytes", "Files 1", "There is no limit.")
    assert "<progress" not in page.html

    limited = replace(services, storage_quota=StorageQuota(files=2_000, bytes=5_600_000_000))
    async with TestServer(create_app(settings, limited)) as server:
        visitor = Visitor(server)
        (await visitor.sign_in(str(coach.ctx.caller.email), PASSWORD)).ok()
        page = (await visitor.get("/app/settings/storage")).ok()
        await visitor.close()
    page.says(f"Space {len(PDF)} bytes of 5.6 GB", "Files 1 of 2,000", "Files over a limit are not accepted.")
    assert f'max="5600000000" value="{len(PDF)}"' in page.html


PAGE = "/app/settings/load-unit"


async def finished(coach: CoachClient, owner_page: Visitor, words: str) -> HtmlPage:
    """Run the job, and return the page that says so."""

    async def is_done() -> bool:
        await worker.run_due(coach.ctx.services, {load_unit.CONVERT: features.STEPS[load_unit.CONVERT]})
        return words in (await owner_page.get(PAGE)).ok().text

    await until(is_done, words)
    return await owner_page.get(PAGE)


async def test_owner_counts_and_converts_loads(coach: CoachClient, owner_page: Visitor, colleague: Colleague) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    await train(coach, ana, squat, (5, 100), plan=({"type": "reps"},))
    company = (await owner_page.get("/app/settings/company")).ok()
    assert PAGE in company.links
    refused = await owner_page.submit(company, "/app/settings/company", loadUnit="lb")
    refused.ok(409).says("loadUnit cannot change while loads are stored in it")

    page = (await owner_page.get(PAGE)).ok().says("All loads are stored in kilograms")
    await owner_page.submit(page, f"{PAGE}/count", loadUnit="lb")
    page = await finished(coach, owner_page, "Convert 4 loads to pounds?")
    page.says("1 workout", "2 personal records", "1 training maximum", "rounded to 0.1 lb")
    await owner_page.submit(page, PAGE, loadUnit="lb")
    (await finished(coach, owner_page, "Converted to pounds")).says("All loads are stored in pounds")
    (await owner_page.get("/app/settings/company")).ok()
    eli = await colleague("customers.view", "customers.edit")
    (await eli.get(PAGE)).ok(403)
