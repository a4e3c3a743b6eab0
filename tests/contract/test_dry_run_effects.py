"""Dry runs change nothing: every document of the company is compared before and after, for each operation with one."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from coaching_service import features
from coaching_service.core.http.routes import routes_of
from tests.conftest import NewCompany
from tests.contract.test_declared import fill_path, identifiers_for, put_identifiers
from tests.contract.test_events import requests_of
from tests.support.client import CoachClient
from tests.support.declared_world import World
from tests.support.training import block_with, exercise_of
from tests.support.transfer import export, import_file, make_zip

# What is written whatever a request does: times of use, answers to repeat, jobs and their files, and the audit of an import.
NOT_COMPARED = {"apiKeys", "audit", "companyJobs", "jobs", "rateLimits", "replays", "sessions"}
# What follows from earlier changes in the background: their numbers, uses of exercises, figures of clients.
NOT_COMPARED |= {"changeCounters", "changeNumbers", "exerciseUses", "fileTotals", "webhookDeliveries"}
BACKGROUND = {
    "changes": {"seq", "lastSeq", "pending"},
    "webhooks": {"position"},
    "notifications": {"sendAt", "sentAt", "outcome"},
    "customers": {
        *("figuresUntil", "figuresChangedAt", "attention", "lastTrainedDate"),
        *("complianceRate7d", "complianceRate30d", "complianceRate90d", "complianceDate"),
    },
}


# Jobs and files have tests of their own.
ROUTES = [
    route
    for route in routes_of(features.ROUTES)
    if route.takes_dry_run and route.status != 202 and route.multipart is None
]


def without(value: Any, names: set[str]) -> Any:
    """A document without these fields, in nested ones too."""
    if not isinstance(value, dict):
        return value
    return {key: without(each, names) for key, each in value.items() if key not in names}


async def stored(coach: CoachClient) -> dict[str, Any]:
    """Every document of the company, by collection and identifier: read at once, as they are read after each request."""
    db, company = coach.ctx.db, coach.ctx.company_id

    def stages_for(name: str) -> list[dict[str, Any]]:
        where: dict[str, Any] = {"_id" if name == "companies" else "companyId": company}
        if name == "changes":
            where["via"] = {"$ne": "system"}  # events of what needs attention
        if name == "notifications":
            where["key"] = {"$regex": "^forms:"}  # those that a coach has asked for
        return [{"$match": where}, {"$project": {"_id": 0, "collection": {"$literal": name}, "document": "$$ROOT"}}]

    listed = await db.list_collection_names(filter={"type": "collection"})
    first, *others = sorted(name for name in {*listed} - NOT_COMPARED if not name.startswith("system."))
    pipeline = stages_for(first)
    pipeline += [{"$unionWith": {"coll": name, "pipeline": stages_for(name)}} for name in others]
    state: dict[str, Any] = {}
    async for found in db[first].aggregate(pipeline):
        name, document = found["collection"], found["document"]
        not_compared = BACKGROUND.get(name)
        state[f"{name} {document['_id']}"] = without(document, not_compared) if not_compared else document
    return state


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What differs, by collection, identifier and fields."""
    return sorted(
        f"{key} {[name for name in document.keys() | other.keys() if document.get(name) != other.get(name)]}"
        for key in before.keys() | after.keys()
        if (document := before.get(key, {})) != (other := after.get(key, {}))
    )


async def test_dry_runs_change_no_document(company: CoachClient, world: World) -> None:
    """The same requests without `dryRun` change some."""
    coach, requests = company, await requests_of(company, world)
    customer, squat = {"_id": world["customerId"]}, exercise_of({"_id": world["exerciseId"]})
    await block_with(coach, customer, squat, date="2026-03-04")  # a load that can be adjusted
    order = [*(name for name in requests if name != "bulkDeleteCustomers"), "bulkDeleteCustomers"]  # erases later
    routes = sorted(ROUTES, key=lambda each: order.index(each.operation_id) if each.operation_id in order else -1)
    before = await stored(coach)
    for route in routes:
        path, body = requests.get(route.operation_id, ("", None))
        body = put_identifiers(route.example, identifiers_for(route, world)) if body is None else body
        path, about = path or fill_path(route, world), route.operation_id
        dry = await coach.send(route.method, path, json={**body, "dryRun": True})
        assert dry.status == 200, (about, dry.raw)
        assert "X-Change-Id" not in dry.headers, about
        assert (about, differences(before, await stored(coach))) == (about, [])
        real = await coach.send(route.method, path, json={**body, "dryRun": False})
        assert real.status in (200, 201), (about, real.raw)
        after = await stored(coach)
        assert differences(before, after) != [], about
        before = after


@pytest.mark.usefixtures("world")
async def test_dry_run_of_an_import_changes_no_document(company: CoachClient, new_company: NewCompany) -> None:
    """Neither records nor the settings of the account, which the import itself takes over."""
    session = await company.interactive()
    settings = {"timezone": "Asia/Tokyo", "attention": {"inactiveDays": 20}, "notifications": {"messages": False}}
    (await session.patch("/coach/account", settings)).ok()
    content = make_zip(await export(company))
    target = await new_company()
    before = await stored(target)
    assert (await import_file(target, content, dry_run=True))["status"] == "done"
    assert differences(before, await stored(target)) == []
    assert (await import_file(target, content))["status"] == "done"
    changed = differences(before, await stored(target))
    [account] = [each for each in changed if each.startswith("companies ")]
    assert "timezone" in account and "attention" in account


async def test_dry_run_of_a_spreadsheet_changes_no_document(coach: CoachClient) -> None:
    before = await stored(coach)
    await import_file(coach, b"name\nAna\n", dry_run=True, name="clients.csv")
    assert differences(before, await stored(coach)) == []
    await import_file(coach, b"name\nAna\n", name="clients.csv")
    assert differences(before, await stored(coach)) != []


async def test_dry_run_of_a_program_in_a_sheet_changes_no_document(coach: CoachClient) -> None:
    before = await stored(coach)
    for dry, differs in (("true", False), ("false", True)):
        form = aiohttp.FormData({"dryRun": dry}, default_to_multipart=True)
        form.add_field("file", b"Exercise,Sets,Reps\nStone carry,3,8\n", filename="plan.csv")
        reply = await coach.send("POST", "/coach/programs/import", data=form, dry=dry == "true")
        assert reply.status == (201 if differs else 200)
        assert (differences(before, await stored(coach)) != []) is differs
