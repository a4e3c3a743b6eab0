"""Erasing a client or a company takes a second pass, for requests that were under way during the first."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job, RunAgain, Step
from coaching_service.lifecycle.erasure import service as erasure
from tests.support.client import CoachClient


@pytest.mark.parametrize("step", [erasure.erase_customer, erasure.erase_company])
async def test_a_second_pass_erases_what_a_late_request_wrote(coach: CoachClient, step: Step) -> None:
    services, company_id = coach.ctx.services, coach.ctx.company_id
    customer_id = ObjectId((await coach.create_customer())["_id"])
    job = Job(ObjectId(), {"companyId": company_id, "customerId": customer_id}, 1)

    first_pass = await _run(step, coach, job)
    await services.db["notes"].insert_one({"companyId": company_id, "customerId": customer_id, "content": "late"})
    assert isinstance(first_pass, RunAgain)
    assert first_pass.after > timedelta(0)
    second_pass = await _run(step, coach, replace(job, arguments=job.arguments | (first_pass.progress or {})))

    assert second_pass is None
    assert await services.db["notes"].count_documents({"companyId": company_id}) == 0


async def _run(step: Step, coach: CoachClient, job: Job) -> RunAgain | None:
    """Run the job until it ends or waits."""
    result = await step(coach.ctx.services, job)
    while result is not None and not result.after:
        result = await step(coach.ctx.services, job)
    return result
