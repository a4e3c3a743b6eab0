"""After an import, the figures of clients are those of the company that was exported, however long it took."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import pytest

from coaching_service import features
from coaching_service.core.database.context import Services
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import worker
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.integrations.company_import import service as company_import
from coaching_service.progress import personal_records
from tests.conftest import NewCompany
from tests.support.attention import renew
from tests.support.client import CoachClient
from tests.support.figures import renew_figures
from tests.support.service_process import until
from tests.support.training import Json, block_with, client_path, exercise_of, form_of, log
from tests.support.transfer import export, import_file, make_zip, records, send, with_records

RENEWAL = {"kind": personal_records.RENEW}
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
    """Import a file; the figures that are due are renewed after every third step, as the background job may do."""
    steps = {company_import.IMPORT: features.STEPS[company_import.IMPORT]}
    job: Json = (await send(coach, content)).ok(202)
    while job["status"] in ("queued", "running"):
        for _ in range(3):
            await worker.run_due(coach.ctx.services, steps, limit=1)
        await renew_figures(coach.ctx)
        job = (await coach.get(f"/coach/jobs/{job['_id']}")).ok()
    return job


async def test_figures_are_those_of_the_exported_company(
    sampled_company: CoachClient, new_company: NewCompany, monkeypatch: pytest.MonkeyPatch
) -> None:
    await renew(sampled_company)
    expected = await figures_of(sampled_company)
    assert len(expected["attention"]) > 1
    assert any(client[4] for client in expected["list"]), "some have a rate of compliance"
    target = await new_company()
    monkeypatch.setattr(company_import, "_STEP_SECONDS", -1)

    job = await import_in_steps(target, make_zip(await export(sampled_company)))

    assert (job["status"], job["result"]["failed"]) == ("done", 0)

    async def are_renewed() -> bool:
        await renew(target)
        return await figures_of(target) == expected

    await until(are_renewed, "the figures are those of the exported company")


@pytest.mark.parametrize("ending", ["cancelled", "failed"])
async def test_figures_follow_what_an_import_has_stored_before_it_ends(
    sampled_company: CoachClient, new_company: NewCompany, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    target = await new_company()
    monkeypatch.setattr(company_import, "_STEP_SECONDS", -1)
    monkeypatch.setattr(company_import, "_KEPT_SECONDS", 0)  # each step reads the file again
    # It marks clients as changed, too, at any moment: those would be due again, or hide that the import marks none.
    monkeypatch.setitem(features.STEPS, personal_records.RENEW, _postpone)
    monkeypatch.setattr("coaching_service.integrations.company_import._archive_import.BATCH", 50)
    steps = {company_import.IMPORT: features.STEPS[company_import.IMPORT]}
    monkeypatch.delitem(features.STEPS, company_import.IMPORT)  # the service does not continue it
    job = (await send(target, make_zip(await export(sampled_company)))).ok(202)
    blocks = target.ctx.db["workoutBlocks"]
    today = target.ctx.caller.today()
    counting = {"date": {"$gte": str(today - timedelta(days=25)), "$lt": str(today)}, "items.isCompleted": True}

    async def has_workouts_that_count() -> bool:
        clients = [ObjectId(each["_id"]) for each in (await target.customers(pageSize=50))["docs"]]
        where = {"companyId": target.ctx.company_id, "customerId": {"$in": clients}, **counting}
        return await blocks.count_documents(where) > 0

    while not await has_workouts_that_count():
        await worker.run_due(target.ctx.services, steps, limit=1)
        await renew_figures(target.ctx)
    if ending == "cancelled":
        (await target.post(f"/coach/jobs/{job['_id']}/cancel")).ok()
    else:
        await target.ctx.db["fs.files"].delete_many(
            {"companyId": target.ctx.company_id, "contentType": "application/zip"}
        )

    async def has_ended() -> bool:
        await worker.run_due(target.ctx.services, steps)
        status = (await target.get(f"/coach/jobs/{job['_id']}")).ok()["status"]
        assert status in ("running", ending)
        return bool(status == ending)

    await until(has_ended, f"the import has {ending}")
    await renew(target)
    rates = [client[4] for client in (await figures_of(target))["list"]]
    assert any(rate is not None for rate in rates)


async def _postpone(_: Services, __: Job) -> RunAgain:
    return RunAgain(timedelta(hours=1))


async def test_export_without_the_times_of_answers_is_imported(coach: CoachClient, new_company: NewCompany) -> None:
    """Earlier versions did not export them."""
    block = await block_with(coach, await coach.create_customer(), form_of())
    [item] = block["items"]
    answers = [{"questionId": item["form"]["questions"][0]["_id"], "value": "Fine"}]
    (await log(coach, block, item, answers=answers)).ok()
    entries = await export(coach)
    responses = [
        {name: value for name, value in response.items() if name != "updatedAt"}
        for response in records(entries, "formResponses")
    ]
    assert responses
    job = await import_file(await new_company(), make_zip(with_records(entries, "formResponses", *responses)))
    assert (job["status"], job["result"]["failed"]) == ("done", 0)
    assert job["result"]["imported"]["formResponses"] == len(responses)


async def test_records_follow_from_the_logs_of_an_export_of_an_earlier_version(
    coach: CoachClient, new_company: NewCompany
) -> None:
    """0.2.0 had no records of times and distances, and its estimates were without repetitions in reserve."""
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    plank, squat, carry = [await coach.create_exercise(name) for name in ("Plank", "Squat", "Carry")]
    for client, exercise, done in (
        (ana, plank, {"seconds": 60}),
        (ana, squat, {"reps": 5, "load": 100, "rpe": 8}),
        (bo, carry, {"meters": 40, "load": 24}),
    ):
        block = await block_with(coach, client, exercise_of(exercise))
        (await log(coach, block, block["items"][0], customerSets=[done])).ok()
    expected = await records_of(coach)
    assert {kind for _, kind, *_ in expected} == {
        *("longest_time", "farthest_distance", "heaviest_load", "most_reps", "estimated_1rm")
    }
    entries = await export(coach)
    before = [
        {**each, "value": 116.67} if each["type"] == "estimated_1rm" else each
        for each in records(entries, "personalRecords")
        if each["type"] not in ("longest_time", "farthest_distance")
    ]
    assert len(before) == len(expected) - 2
    target = await new_company()
    job = await import_file(target, make_zip(with_records(entries, "personalRecords", *before)))
    assert (job["status"], job["result"]["failed"]) == ("done", 0)

    await run_renewal(target)

    async def are_computed() -> bool:
        return await records_of(target) == expected

    await until(are_computed, "the records of the new types are computed")


async def test_import_that_has_stored_no_logs_computes_none_again(coach: CoachClient) -> None:
    """A dry run, and clients from a table."""
    entries = make_zip(await export(coach))
    assert (await import_file(coach, entries, dry_run=True))["status"] == "done"
    assert (await import_file(coach, b"name,email\nAna,\n", name="clients.csv"))["status"] == "done"
    assert await coach.ctx.db["jobs"].count_documents(RENEWAL | {"companyId": coach.ctx.company_id}) == 0


async def run_renewal(coach: CoachClient) -> None:
    """Run the job that computes the records of a company again, which an import has queued."""
    assert await coach.ctx.db["jobs"].count_documents(RENEWAL | {"companyId": coach.ctx.company_id}) == 1
    steps = {personal_records.RENEW: features.STEPS[personal_records.RENEW]}
    await worker.run_due(coach.ctx.services, steps)


async def records_of(coach: CoachClient) -> list[tuple[str, str, float, str]]:
    """The personal records of all clients, by exercise and type."""
    clients = (await coach.customers(pageSize=50))["docs"]
    lists = [(await coach.get(client_path(client, "personal-records"))).ok() for client in clients]
    return sorted((each["exerciseName"], each["type"], each["value"], each["unit"]) for each in itertools.chain(*lists))
