"""What the operator does with people, jobs and mail."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from email.message import EmailMessage
from typing import ClassVar, TypeVar

import pytest

from coaching_service import features
from coaching_service.core.database.context import Services
from coaching_service.core.errors import CompanySuspended, Conflict, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import mail, queue, worker
from coaching_service.core.jobs.mail import MailRejected
from coaching_service.lifecycle import administration
from coaching_service.lifecycle.administration import Operator
from coaching_service.people.customers import service as customers
from coaching_service.people.identities import service as identities
from tests.support.assistants import authorize_assistant
from tests.support.client import CoachClient

T = TypeVar("T")


@dataclass
class Rejecting:
    """A mail sender that rejects every mail for good."""

    repeatable: ClassVar[bool] = False
    sender: str = "us@example.com"

    async def send(self, _: EmailMessage, before_data: Callable[[], Awaitable[None]] | None = None) -> None:
        raise MailRejected("the recipient was rejected", permanent=True)


@pytest.fixture
def operator(services: Services) -> Operator:
    """The operator of the service under test."""
    return Operator(services, "root")


async def every(rows: AsyncIterator[T]) -> list[T]:
    return [row async for row in rows]


async def test_people_of_all_companies_are_identified_by_their_sign_in_address(
    coach: CoachClient, other_company: CoachClient, operator: Operator
) -> None:
    email = f"{ObjectId()}@example.com"
    ana = await other_company.create_customer("Ana", email=email, sendInvitation=False)
    with pytest.raises(NotFound):
        await administration.find(operator, email)
    token = await customers.create_first_access_token(other_company.ctx, ObjectId(ana["_id"]))
    await identities.create(other_company.ctx, ObjectId(ana["_id"]), "customer", email, token)

    client = await administration.find(operator, email.upper())
    assert (client["role"], client["name"], client["companyId"]) == ("CUSTOMER", "Ana", other_company.ctx.company_id)
    owner = await administration.find(operator, str(coach.ctx.caller.email))
    assert (owner["role"], owner["companyState"], owner["sessions"]) == ("OWNER", "active", 0)


async def test_sessions_and_assistants_end_and_keys_stay(coach: CoachClient, operator: Operator) -> None:
    session, email = await coach.interactive(), str(coach.ctx.caller.email)
    await authorize_assistant(coach.ctx)
    assert (await administration.end_sessions(operator, email))["sessions"] == 1
    (await session.get("/me")).refused(401)
    assert await coach.ctx.db["assistantGrants"].count_documents({"companyId": coach.ctx.company_id}) == 0
    (await coach.get("/me")).ok()


async def test_a_reset_is_sent_to_users_of_active_companies(coach: CoachClient, operator: Operator) -> None:
    jobs, company_id = coach.ctx.db["jobs"], coach.ctx.company_id
    email = str(coach.ctx.caller.email)
    await administration.send_reset(operator, email)
    assert await jobs.count_documents({"companyId": company_id, "kind": mail.SEND}) == 1
    await administration.suspend_company(operator, company_id, "x")
    with pytest.raises(CompanySuspended):
        await administration.send_reset(operator, email)


async def test_jobs_are_listed_by_state_retried_and_cancelled(
    coach: CoachClient, services: Services, operator: Operator
) -> None:
    async def fail(_: Services, __: queue.Job) -> None:
        raise RuntimeError("on purpose")

    kind = f"failing {ObjectId()}"
    job_id = await queue.enqueue(coach.ctx, kind, {})

    async def state() -> str:
        [job] = await every(administration.iterate_jobs(operator, kind, None))
        assert (job["id"], job["companyId"]) == (job_id, coach.ctx.company_id)
        return job["state"]

    assert await state() == "due"
    await worker.run_due(services, {kind: fail})
    assert await state() == "failing"
    assert await every(administration.iterate_jobs(operator, kind, "due")) == []
    before = await coach.ctx.db["jobs"].find_one({"_id": job_id})
    await administration.retry_job(operator, job_id)
    after = await coach.ctx.db["jobs"].find_one({"_id": job_id})
    assert before and after and after["runAfter"] < before["runAfter"]

    await coach.ctx.db["jobs"].update_one(
        {"_id": job_id}, [{"$set": {"lease": "x", "runAfter": {"$add": ["$$NOW", 60_000]}}}]
    )
    assert await state() == "running"
    with pytest.raises(Conflict):
        await administration.cancel_job(operator, job_id, permanent_kinds=())
    await coach.ctx.db["jobs"].update_one({"_id": job_id}, {"$set": {"lease": None}})
    with pytest.raises(Conflict):
        await administration.cancel_job(operator, job_id, permanent_kinds=(kind,))
    await administration.cancel_job(operator, job_id, permanent_kinds=features.ERASURES)
    assert await every(administration.iterate_jobs(operator, kind, None)) == []


async def test_a_mail_that_was_given_up_is_listed_and_sent_again(
    coach: CoachClient, services: Services, operator: Operator
) -> None:
    await coach.ctx.db["failedMails"].delete_many({"sealed": {"$exists": False}})  # placeholders of other tests
    to, identifier, company_id = f"{ObjectId()}@example.com", ObjectId(), coach.ctx.company_id
    sealed = mail.seal_content(services.vault, identifier, {"to": to, "subject": "Hello", "text": "Hello"})
    job = queue.Job(identifier, {"sealed": sealed, "tries": 0}, 1, company_id)
    assert await mail.send(replace(services, mail_sender=Rejecting()), job) is None
    [failed] = [each for each in await every(administration.iterate_unsent_mail(operator)) if each["to"] == to]
    assert (failed["state"], failed["reason"], failed["tries"]) == ("failed", "the recipient was rejected", 1)
    assert (failed["companyId"], failed["subject"]) == (company_id, "Hello")

    await administration.suspend_company(operator, company_id, "x")  # so that the job is not run at once
    await administration.send_again(operator, identifier)
    queued = await coach.ctx.db["jobs"].find_one({"_id": identifier})
    assert queued is not None
    assert queued["arguments"] == {"sealed": sealed, "tries": 0}
    assert not [each for each in await every(administration.iterate_unsent_mail(operator)) if each["to"] == to]
