"""After an import, the figures of clients are those of the company that was exported, however long it took."""

from __future__ import annotations

from typing import Any

import pytest

from coaching_service import features
from coaching_service.core.jobs import worker
from coaching_service.integrations.company_import import service as company_import
from tests.conftest import NewCompany
from tests.support.attention import renew
from tests.support.client import CoachClient
from tests.support.figures import renew_figures
from tests.support.training import Json
from tests.support.transfer import export, import_file, make_zip, records, send, with_records

_FIGURES = ("lastTrainedDate", "lastWorkoutDate", "complianceRate7d", "complianceRate30d", "complianceRate90d")


async def figures_of(coach: CoachClient) -> Json:
    """The list of clients, who needs attention and why, and compliance, without identifiers and with names."""
    clients = (await coach.customers(pageSize=50))["docs"]
    attention = (await coach.get("/coach/attention", limit=50)).ok()["docs"]
    rates = [
        (await coach.get("/coach/compliance", period=period, limit=50, sort="name")).ok()["docs"]
        for period in (7, 30, 90)
    ]
    return {
        "list": [
            (each["name"], *(each["customerRoleData"][name] for name in _FIGURES), each["lastActivityDate"])
            for each in clients
        ],
        "attention": sorted(
            (
                each["customer"]["name"],
                each["score"],
                sorted((reason["type"], reason["since"], reason["count"]) for reason in each["reasons"]),
            )
            for each in attention
        ),
        "compliance": [[_without_ids(each) for each in page] for page in rates],
    }


def _without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_ids(each) for name, each in value.items() if name not in ("_id", "customerId")}
    return value


async def import_in_steps(coach: CoachClient, content: bytes) -> Json:
    """Import a file; the figures that are due are renewed after each step, as the background job may do."""
    steps = {company_import.IMPORT: features.STEPS[company_import.IMPORT]}
    job: Json = (await send(coach, content)).ok(202)
    while job["status"] in ("queued", "running"):
        await worker.run_due(coach.ctx.services, steps, limit=1)
        await renew_figures(coach.ctx.services)
        job = (await coach.get(f"/coach/jobs/{job['_id']}")).ok()
    return job


async def test_figures_are_those_of_the_exported_company(
    services_with_demo: CoachClient, new_company: NewCompany, monkeypatch: pytest.MonkeyPatch
) -> None:
    await renew(services_with_demo)
    expected = await figures_of(services_with_demo)
    assert len(expected["attention"]) > 3
    assert any(client[4] for client in expected["list"]), "some have a rate of compliance"
    target = await new_company()
    monkeypatch.setattr(company_import, "_STEP_SECONDS", -1)

    job = await import_in_steps(target, make_zip(await export(services_with_demo)))

    assert (job["status"], job["result"]["failed"]) == ("done", 0)
    await renew(target)
    imported = await figures_of(target)
    assert imported["list"] == expected["list"]
    assert imported["compliance"] == expected["compliance"]
    assert imported["attention"] == expected["attention"]


@pytest.mark.parametrize("ending", ["cancelled", "failed"])
async def test_figures_follow_what_an_import_has_stored_before_it_ends(
    services_with_demo: CoachClient, new_company: NewCompany, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    target = await new_company()
    monkeypatch.setattr(company_import, "_STEP_SECONDS", -1)
    steps = {company_import.IMPORT: features.STEPS[company_import.IMPORT]}
    job = (await send(target, make_zip(await export(services_with_demo)))).ok(202)
    blocks = target.ctx.db["workoutBlocks"]
    while not await blocks.count_documents({"companyId": target.ctx.company_id, "customerId": {"$ne": None}}):
        await worker.run_due(target.ctx.services, steps, limit=1)
        await renew_figures(target.ctx.services)
    if ending == "cancelled":
        (await target.post(f"/coach/jobs/{job['_id']}/cancel")).ok()
    else:
        await target.ctx.db["fs.files"].delete_many(
            {"companyId": target.ctx.company_id, "contentType": "application/zip"}
        )
    await worker.run_due(target.ctx.services, steps)
    assert (await target.get(f"/coach/jobs/{job['_id']}")).ok()["status"] == ending

    await renew(target)
    rates = [client[4] for client in (await figures_of(target))["list"]]
    assert any(rate is not None for rate in rates)


async def test_export_without_the_times_of_answers_is_imported(
    services_with_demo: CoachClient, new_company: NewCompany
) -> None:
    """Earlier versions did not export them."""
    entries = await export(services_with_demo)
    responses = [
        {name: value for name, value in response.items() if name != "updatedAt"}
        for response in records(entries, "formResponses")
    ]
    assert responses
    job = await import_file(await new_company(), make_zip(with_records(entries, "formResponses", *responses)))
    assert (job["status"], job["result"]["failed"]) == ("done", 0)
    assert job["result"]["imported"]["formResponses"] == len(responses)
