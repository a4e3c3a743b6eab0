"""Pages of settings and libraries: API keys, team, company, exercises, programs, progress."""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import datetime, timedelta

from aiohttp.test_utils import TestServer

from coaching_service.app import create_app
from coaching_service.core.database.context import Services
from coaching_service.core.media import StorageQuota
from coaching_service.people.team import service as team
from coaching_service.settings import Settings
from tests.conftest import PASSWORD
from tests.core.test_uploads import PDF, form
from tests.support.assistants import authorize_assistant
from tests.support.client import MONDAY, UNKNOWN, CoachClient
from tests.support.declared_world import make_world
from tests.support.mcp_client import TODAY, McpHttpClient, tool_change
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import NewVisitor

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


async def test_employee_is_added_updated_and_removed(
    coach: CoachClient, owner_page: Visitor, new_visitor: NewVisitor
) -> None:
    email = f"eli-{secrets.token_hex(6)}@example.com"
    page = await owner_page.get(f"{TEAM}/new")
    taken = await owner_page.submit(page, f"{TEAM}/new", name="Eli", email=str(coach.ctx.caller.email))
    taken.ok(409).says("This e-mail address is already used to sign in.")
    joined = await owner_page.submit(
        taken, f"{TEAM}/new", email=email, permissions=["customers.view"], customersScope="assigned"
    )
    joined.ok().says("Eli added.", "Assigned", "1 of 24")
    (eli,) = (await (await coach.interactive()).get("/coach/employees")).ok()
    await coach.create_customer("Ana", assignedTo=eli["_id"])

    here = f"{TEAM}/{eli['_id']}"
    changed = await owner_page.submit(
        await owner_page.get(here), here, permissions=["customers.view", "customers.edit"], customersScope="all"
    )
    changed.says("Changes to Eli saved.", "2 of 24")
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


async def test_exercises_are_searched_and_created(owner_page: Visitor) -> None:
    (await owner_page.get("/app/exercises?keywords=nordic")).ok().says("Nordic")
    (await owner_page.get("/app/exercises?keywords=zzz")).says("No exercise matches")
    (await owner_page.get("/app/exercises?type=my")).says("No exercise matches")
    page = await owner_page.get("/app/exercises/new")
    muscle = page.html.partition('name="primaryMuscles" value="')[2].partition('"')[0]

    created = await owner_page.submit(
        page, "/app/exercises/new", name="Garage Squat", primaryMuscles=[muscle], level="expert"
    )

    created.ok().says("Garage Squat added to your library.", "Expert")
    gone = await owner_page.submit(created, created.forms[-1].action)
    gone.says("Exercise deleted.")


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


async def test_progress_page_shows_charts_and_values(coach: CoachClient, owner_page: Visitor) -> None:
    world = await make_world(coach)
    path = f"/coach/customers/{world['customerId']}/metrics-sets/{world['metricsSetId']}/entries"
    today = coach.ctx.caller.today()
    for days, value in ((30, 82), (10, 80.5)):
        entry = {"metricId": world["metricId"], "date": str(today - timedelta(days=days)), "value": value}
        (await coach.post(path, entry)).ok(201)
    here = f"/app/customers/{world['customerId']}/progress"

    page = (await owner_page.get(here)).ok().says("80.5", "-1.5", "since")
    assert page.html.count('<svg class="chart"') == 2, "the metric and the calendar; no session is logged yet"
    assert '<path class="line"' in page.html
    saved = await owner_page.submit(page, here, date=str(today), value="80")
    saved.says("Value saved.", "80", "-2")
    (await owner_page.submit(page, here, date=str(today), value="heavy")).ok(400).says(
        "This must be a number such as 77.5 or 77,5"
    )
    for weeks in ("4", "26", "52", "nonsense"):
        (await owner_page.get(f"{here}?weeks={weeks}")).ok()


