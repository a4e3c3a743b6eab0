"""Webhooks of applications: in one company, and one for all companies that allow the application (contract, part 14)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from aiohttp.test_utils import TestServer, unused_port

from coaching_service.app import create_app
from coaching_service.core.auth import CUSTOMERS, WEBHOOKS, Principal
from coaching_service.core.database.context import Services
from coaching_service.core.ids import ObjectId
from coaching_service.people import team
from tests.support.application_program import allowed_program
from tests.support.assistants import authorize_assistant
from tests.support.client import CoachClient
from tests.support.oauth_flow import signed_in
from tests.support.own_application import OwnApplication
from tests.support.service_process import until
from tests.support.training import client_path
from tests.support.webhook_deliveries import NewCoach, deliveries_of, received, settled, subscribe
from tests.support.webhooks import Receiver

Json = dict[str, Any]
SCOPES = ("customers:read", "webhooks", "offline_access")


async def allow(coach: CoachClient, client_id: str, *scopes: str, by: Principal | None = None) -> CoachClient:
    """Return an application that a coach of the company, by default the owner, allows these scopes."""
    ctx = coach.ctx if by is None else coach.ctx.acting_as(by)
    allowed = await authorize_assistant(ctx, "Planner", (), rest_scopes=scopes or SCOPES, client_id=client_id)
    return coach.with_bearer(allowed.tokens.access)


async def revoke(coach: CoachClient, client_id: str) -> None:
    """Revoke the access of an application, as the owner does."""
    session = await coach.interactive()
    for grant in (await session.get("/coach/applications")).ok():
        if grant["clientId"] == client_id:
            (await session.delete(f"/coach/applications/{grant['_id']}")).ok(204)


def seen(receiver: Receiver) -> list[tuple[str, str]]:
    """The company and the client of each message."""
    return [(message.event["companyId"], message.event["customerId"]) for message in receiver.messages]


async def test_one_webhook_receives_the_events_of_all_companies_that_allow_its_application(
    new_coach: NewCoach, receiver: Receiver, own_services: Services
) -> None:
    ours, theirs, later, stranger = [await new_coach() for _ in range(4)]
    client_id = f"planner {ObjectId()}"
    planner, planner_there = await allow(ours, client_id), await allow(theirs, client_id)
    for refused in (ours, await ours.interactive()):
        body = (await refused.post("/coach/webhooks", {"url": receiver.url, "allCompanies": True})).refused(400)
        assert (body["errors"][0]["field"], body["errors"][0]["code"]) == ("allCompanies", "ONLY_APPLICATIONS")
    new = {"url": receiver.url, "types": ["customer.created"], "allCompanies": True}
    replies = await asyncio.gather(*(each.post("/coach/webhooks", new) for each in (planner, planner_there)))
    assert sorted(reply.status for reply in replies) == [201, 409], "one address and secret for all companies"
    [webhook] = [reply.json for reply in replies if reply.status == 201]
    assert (await planner_there.post("/coach/webhooks", new)).refused(409)["code"] == "TOO_MANY_WEBHOOKS"
    secret, path = webhook.pop("secret"), f"/coach/webhooks/{webhook['_id']}"
    assert webhook["allCompanies"] is True

    ana, bo = await ours.create_customer("Ana"), await theirs.create_customer("Bo")
    await stranger.create_customer("Not allowed")
    await received(receiver, 2)
    planner_later = await allow(later, client_id)
    cy = await later.create_customer("Cy")
    expected = {
        (str(coach.ctx.company_id), client["_id"]) for coach, client in ((ours, ana), (theirs, bo), (later, cy))
    }
    assert set(seen(receiver)) <= expected and {e["type"] for e in [m.verify(secret) for m in receiver.messages]}
    await received(receiver, 3)
    assert set(seen(receiver)) == expected

    assert [(await each.get("/coach/webhooks")).ok() for each in (planner, planner_later)] == [[webhook], [webhook]]
    assert (await ours.get("/coach/webhooks")).ok() == [], "it is not the company's"
    (await ours.get(path)).refused(404)
    assert (await (await allow(ours, f"other {ObjectId()}")).get("/coach/webhooks")).ok() == []
    [delivery] = await settled(planner_there, webhook, "succeeded")
    assert (delivery["webhookId"], delivery["customerId"]) == (webhook["_id"], bo["_id"])
    (await planner.post(f"{path}/deliveries/{delivery['_id']}/redeliver")).refused(404)
    (await planner_there.post(f"{path}/deliveries/{delivery['_id']}/redeliver")).ok()
    await received(receiver, 4)

    changed = (await planner_later.patch(path, {"types": ["note.created"], "version": 0})).ok()
    assert (changed["types"], changed["version"]) == (["note.created"], 1)
    (await planner.patch(path, {"description": "Old", "version": 0})).refused(409)
    rotated = (await planner_there.post(f"{path}/rotate-secret")).ok()
    (await ours.post(client_path(ana, "notes"), {"content": "Hello"})).ok(201)
    note = (await received(receiver, 5))[-1]
    assert note.verify(secret) == note.verify(rotated["secret"])
    assert note.event["type"] == "note.created"
    sent = (await planner_later.post(f"{path}/test")).ok(201)
    test = (await received(receiver, 6))[-1].verify(secret)
    assert (test["companyId"], test["data"]) == (str(later.ctx.company_id), {"webhookId": webhook["_id"]})
    assert sent["webhookId"] == webhook["_id"]

    receiver.respond = lambda _message, _before: 410
    (await theirs.post(client_path(bo, "notes"), {"content": "Hello"})).ok(201)

    async def is_disabled() -> bool:
        return (await planner.get(path)).ok()["disabledAt"] is not None

    await until(is_disabled, "the receiver is gone, for all companies")
    (await ours.post(client_path(ana, "notes"), {"content": "Not sent"})).ok(201)

    async def is_numbered() -> bool:
        return len((await ours.get("/coach/events", types="note.created")).ok()["docs"]) == 2

    await until(is_numbered, "what happens before the webhook is active again has its number")
    receiver.respond = lambda _message, _before: 200
    (await planner_later.patch(path, {"isActive": True})).ok()
    (await theirs.post(client_path(bo, "notes"), {"content": "Again"})).ok(201)
    again = (await received(receiver, 8))[-1].event
    assert (again["type"], again["customerId"]) == ("note.created", bo["_id"])
    (await planner.delete(path)).ok(204)
    assert (await planner_there.get("/coach/webhooks")).ok() == []
    assert await own_services.db["webhooks"].count_documents({"sharedId": ObjectId(webhook["_id"])}) == 0


async def test_application_receives_what_its_scopes_and_the_coach_may_see(
    coach: CoachClient, receiver: Receiver
) -> None:
    client_id = f"planner {ObjectId()}"
    reader = await allow(coach, f"reader {ObjectId()}", "customers:read")
    refused = (await reader.get("/coach/webhooks")).refused(403)
    assert (refused["code"], refused["scope"]) == ("SCOPE_MISSING", "webhooks")
    refused = (await reader.patch("/me", {"notifications": {"messages": False}})).refused(403)
    assert (refused["code"], refused["scope"]) == ("SCOPE_MISSING", "customers:write")
    eli = await team.create(coach.ctx, "Eli", f"{ObjectId()}@example.com", [CUSTOMERS.VIEW, WEBHOOKS], "assigned")
    planner = await allow(coach, client_id, by=await team.load_principal(coach.ctx, eli["_id"]))
    (await planner.post("/coach/webhooks", {"url": receiver.url, "types": ["key.created"]})).refused(403)
    webhook = await subscribe(planner, receiver)
    assert webhook["allCompanies"] is False
    assert [each["_id"] for each in (await planner.get("/coach/webhooks")).ok()] == [webhook["_id"]]
    assert (await coach.get("/coach/webhooks")).ok() == []

    await coach.create_customer("Not of Eli")
    ana = await coach.create_customer("Ana", assignedTo=str(eli["_id"]))
    (await coach.post("/exercises", {"name": "Press"})).ok(201)  # of an area without a scope
    bo = await coach.create_customer("Bo", assignedTo=str(eli["_id"]))
    await received(receiver, 2)
    await until(lambda: bo["_id"] in {each for _, each in seen(receiver)}, "what happened last has arrived")
    assert {each for _, each in seen(receiver)} == {ana["_id"], bo["_id"]}
    await settled(planner, webhook, "succeeded", len(receiver.messages))

    with_all = await allow(coach, client_id)
    cy = await coach.create_customer("Cy")
    await until(lambda: cy["_id"] in {each for _, each in seen(receiver)}, "the owner has allowed it too")
    assert len(await deliveries_of(with_all, webhook)) == len(receiver.messages)


async def test_revoking_ends_a_webhook_in_that_company_and_drops_what_waits(
    new_coach: NewCoach, receiver: Receiver, own_services: Services
) -> None:
    ours, theirs = await new_coach(), await new_coach()
    client_id = f"planner {ObjectId()}"
    planner, planner_there = await allow(ours, client_id), await allow(theirs, client_id)
    webhook = await subscribe(planner, receiver, allCompanies=True)
    own = await subscribe(planner, receiver, types=["note.created"], description="Only here")
    receiver.respond = lambda message, _: 500 if message.event["companyId"] == str(ours.ctx.company_id) else 200
    ana = await ours.create_customer("Ana")
    await settled(planner, webhook, "pending")
    await revoke(ours, client_id)
    receiver.respond = lambda _message, _before: 200
    receiver.messages.clear()
    (await ours.post(client_path(ana, "notes"), {"content": "Not for you"})).ok(201)
    bo = await theirs.create_customer("Bo")
    await until(lambda: bo["_id"] in {each for _, each in seen(receiver)}, "the other company goes on")
    planner = await allow(ours, client_id)
    dee = await ours.create_customer("Dee")
    await until(lambda: dee["_id"] in {each for _, each in seen(receiver)}, "it begins again with the new consent")
    assert [each for company, each in seen(receiver) if company == str(ours.ctx.company_id)] == [dee["_id"]]
    assert [each["_id"] for each in (await planner.get("/coach/webhooks")).ok()] == [webhook["_id"]]
    (await planner.get(f"/coach/webhooks/{own['_id']}")).refused(404)

    await revoke(ours, client_id)
    companies = {"clientId": client_id, "companyId": ours.ctx.company_id}
    await ours.create_customer("Eve")

    async def has_ended() -> bool:
        return await own_services.db["webhooks"].count_documents(companies) == 0

    await until(has_ended, "nothing is left of it in the company")
    assert (await planner_there.get("/coach/webhooks")).ok()[0]["_id"] == webhook["_id"]
    (await planner_there.delete(f"/coach/webhooks/{webhook['_id']}")).ok(204)


async def test_program_of_the_task_page_receives_the_events_of_every_company_that_allows_it(
    application: OwnApplication, new_coach: NewCoach, tmp_path: Path
) -> None:
    """From registration to the first events by webhook, as a reader would copy it."""
    port, own_port = unused_port(), unused_port()
    base = f"http://127.0.0.1:{port}"
    settings = application.settings.model_copy(update={"base_url": base})
    app = create_app(settings, replace(application.services, base_url=base))
    coach = await new_coach()
    server = TestServer(app, host="127.0.0.1", port=port)
    async with server:
        browser = await signed_in(server, coach)
        hook = {"PORT": str(own_port), "HOOK": f"http://127.0.0.1:{own_port}/hook"}
        async with allowed_program(tmp_path, base, browser, **hook) as printed, asyncio.timeout(60):
            assert [(await printed.readline()).decode() for _ in range(2)] == ["Clients: none\n", "Receiving\n"]
            ana = await coach.create_customer("Ana")
            expected = f"Webhook: {coach.ctx.company_id} customer.created {ana['_id']}\n"
            assert (await printed.readline()).decode() == expected
        await browser.close()


async def test_nothing_of_a_client_who_declines_applications_is_sent(new_coach: NewCoach, receiver: Receiver) -> None:
    ours = await new_coach()
    planner = await allow(ours, f"planner {ObjectId()}")
    await subscribe(planner, receiver, types=["note.created"])
    ana, bo = await ours.create_customer("Ana"), await ours.create_customer("Bo")
    client = await ours.as_client(ana)
    (await client.patch("/customer/me", {"consent": {"applications": False}})).ok()
    for customer in (ana, bo):
        (await ours.post(client_path(customer, "notes"), {"content": "Hello"})).ok(201)
    await received(receiver, 1)
    (await client.patch("/customer/me", {"consent": {"applications": True}})).ok()
    (await ours.post(client_path(ana, "notes"), {"content": "Again"})).ok(201)
    await received(receiver, 2)
    assert [customer for _, customer in seen(receiver)] == [bo["_id"], ana["_id"]]
