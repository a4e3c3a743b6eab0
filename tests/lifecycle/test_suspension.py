"""A suspended company: no access by any credential or link, no background work, and everything back when it resumes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from coaching_service import features
from coaching_service.core.database.context import Services
from coaching_service.core.errors import CompanySuspended, Conflict, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue, worker
from coaching_service.lifecycle import administration
from coaching_service.lifecycle.administration import Operator
from coaching_service.people import account, assistants
from coaching_service.people.customers import batch
from coaching_service.people.sessions import service as web_sessions
from tests.conftest import PASSWORD
from tests.core.test_uploads import PDF, form
from tests.support.assistants import authorize_assistant
from tests.support.attention import renew
from tests.support.check_ins import LONG_AGO, as_if_added_a_week_ago, check_in, run_job
from tests.support.client import CoachClient
from tests.support.service_process import until
from tests.support.visitor import Visitor

INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
Call = Callable[[], Awaitable[tuple[int, Any]]]


@pytest.fixture
def operator(services: Services) -> Operator:
    """The operator of the service under test."""
    return Operator(services, "root")


@pytest.fixture
async def visitor(server: TestServer) -> AsyncIterator[Visitor]:
    """A browser."""
    opened = Visitor(server)
    yield opened
    await opened.close()


async def accesses_of(coach: CoachClient, anonymous: CoachClient) -> dict[str, Call]:
    """Every way into a company, each with a credential or link of its own, by name."""
    ana = await coach.create_customer("Ana", email=f"{ObjectId()}@example.com", sendInvitation=False)
    path = f"/coach/customers/{ana['_id']}"
    plan = (await coach.send("POST", f"{path}/nutrition-plans", data=form(PDF, "file", "plan.pdf"))).ok(201)
    calendar = (await coach.post(f"{path}/calendar-link")).ok(201)
    assistant = (await authorize_assistant(coach.ctx)).tokens
    email = str(coach.ctx.caller.email)
    sessions = (await anonymous.post("/auth/login", {"email": email, "password": PASSWORD})).ok()
    coach_session, client_session = anonymous.with_bearer(sessions["accessToken"]), await coach.as_client(ana)
    bearer = {"Authorization": f"Bearer {assistant.access}"}
    accept = {"Accept": "application/json, text/event-stream"}

    def reply(sender: CoachClient, method: str, target: str, **options: Any) -> Call:
        async def send() -> tuple[int, Any]:
            answer = await sender.send(method, target.removeprefix("http://coaching.test"), **options)
            return answer.status, answer.json

        return send

    return {
        "key": reply(coach, "GET", "/coach/account"),
        "key that writes": reply(coach, "POST", f"{path}/notes", json={"content": "x"}),
        "session of a coach": reply(coach_session, "GET", "/coach/account"),
        "session of a client": reply(client_session, "GET", "/me"),
        "sign-in": reply(anonymous, "POST", "/auth/login", json={"email": email, "password": PASSWORD}),
        "link to a file": reply(anonymous, "GET", plan["url"]),
        "calendar": reply(anonymous, "GET", calendar["url"]),
        "assistant": reply(anonymous, "POST", "/mcp", json=INITIALIZE, headers=bearer | accept),
        "key of an assistant": reply(coach, "POST", "/mcp", json=INITIALIZE, headers=accept),
    }


async def test_every_credential_and_link_is_refused_until_the_company_resumes(
    coach: CoachClient, other_company: CoachClient, anonymous: CoachClient, operator: Operator
) -> None:
    """The next request is refused: nothing is cached. Other companies are not affected, and nothing is lost."""
    company_id = coach.ctx.company_id
    anonymous.checks = False
    accesses = await accesses_of(coach, anonymous)
    before = {name: (await call())[0] for name, call in accesses.items()}
    assert set(before.values()) <= {200, 201}, before

    await administration.suspend_company(operator, company_id, "not paid")
    for name, call in accesses.items():
        status, body = await call()
        assert (status, body and body.get("code")) == (403, "COMPANY_SUSPENDED"), f"{name}: {status} {body}"
        assert "not paid" not in str(body), "the reason is the operator's"
    (await other_company.get("/coach/account")).ok()
    with pytest.raises(Conflict):
        await administration.suspend_company(operator, company_id, "again")

    await administration.resume_company(operator, company_id)
    assert {name: (await call())[0] for name, call in accesses.items()} == before
    with pytest.raises(Conflict):
        await administration.resume_company(operator, company_id)
    with pytest.raises(NotFound):
        await administration.suspend_company(operator, ObjectId(), "unknown")


async def test_tokens_are_renewed_again_after_a_suspension(
    coach: CoachClient, anonymous: CoachClient, operator: Operator
) -> None:
    """A refresh token, of a session or an assistant, is not spent by being refused."""
    anonymous.checks = False
    credentials = {"email": str(coach.ctx.caller.email), "password": PASSWORD}
    refresh = {"refreshToken": (await anonymous.post("/auth/login", credentials)).ok()["refreshToken"]}
    assistant = (await authorize_assistant(coach.ctx)).tokens
    await administration.suspend_company(operator, coach.ctx.company_id, "x")
    with pytest.raises(CompanySuspended):
        await assistants.refresh_tokens(coach.ctx.services, str(assistant.refresh), "a-client")
    refused = (await anonymous.post("/auth/refresh", refresh)).refused(403)
    assert refused["code"] == "COMPANY_SUSPENDED"
    await administration.resume_company(operator, coach.ctx.company_id)
    (await anonymous.post("/auth/refresh", refresh)).ok()
    await assistants.refresh_tokens(coach.ctx.services, str(assistant.refresh), "a-client")


async def test_pages_say_so_and_the_session_continues(coach: CoachClient, visitor: Visitor, operator: Operator) -> None:
    ana = await coach.create_customer("Ana")
    home = (await visitor.sign_in(str(coach.ctx.caller.email), PASSWORD)).ok()
    await administration.suspend_company(operator, coach.ctx.company_id, "not paid")

    page = (await visitor.get("/app")).ok(403).says("Suspended", "ask the operator")
    assert "not paid" not in page.html
    (await visitor.get("/app/sign-in")).ok().says("Sign in")
    assert "coach_session" in visitor.cookies()
    client = await web_sessions.start_for_customer(coach.ctx, ObjectId(ana["_id"]), "a phone")
    await administration.resume_company(operator, coach.ctx.company_id)
    assert (await visitor.get("/app")).ok().path == home.path

    await administration.suspend_company(operator, coach.ctx.company_id, "not paid")
    visitor.keep(coach_session=client.token)
    (await visitor.get("/train")).ok(403).says("Suspended")
    await administration.resume_company(operator, coach.ctx.company_id)
    (await visitor.get("/train")).ok()


async def test_jobs_pause_and_continue_at_once(coach: CoachClient, services: Services, operator: Operator) -> None:
    """A mail of a suspended company waits; that an attempt was interrupted before is not forgotten."""
    ran: list[ObjectId | None] = []

    async def step(_: Services, job: queue.Job) -> None:
        ran.append(job.id)

    async def erase(_: Services, job: queue.Job) -> None:
        ran.append(job.id)

    kinds: queue.Steps = {f"{name} {ObjectId()}": each for name, each in (("mail", step), ("erase", erase))}
    mail_kind, erasure_kind = kinds
    steps = account.pausing(kinds, unpaused=(erasure_kind,))
    await administration.suspend_company(operator, coach.ctx.company_id, "x")
    mail_id = await queue.enqueue(coach.ctx, mail_kind, {})
    erasure_id = await queue.enqueue(coach.ctx, erasure_kind, {})
    await coach.ctx.db["jobs"].update_one({"_id": mail_id}, {"$set": {"attempts": 1}})

    await worker.run_due(services, steps)
    assert ran == [erasure_id]
    paused = await coach.ctx.db["jobs"].find_one({"_id": mail_id})
    assert paused is not None
    assert (paused["attempts"], paused["isPaused"]) == (1, True)
    await worker.run_due(services, steps)
    assert ran == [erasure_id], "it is not due for minutes"

    await administration.resume_company(operator, coach.ctx.company_id)
    await worker.run_due(services, steps)
    assert ran == [erasure_id, mail_id]


async def test_figures_and_check_ins_wait_and_follow_at_once(
    coach: CoachClient, services: Services, operator: Operator
) -> None:
    """What the jobs of all companies do for their clients; those of a suspended company do not block the others."""
    ana, company_id = await coach.create_customer("Ana"), coach.ctx.company_id
    await check_in(coach, ana)
    await as_if_added_a_week_ago(coach, ana)
    await administration.suspend_company(operator, company_id, "x")
    own = {"companyId": company_id}
    outdated = {"customerRoleData.complianceRate7d": 55, "figuresUntil": LONG_AGO}
    await services.db["customers"].update_many(own, {"$set": outdated})

    async def renewed() -> tuple[int | None, bool, int]:
        await renew(coach)
        await run_job(coach)
        [stored] = await services.db["customers"].find(own).to_list(None)
        blocks = await services.db["workoutBlocks"].count_documents(own)
        return stored["customerRoleData"]["complianceRate7d"], stored["figuresUntil"] > LONG_AGO, blocks

    assert await renewed() == (55, True, 21)
    await administration.resume_company(operator, company_id)

    async def is_renewed() -> bool:  # a client that the worker of the application marks meanwhile stays due
        return await renewed() == (None, True, 28)

    await until(is_renewed, "the figures are renewed")


async def test_the_sandbox_of_a_suspended_company_is_suspended_too(
    coach: CoachClient, other_company: CoachClient, operator: Operator
) -> None:
    sandbox, companies = other_company, coach.ctx.db["companies"]  # without sample data, which takes seconds
    await companies.update_one({"_id": sandbox.ctx.company_id}, {"$set": {"sandboxOf": coach.ctx.company_id}})
    await companies.update_one({"_id": coach.ctx.company_id}, {"$set": {"sandboxId": sandbox.ctx.company_id}})
    (await sandbox.get("/coach/account")).ok()
    await administration.suspend_company(operator, coach.ctx.company_id, "x")
    (await sandbox.get("/coach/account")).refused(403)
    await administration.resume_company(operator, coach.ctx.company_id)
    (await sandbox.get("/coach/account")).ok()


async def test_a_request_that_waits_for_events_is_refused_when_it_ends(coach: CoachClient, operator: Operator) -> None:
    signals, company_id = coach.ctx.services.number_signals, coach.ctx.company_id
    waiting = asyncio.create_task(coach.get("/coach/events", limit=10, wait=20))
    await until(lambda: signals.count(company_id), "it waits", 10)
    await administration.suspend_company(operator, company_id, "x")
    await batch.create_customer(coach.ctx, {"name": "Ana"})
    (await waiting).refused(403)


async def test_actions_are_recorded_and_outlive_the_company(coach: CoachClient, operator: Operator) -> None:
    company_id = coach.ctx.company_id
    await administration.suspend_company(operator, company_id, "not paid")
    await administration.erase_company(operator, company_id)
    (await coach.get("/coach/account")).refused(401)

    async def are_coaches_erased() -> bool:
        await worker.run_due(coach.ctx.services, features.STEPS)  # unless the application has the job
        return await coach.ctx.db["coaches"].count_documents({"companyId": company_id}) == 0

    await until(are_coaches_erased, "the coaches are erased", 60)
    actions = await coach.ctx.db["operatorActions"].find({"subjectId": company_id}).to_list(None)
    assert [(each["action"], each["operator"]) for each in actions] == [
        ("company.suspended", "root"),
        ("company.erased", "root"),
    ]
