"""Erasing a client or a company takes a second pass, for requests that were under way during the first."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from coaching_service.core.database.documents import now, registry
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job, RunAgain, Step
from coaching_service.lifecycle import erasure
from tests.support.client import CoachClient
from tests.support.declared_world import make_world


@pytest.mark.parametrize("step", [erasure.erase_customer, erasure.erase_company])
async def test_a_second_pass_erases_what_a_late_request_wrote(coach: CoachClient, step: Step) -> None:
    services, company_id = coach.ctx.services, coach.ctx.company_id
    customer_id = ObjectId((await coach.create_customer())["_id"])
    job = Job(ObjectId(), {"companyId": company_id, "customerId": customer_id}, 1)

    first_pass = await _run(step, coach, job)
    await services.db["notes"].insert_one({"companyId": company_id, "customerId": customer_id, "content": "late"})
    failure = {"companyId": company_id, "kind": "figures", "subject": customer_id, "since": now(), "attempts": 1}
    await services.db["failures"].insert_one(failure)
    assert isinstance(first_pass, RunAgain)
    assert first_pass.after > timedelta(0)
    second_pass = await _run(step, coach, replace(job, arguments=job.arguments | (first_pass.progress or {})))

    assert second_pass is None
    assert await services.db["notes"].count_documents({"companyId": company_id}) == 0
    assert await services.db["failures"].count_documents({"companyId": company_id}) == 0, "nobody could correct it"


# Collections whose documents belong to clients, written by hand: a collection that forgets its client is not erased.
OF_CLIENTS = {
    *("attentionDismissals", "audit", "calendarLinks", "changeParts", "changes", "checkIns", "companyJobs"),
    *(
        "availability",
        "bodyWeights",
        "conversations",
        "setMedia",
        "searchTexts",
        "secondFactors",
        "providerAccounts",
        "passkeys",
    ),
    *("customers", "failedMails", "formResponses", "hiddenDays", "identities", "identityClaims", "jobs"),
    *(
        "messages",
        "metricAssignments",
        "metricEntries",
        "notes",
        "notifications",
        "passwordResets",
        "pendingAttachments",
        "personalRecords",
    ),
    *(
        "planCounters",
        "planVersions",
        "programAssignments",
        "progressPhotos",
        "proposals",
        "pushSubscriptions",
        "replays",
        "sandboxMails",
        "sessions",
    ),
    *("searchTexts", "secondFactors", "setMedia"),
    *("trainingMaxes", "waitingMessages", "webhookDeliveries", "workoutBlocks"),
}


def test_the_collections_of_clients_are_known() -> None:
    assert {name for name, each in registry.items() if each.client_field} == OF_CLIENTS


async def test_no_document_mentions_an_erased_client(coach: CoachClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the collections declare: all documents of the database are searched for the client and a text of hers."""
    monkeypatch.setattr("coaching_service.core.changes.log.MAX_PATCH_BYTES", 200)
    customer_id = (await make_world(coach))["customerId"]
    path = f"/coach/customers/{customer_id}"
    (await coach.post(f"{path}/notes", {"content": "Zanzibar " * 50})).ok(201)
    parts = {"customerId": ObjectId(customer_id)}
    assert await coach.ctx.db["changeParts"].count_documents(parts) > 0
    assert "changeParts" in await _mentioning(coach, customer_id)
    deleted = await coach.delete(path)
    await coach.wait_until_numbered(deleted.headers["X-Change-Id"])
    arguments = {"companyId": coach.ctx.company_id, "customerId": ObjectId(customer_id)}
    await _run(erasure.erase_customer, coach, Job(ObjectId(), arguments, 1))
    assert await _mentioning(coach, customer_id) <= {"audit", "changes", "jobs"}
    [left] = (
        await coach.ctx.db["changes"]
        .find({"companyId": coach.ctx.company_id, "events.customerId": ObjectId(customer_id)})
        .to_list(None)
    )
    assert [event["type"] for event in left["events"]] == ["customer.deleted"]


async def _mentioning(coach: CoachClient, customer_id: str) -> set[str]:
    """The collections with a document that has the client's identifier or the text anywhere."""
    names = set()
    for name in await coach.ctx.db.list_collection_names():
        async for document in coach.ctx.db[name].find({"companyId": coach.ctx.company_id}):
            if customer_id in str(document) or "Zanzibar" in str(document):
                names.add(name)
    return names


async def _run(step: Step, coach: CoachClient, job: Job) -> RunAgain | None:
    """Run the job until it ends or waits."""
    result = await step(coach.ctx.services, job)
    while result is not None and not result.after:
        result = await step(coach.ctx.services, job)
    return result
