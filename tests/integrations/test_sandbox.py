"""The sandbox of a company: a company for tests, whose mail is stored instead of sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from coaching_service import features
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import worker
from coaching_service.people import account, team
from tests.conftest import PASSWORD, NewCompany
from tests.integrations.conftest import few_samples
from tests.support.client import CoachClient
from tests.support.service_process import until


async def create(coach: CoachClient) -> tuple[CoachClient, dict[str, Any]]:
    """A client with the key of a new sandbox, and the response."""
    sandbox = (await (await coach.interactive()).post("/coach/sandbox")).ok(201)
    return coach.with_key(sandbox["apiKey"]), sandbox


async def mails(sandbox: CoachClient) -> list[dict[str, Any]]:
    docs: list[dict[str, Any]] = (await sandbox.get("/coach/sandbox/mail")).ok()["docs"]
    return docs


@dataclass
class Shared:
    """A sandbox without mail for several tests: making one takes seconds."""

    coach: CoachClient
    sandbox: CoachClient
    created: dict[str, Any]
    sample_clients: int


@pytest.fixture(scope="module")
def sandboxes() -> list[Shared]:
    """The sandbox of the tests, unless none has needed it yet, or one has erased it."""
    return []


@pytest.fixture
async def shared(sandboxes: list[Shared], new_company: NewCompany) -> Shared:
    if not sandboxes:
        coach = await new_company()
        with few_samples(4):
            sandbox, created = await create(coach)
        sandboxes.append(Shared(coach, sandbox, created, (await sandbox.customers())["totalDocs"]))
    [used] = sandboxes
    await used.coach.ctx.db["sandboxMails"].delete_many({"companyId": ObjectId(used.created["companyId"])})
    return used


async def test_a_sandbox_is_a_company_of_its_own_with_sample_data(shared: Shared) -> None:
    coach, sandbox, created = shared.coach, shared.sandbox, shared.created

    assert created["apiKey"].startswith("cs_test_")
    assert created["companyId"] != str(coach.ctx.company_id)
    me = (await sandbox.get("/me")).ok()
    assert (me["role"], me["companyId"], me["via"]) == ("OWNER", created["companyId"], "apiKey")
    assert shared.sample_clients == 10
    assert (await coach.customers())["totalDocs"] == 0
    assert (await sandbox.get("/coach/changes", pageSize=1, pageNum=1)).status == 200
    own_changes = await coach.ctx.db["changes"].count_documents({"companyId": coach.ctx.company_id})
    assert own_changes == 0
    (await coach.post("/coach/sandbox")).refused(403)
    bearer = sandbox.with_bearer(created["apiKey"])
    assert (await bearer.get("/me")).ok()["companyId"] == created["companyId"]


async def test_mail_of_a_sandbox_is_stored_and_never_sent(shared: Shared) -> None:
    coach, sandbox, created = shared.coach, shared.sandbox, shared.created
    assert await mails(sandbox) == []

    customer = await sandbox.create_customer("Ana", email="ana@example.com")

    (mail,) = await mails(sandbox)
    assert (mail["to"], "Sandbox of" in mail["subject"]) == ("ana@example.com", True)
    queued = {"companyId": ObjectId(created["companyId"]), "kind": "send_mail"}
    assert await coach.ctx.db["jobs"].count_documents(queued) == 0
    (await sandbox.delete(f"/coach/customers/{customer['_id']}")).ok(204)


async def test_mail_is_listed_by_cursor_with_a_key_of_the_sandbox_only(shared: Shared) -> None:
    coach, sandbox = shared.coach, shared.sandbox
    for name in ("ana", "bo", "cy"):
        await sandbox.create_customer(name, email=f"{name}@example.com")

    first = (await sandbox.get("/coach/sandbox/mail", limit=2)).ok()
    rest = (await sandbox.get("/coach/sandbox/mail", limit=2, after=first["nextCursor"])).ok()
    assert first.keys() == {"docs", "nextCursor", "hasMore"}
    assert [mail["to"][:2] for mail in first["docs"] + rest["docs"]] == ["cy", "bo", "an"]
    assert (first["hasMore"], rest["hasMore"], rest["nextCursor"]) == (True, False, None)
    (await sandbox.get("/coach/sandbox/mail", limit=101)).refused(400, "limit")
    (await sandbox.get("/coach/sandbox/mail", after="x")).refused(400, "after")
    for other in (coach, await coach.interactive()):
        (await other.get("/coach/sandbox/mail")).refused(403, "sandbox")


async def test_no_user_can_sign_in_to_a_sandbox(shared: Shared, anonymous: CoachClient) -> None:
    coach, sandbox, created = shared.coach, shared.sandbox, shared.created
    customer = await sandbox.create_customer("Ana", email="ana@sandbox.example", sendInvitation=False)

    access = {"token": customer["firstAccessToken"], "password": PASSWORD}
    assert (await anonymous.post("/auth/first-access", access)).refused(403)["code"] == "SANDBOX"
    identities = {"companyId": ObjectId(created["companyId"])}
    assert await coach.ctx.db["identities"].count_documents(identities) == 0
    assert (await sandbox.post("/coach/api-keys", {"name": "Another"})).status == 403


async def test_a_sandbox_is_erased_with_the_next_one_and_with_the_account(
    shared: Shared, sandboxes: list[Shared]
) -> None:
    sandboxes.remove(shared)
    coach, earlier, first = shared.coach, shared.sandbox, shared.created
    with few_samples(4, "Mei"):
        later, second = await create(coach)

    assert (await earlier.get("/me")).refused(401) == {"message": "Invalid API key"}
    assert (await later.get("/me")).ok()["companyId"] == second["companyId"]
    for collection in ("customers", "workoutBlocks", "apiKeys", "fs.files", "companies"):
        await _wait_until_erased(coach, collection, first)

    owner = await team.get_owner(coach.ctx.services, coach.ctx.company_id)
    await account.delete_account(coach.ctx.acting_as(owner), {"password": PASSWORD})
    (await later.get("/me")).refused(401)
    await _wait_until_erased(coach, "customers", second)


async def _wait_until_erased(coach: CoachClient, collection: str, sandbox: dict[str, Any]) -> None:
    """Run the steps of erasures, as the service does too, until nothing is left in a collection."""
    steps = {account.ERASE: features.STEPS[account.ERASE]}

    async def is_erased() -> bool:
        await worker.run_due(coach.ctx.services, steps)
        return not await coach.ctx.db[collection].count_documents({"companyId": ObjectId(sandbox["companyId"])})

    await until(is_erased, f"{collection} are erased")