async def test_employee_sees_only_assigned_clients(
    coach: CoachClient, new_visitor: NewVisitor, password_hash: str
) -> None:
    email = f"eli-{secrets.token_hex(6)}@example.com"
    await team.create_employee(coach.ctx, "Eli", email, ["customers.view"], "assigned", password_hash)
    ana = await coach.create_customer("Ana")
    eli = new_visitor()

    (await eli.sign_in(email, PASSWORD)).ok()
    (await eli.get("/app/customers")).says("No clients yet", "You see the clients assigned to you.")
    for page in ("", "/progress", "/notes", "/photos", "/records", "/details"):
        (await eli.get(f"/app/customers/{ana['_id']}{page}")).ok(403).says("This client is assigned to another coach.")


async def test_assistant_is_disconnected(coach: CoachClient, owner_page: Visitor) -> None:
    here = "/app/settings/assistants"
    (await owner_page.get(here)).ok().says("No assistants connected", "http://coaching.test/mcp")
    claude = await authorize_assistant(coach.ctx)
    name = claude.grant["clientName"]
    path = f"{here}/{claude.grant['_id']}/disconnect"
    assert path in (await owner_page.get(here)).says(name).links

    confirmation = (await owner_page.get(path)).says(f"Disconnect the assistant “{name}”?", "loses access immediately")
    (await owner_page.submit(confirmation, path)).ok().says(f"{name} disconnected.", "No assistants connected")

    (await owner_page.submit(confirmation, path)).ok().says("The form was sent twice and processed once.")


async def test_selected_permissions_restrict_an_api_key(owner_page: Visitor, anonymous: CoachClient) -> None:
    created = await owner_page.submit(await owner_page.get(KEYS), KEYS, name="One", permissions=["customers.view"])
    created.ok().says("1 permission")
    assert (await anonymous.with_key(secret_on(created)).get("/me")).ok()["permissions"] == ["customers.view"]


async def test_key_page_has_a_switch_for_approval_in_the_chat(coach: CoachClient, owner_page: Visitor) -> None:
    for chat in (None, "true"):
        await owner_page.submit(await owner_page.get(KEYS), KEYS, name=f"Key {chat}", confirmInChat=chat)
    keys = (await (await coach.interactive()).get("/coach/api-keys")).ok()
    chosen = {key["name"]: key["restrictions"]["confirmInChat"] for key in keys}
    assert (chosen["Key None"], chosen["Key true"]) == (False, True)


async def test_assistants_contact_people_only_with_a_key_that_says_so(coach: CoachClient, owner_page: Visitor) -> None:
    for outreach in (None, "true"):
        await owner_page.submit(await owner_page.get(KEYS), KEYS, name=f"Key {outreach}", outreach=outreach)
    keys = (await (await coach.interactive()).get("/coach/api-keys")).ok()
    chosen = {key["name"]: key["restrictions"]["outreach"] for key in keys}
    assert (chosen["Key None"], chosen["Key true"]) == (False, True)


async def test_api_key_expires_at_the_end_of_the_day_in_the_company_time_zone(
    coach: CoachClient, owner_page: Visitor
) -> None:
    await (await coach.interactive()).patch("/coach/account", {"timezone": "Pacific/Kiritimati"})
    page = await owner_page.get(KEYS)
    (await owner_page.submit(page, KEYS, name="Long", expires="9999-12-31")).ok(400).says("must not be after 2999")
    (await owner_page.submit(page, KEYS, name="Reader", expires="2030-06-01")).ok().says("Expires Sat 1 Jun 2030")
    (key,) = [k for k in (await (await coach.interactive()).get("/coach/api-keys")).ok() if k["name"] == "Reader"]
    assert key["restrictions"]["expiresAt"] == "2030-06-01T09:59:59.999Z"


async def test_employee_cannot_give_an_api_key_more_permissions_than_their_own(
    coach: CoachClient, new_visitor: NewVisitor, password_hash: str
) -> None:
    email = f"eli-{secrets.token_hex(6)}@example.com"
    await team.create_employee(coach.ctx, "Eli", email, ["customers.view"], "all", password_hash)
    eli = new_visitor()
    (await eli.sign_in(email, PASSWORD)).ok()
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


