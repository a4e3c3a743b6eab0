"""Sessions of clients on /train: how long they last, where they are valid, and how they end."""

from __future__ import annotations

import html
import json
import re
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.people.sessions import service as sessions
from tests.support.client import CoachClient
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import ClientPage, NewVisitor

DAYS_90 = 90 * 24 * 60 * 60


async def stored_session(coach: CoachClient) -> Any:
    return await coach.ctx.db["sessions"].find_one({"companyId": coach.ctx.company_id, "kind": "customer"})


@pytest.mark.parametrize("header", ["X-Live", "X-Saves-Page"])
async def test_what_a_script_reads_by_itself_sets_no_cookie(
    coach: CoachClient, client_page: ClientPage, header: str
) -> None:
    """Another session may have begun since, which its cookies would replace or end."""
    ana = await client_page(coach, await coach.create_customer("Ana"))
    assert (await ana.get("/train", headers={header: "1"})).ok().cookies == []
    await coach.ctx.db["sessions"].delete_one({"_id": (await stored_session(coach))["_id"]})
    assert [c for c in (await ana.get("/train", headers={header: "1"})).cookies if c.startswith("coach_session")] == []


async def test_session_lasts_90_days_from_the_last_request(coach: CoachClient, client_page: ClientPage) -> None:
    ana = await client_page(coach, await coach.create_customer("Ana"))
    page = await ana.get("/train")
    (cookie,) = [each for each in page.ok().cookies if each.startswith("coach_session=")]
    assert {f"Max-Age={DAYS_90}", "HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))

    almost_over = now() + timedelta(days=1)
    ended = {"$set": {"access.0.until": almost_over, "expiresAt": almost_over}}
    await coach.ctx.db["sessions"].update_one({"_id": (await stored_session(coach))["_id"]}, ended)
    (await ana.get("/train")).ok()

    extended = await stored_session(coach)
    for end in (extended["access"][0]["until"], extended["expiresAt"]):
        assert timedelta(days=89, hours=23) < end - now() <= timedelta(days=90)
    assert now() - extended["lastUsedAt"] < timedelta(minutes=1)

    form = await ana.get("/train/settings/preferences")
    over = now() - timedelta(seconds=1)
    await coach.ctx.db["sessions"].update_one({"_id": extended["_id"]}, {"$set": {"access.0.until": over}})
    assert (await ana.get("/train")).path == "/app/sign-in?next=/train"
    company = coach.ctx.caller.company.name
    again = await ana.submit(form, "/train/settings/preferences")
    again.ok(401).says("Your session has ended", f"Sign in to {company} to return")
    link = (await ana.get("/app/sign-in?next=/train/calendar")).ok().says(f"To your training with {company}.")
    assert f"<title>Sign in · {company}</title>" in link.html
    ana.keep(coach_company=ana.cookies()["coach_company"][:-2] + "xx")
    (await ana.get("/app/sign-in?next=/train")).ok().says("To your training plan.")


async def test_a_signed_out_browser_names_no_company(coach: CoachClient, client_page: ClientPage) -> None:
    ana = await client_page(coach, await coach.create_customer("Ana"))
    await ana.submit(await ana.get("/train/settings"), "/app/sign-out")
    (await ana.get("/app/sign-in?next=/train")).ok().says("To your training plan.")
    assert "coach_company" not in ana.cookies()


async def application_name(visitor: Visitor, page: HtmlPage) -> str:
    """The name with which a phone installs the application from a page."""
    (address,) = re.findall(r'<link rel="manifest" href="([^"]+)" crossorigin="use-credentials">', page.html)
    manifest = (await visitor.get(html.unescape(address))).ok()
    assert manifest.headers["Content-Type"] == "application/manifest+json"
    return str(json.loads(manifest.html)["name"])


async def test_a_link_of_a_mail_names_the_company_on_an_unknown_device(
    coach: CoachClient, new_visitor: NewVisitor
) -> None:
    vault, company, visitor = coach.ctx.services.vault, coach.ctx.caller.company.name, new_visitor()
    path = f"/train/messages?{urlencode({'company': vault.seal_value('company', company)})}"

    page = (await visitor.get(path)).ok().says(f"To your training with {company}.")

    assert f"<title>Sign in · {company}</title>" in page.html
    (await visitor.get("/train")).ok().says(f"To your training with {company}.")
    assert await application_name(visitor, page) == company
    for sealed in (vault.seal_value("notice", company), "eyJhIjoxfQ==.x", "é.x", "."):
        query, stranger = urlencode({"company": sealed}), new_visitor()
        page = (await stranger.get(f"/train/messages?{query}")).ok().says("To your training plan.")
        assert await application_name(stranger, page) == "Training"
        direct = (await stranger.get(f"/train/manifest.webmanifest?{query}")).ok()
        assert json.loads(direct.html)["name"] == "Training"


async def test_session_is_not_written_by_every_request(coach: CoachClient, client_page: ClientPage) -> None:
    ana = await client_page(coach, await coach.create_customer("Ana"))
    (await ana.get("/train")).ok()
    first = await stored_session(coach)
    (await ana.get("/train")).ok()
    assert await stored_session(coach) == first


async def test_session_is_not_accepted_by_rest(
    coach: CoachClient, client_page: ClientPage, anonymous: CoachClient
) -> None:
    ana = await client_page(coach, await coach.create_customer("Ana"))
    (await ana.get("/customer/me")).ok(401)
    (await anonymous.with_bearer(ana.cookies()["coach_session"]).get("/customer/me")).refused(401)


async def test_archived_client_is_signed_out(coach: CoachClient, client_page: ClientPage) -> None:
    customer = await coach.create_customer("Ana")
    ana = await client_page(coach, customer)
    (await ana.get("/train")).ok()
    (await coach.post("/coach/customers/bulk/archive", {"ids": [customer["_id"]]})).ok()
    assert (await ana.get("/train")).path.startswith("/app/sign-in")


async def test_sessions_are_listed_and_ended(coach: CoachClient, client_page: ClientPage) -> None:
    customer, other = await coach.create_customer("Ana"), await coach.create_customer("Bea")
    phone = await client_page(coach, customer)
    await client_page(coach, customer)
    await client_page(coach, other)
    token = phone.cookies()["coach_session"]
    principal = await sessions.find_web_principal(coach.ctx.services, token)
    assert principal is not None
    ctx = coach.ctx.acting_as(principal)

    listed = await sessions.list_own_sessions(ctx)
    assert [(session["isCurrent"], session["device"]) for session in listed] == [
        (True, "Test browser"),
        (False, "Test browser"),
    ]
    await sessions.end_own_session(ctx, listed[1]["_id"])
    assert [session["isCurrent"] for session in await sessions.list_own_sessions(ctx)] == [True]
    assert await coach.ctx.db["sessions"].count_documents({"subjectId": ObjectId(other["_id"])}) == 1


async def test_sign_out_clears_what_the_browser_stored(coach: CoachClient, client_page: ClientPage) -> None:
    ana = await client_page(coach, await coach.create_customer("Ana"))
    csrf = (await ana.get("/train")).html.partition('data-csrf="')[2].partition('"')[0]
    out = await ana.send("POST", "/app/sign-out", data={"csrf": csrf}, follow=False)
    assert out.ok(303).headers["Clear-Site-Data"] == '"storage"'
    assert await stored_session(coach) is None


async def test_script_gets_json(coach: CoachClient, client_page: ClientPage) -> None:
    customer = await coach.create_customer("Ana")
    ana = await client_page(coach, customer)
    csrf = (await ana.get("/train")).html.partition('data-csrf="')[2].partition('"')[0]
    scripted = {"Accept": "application/json", "Sec-Fetch-Site": "same-origin"}

    stale = await ana.send("POST", "/app/sign-out", data={"csrf": "x" * 43}, headers=scripted)
    assert stale.ok(403).headers["Content-Type"].startswith("application/json")
    fresh = json.loads(stale.html)["csrf"]
    assert fresh != csrf
    assert customer["_id"] in stale.html
    elsewhere = await ana.send(
        "POST", "/app/sign-out", data={"csrf": csrf}, headers={**scripted, "Sec-Fetch-Site": "cross-site"}
    )
    assert "CROSS_SITE_FORM" in elsewhere.ok(403).html
    assert '"csrf"' not in elsewhere.html
    done = await ana.send("POST", "/app/sign-out", data={"csrf": fresh}, headers=scripted)
    assert '"location":"/app/sign-in?next=/train"' in done.ok().html.replace(" ", "")
    assert done.headers["Clear-Site-Data"] == '"storage"'