async def test_conflicting_permission_change_shows_the_saved_value(
    coach: CoachClient, owner_page: Visitor, password_hash: str
) -> None:
    hired = await team.create_employee(
        coach.ctx, "Eli", f"{secrets.token_hex(6)}@example.com", [], "all", password_hash
    )
    here = f"{TEAM}/{hired['_id']}"
    page = await owner_page.get(here)
    (await owner_page.submit(await owner_page.get(here), here, permissions=["forms.view"])).says(
        "Changes to Eli saved."
    )
    stale = await owner_page.submit(page, here, permissions=["metrics.view"])
    stale.ok(409).says("Saved value: Forms: view")
    (await owner_page.submit(stale, here)).ok().says("Changes to Eli saved.")


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
    for number in range(51):
        await coach.create_customer(f"Client {number:02}")
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
        employee = await team.create_employee(
            coach.ctx, name, f"{secrets.token_hex(6)}@example.com", [], "all", password_hash
        )
        await coaches.update_one({"_id": employee["_id"]}, {"$set": {"createdAt": datetime.fromisoformat(added_at)}})

    page = await owner_page.get(TEAM)

    table = page.html.partition("<tbody>")[2]
    positions = [table.index(f">{name}</") for name in ("Olga Owner", "Max", "Zoe", "Ben")]
    assert positions == sorted(positions)


async def test_assistants_are_listed_by_time_connected(coach: CoachClient, owner_page: Visitor) -> None:
    for name, connected_at in (("Second", "2026-01-02"), ("Third", "2026-01-03"), ("First", "2026-01-01")):
        assistant = await authorize_assistant(coach.ctx, name)
        await coach.ctx.db["assistantGrants"].update_one(
            {"_id": assistant.grant["_id"]}, {"$set": {"createdAt": datetime.fromisoformat(connected_at)}}
        )

    page = await owner_page.get("/app/settings/assistants")

    positions = [page.html.index(f"<b>{name}</b>") for name in ("First", "Second", "Third")]
    assert positions == sorted(positions)


async def test_disconnecting_an_assistant_is_audited(coach: CoachClient, owner_page: Visitor) -> None:
    assistant = await authorize_assistant(coach.ctx)
    path = f"/app/settings/assistants/{assistant.grant['_id']}/disconnect"

    await owner_page.submit(await owner_page.get(path), path)

    entries = await coach.ctx.db["audit"].find({"companyId": coach.ctx.company_id}).to_list(None)
    assert [entry["action"] for entry in entries].count("assistant.revoked") == 1


async def test_page_of_an_assistant_shows_what_it_has_changed_with_undo(
    coach: CoachClient, owner_page: Visitor, public_server: TestServer
) -> None:
    ana = await coach.create_customer()
    grant = await authorize_assistant(coach.ctx, "Claude")
    other = await authorize_assistant(coach.ctx, "Other")
    async with McpHttpClient(public_server, {"Authorization": f"Bearer {grant.tokens.access}"}) as mcp:
        squat = await coach.create_exercise()
        exercises = [{"exerciseId": squat["_id"], "sets": [{"reps": 5}]}]
        arguments = {"customerId": ana["_id"], "date": TODAY, "name": "Legs", "exercises": exercises}
        change = tool_change(await mcp.call("create_workout", **arguments))
    await coach.wait_until_numbered(change["changeId"])
    path = f"/app/settings/assistants/{grant.grant['_id']}"
    listed = (await owner_page.get("/app/settings/assistants")).ok()
    assert f'href="{path}"' in listed.html

    page = (await owner_page.get(path)).ok().says("Claude", "Read, change, contact people", "Workout created", "Ana")
    (await owner_page.get(f"/app/settings/assistants/{other.grant['_id']}")).ok().says("Nothing changed")
    undo = next(form for form in page.forms if form.action.endswith("/undo"))
    page = (await owner_page.submit(page, undo.action)).ok().says("Undone.", "Workout created", "Undone")
    assert page.path == path
    assert undo.action not in [form.action for form in page.forms]
    assert await coach.calendar(ana, TODAY, TODAY) == []
    (await owner_page.get(f"{path}?after=wrong")).ok().says("Workout created")
    (await owner_page.get(f"/app/settings/assistants/{UNKNOWN}")).ok(404)


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
