"""The history of a client and of the company in the web application, and undo."""

from __future__ import annotations

import re

import pytest

from coaching_service import features
from coaching_service.core.http.routes import routes_of
from coaching_service.core.mcp import tools_of
from coaching_service.core.text import camel_case
from coaching_service.web import views
from coaching_service.web.views import history
from coaching_service.web.views.history import describe_operation, is_described
from tests.support.client import MONDAY, CoachClient, Reply
from tests.support.training import Json, block_with, client_path, path_of, read, task
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import Colleague

COMPANY = "/app/settings/history"
# Operations that write no coaching data, so they are in no history.
NOT_RECORDED = {
    *("signIn", "signOut", "signUp", "refreshSession", "requestPasswordReset", "resetPassword", "firstAccess"),
    *("beginSecondFactor", "beginPasskey", "unlinkProviderAccount"),
    *("resetSecondFactor", "resetEmployeeSecondFactor", "resetCustomerSecondFactor"),
    *("useFirstAccess", "impersonateCustomer", "decide", "disconnectAssistant", "revealApiKey"),
    *("registerApplication", "revokeApplication", "rotateApplicationSecret"),
    *("rotateWebhookSecret", "redeliverWebhookEvent", "approveProposal", "rejectProposal", "approveAllOfAssistant"),
    "reportSignIn",
}
_IDENTIFIER = re.compile(r"\b[0-9a-f]{24}\b")


def history_of(customer: Json) -> str:
    return f"/app/customers/{customer['_id']}/history"


def change_id(reply: Reply) -> str:
    return str(reply.headers["X-Change-Id"])


async def numbered(coach: CoachClient, change: str) -> str:
    """Wait until a change is in the history."""
    await coach.wait_until_numbered(change)
    return change


def readable(page: HtmlPage) -> HtmlPage:
    """Assert that the text of a page has no identifiers and no JSON."""
    assert not _IDENTIFIER.search(page.text), page.text
    assert "{" not in page.text and "ObjectId" not in page.text, page.text
    return page.ok()


async def rename(coach: CoachClient, customer: Json, name: str) -> str:
    changed = await coach.patch(client_path(customer), {"name": name})
    changed.ok()
    return await numbered(coach, change_id(changed))


def test_every_operation_that_writes_is_described() -> None:
    operations = {route.operation_id for route in routes_of(features.ROUTES) if route.writes}
    operations |= {tool.name for tool in tools_of(features.TOOLS) if tool.writes}
    operations |= {
        camel_case(page.name) for page in views.list_pages() if page.method == "POST" and not page.preview_of
    }
    missing = {operation for operation in operations - NOT_RECORDED if not is_described(operation)}
    assert not missing, f"add the verb or the name to views/operation_names.py: {sorted(missing)}"
    for operation in operations - NOT_RECORDED:
        text = describe_operation(operation)
        assert not re.search(r"customer|wblock|witem|bulk|[a-z][A-Z]|_", text), f"{operation}: {text}"


def test_names_of_operations_become_sentences() -> None:
    described = {
        "updateNote": "Note changed",
        "create_workout": "Workout created",
        "bulkArchiveCustomers": "Clients archived",
        "deleteOwnMessage": "Message deleted",
        "unheardOf": "Unheard of",
    }
    assert {operation: describe_operation(operation) for operation in described} == described


async def test_history_says_who_changed_what_through_which_key(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana", surname="Lopez", phone="123")
    change = await rename(coach, ana, "Anna")

    listed = readable(await owner_page.get(history_of(ana)))

    listed.says("Client changed", "1 client changed", "Olga Owner", "API key: Test", "Client created")
    assert f"{history_of(ana)}/{change}" in listed.links
    assert listed.text.index("Client changed") < listed.text.index("Client created"), "newest first"
    page = readable(await owner_page.get(f"{history_of(ana)}/{change}"))
    page.says("Client changed", "Name Ana Anna", "It can be undone until")
    company = readable(await owner_page.get(COMPANY)).says("Anna Lopez", "Client changed")
    assert history_of(ana) in company.links and f"{COMPANY}/{change}" in company.links


async def test_change_is_undone_and_redone(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    change = await rename(coach, ana, "Anna")
    path = f"{history_of(ana)}/{change}"

    page = await owner_page.submit(await owner_page.get(path), f"{path}/undo")

    page.ok().says("Undone. Undo again to redo.")
    assert (await coach.get(client_path(ana))).ok()["name"] == "Ana"
    redo = next(form for form in page.forms if form.action.startswith(COMPANY))
    page = await owner_page.submit(page, redo.action)
    page.ok().says("Undone. Undo again to redo.")
    assert (await coach.get(client_path(ana))).ok()["name"] == "Anna"


async def test_undo_twice_is_said(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    path = f"{history_of(ana)}/{await rename(coach, ana, 'Anna')}"
    opened = await owner_page.get(path)
    (await owner_page.submit(opened, f"{path}/undo")).ok()
    (await owner_page.submit(opened, f"{path}/undo")).ok().says("has been undone already")
    page = (await owner_page.get(path)).says("Undone")
    assert not any(form.action.endswith("/undo") for form in page.forms)


async def test_later_change_prevents_undo(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    path = f"{history_of(ana)}/{await rename(coach, ana, 'Anna')}"
    opened = await owner_page.get(path)
    await rename(coach, ana, "Annika")
    page = await owner_page.submit(opened, f"{path}/undo")
    page.ok(409).says("has been changed again since", "Undo the later change first")
    assert (await coach.get(client_path(ana))).ok()["name"] == "Annika"


async def test_creation_of_a_client_cannot_be_undone(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    await rename(coach, ana, "Anna")
    page = await owner_page.get(history_of(ana))
    _, created = [link for link in page.links if link.startswith(f"{history_of(ana)}/")]
    page = readable(await owner_page.get(created)).says("Client created", "cannot be undone")
    assert not any(form.action.endswith("/undo") for form in page.forms)


async def test_planned_sets_are_described(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    squat = await coach.create_exercise("Back squat")
    planned = {"type": "reps_load", "minPlannedReps": 5, "maxPlannedReps": 5, "load": 60}
    item = {"type": "EXERCISE", "exerciseId": squat["_id"], "exerciseSets": [planned] * 3}
    block = await block_with(coach, ana, item)
    heavier = item | {"exerciseSets": [planned | {"load": 62.5}] * 3}
    changed = await coach.patch(f"{path_of(block)}/witems/{block['items'][0]['_id']}", heavier)
    changed.ok()
    added = await coach.post(f"{path_of(block)}/witems", task("Walk the dog"))
    added.ok(201)
    name = (await read(coach, block))["name"]
    page = readable(await owner_page.get(f"{history_of(ana)}/{await numbered(coach, change_id(changed))}"))
    page.says("Back squat · Planned sets", "3 × 5 × 60 kg", "3 × 5 × 62.5 kg", f"Workout changed: {name}")
    page = readable(await owner_page.get(f"{history_of(ana)}/{await numbered(coach, change_id(added))}"))
    page.says("Items", "Walk the dog")


async def test_dates_and_deleted_workouts_are_described(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    block = await block_with(coach, ana, task("a"))
    deleted = await coach.delete(path_of(block))
    deleted.ok(204)
    path = f"{history_of(ana)}/{await numbered(coach, change_id(deleted))}"
    page = readable(await owner_page.get(path)).says("Workout deleted", block["name"], "Mon")
    assert MONDAY not in page.text, "the date is in words"
    (await owner_page.submit(page, f"{path}/undo")).ok().says("Undone.")
    assert (await read(coach, block))["name"] == block["name"]


async def test_form_offers_undo(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    notes = f"/app/customers/{ana['_id']}/notes"
    page = await owner_page.submit(await owner_page.get(notes), notes, content="Sore knee")
    page.ok().says("Note added.", "Sore knee")
    undo = next(form for form in page.forms if form.action.startswith(COMPANY))
    page = await owner_page.submit(page, undo.action)
    page.ok().says("Undone. Undo again to redo.", "No notes yet")
    assert page.path == notes, "on the page where it was offered"
    await rename(coach, ana, "Anna")
    page = (await owner_page.get(history_of(ana))).ok().says("Note added", "Undone", "Change undone", "Web application")


async def test_form_that_cannot_be_undone_offers_no_undo(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    path = f"/app/customers/{ana['_id']}/messages"
    page = await owner_page.submit(await owner_page.get(path), path, text="Hello")
    page.ok().says("Message sent.")
    assert not any(form.action.startswith(COMPANY) for form in page.forms)


async def test_history_is_filtered_by_interface_and_continues(
    coach: CoachClient, owner_page: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "_PAGE_SIZE", 5)
    ana = await coach.create_customer("Ana")
    notes = f"/app/customers/{ana['_id']}/notes"
    await owner_page.submit(await owner_page.get(notes), notes, content="By hand")
    for number in range(6):
        last = await coach.post(client_path(ana, "notes"), {"content": str(number)})
    await numbered(coach, change_id(last))
    page = (await owner_page.get(f"{history_of(ana)}?via=session")).ok().says("Note added")
    assert "Note created" not in page.text
    (await owner_page.get(f"{history_of(ana)}?via=client")).ok().says("No changes through this interface")
    page = await owner_page.get(history_of(ana))
    assert page.text.count("Note created") == 5
    [older] = [link for link in page.links if "after=" in link]
    page = (await owner_page.get(older.replace("&amp;", "&"))).ok().says("Note created", "Note added", "Client created")
    assert page.text.count("Note created") == 1
    assert (await owner_page.get(f"{history_of(ana)}?after=wrong")).ok().path == history_of(ana)


async def test_bulk_operation_is_undone_as_a_whole(coach: CoachClient, owner_page: Visitor) -> None:
    clients = [await coach.create_customer(name) for name in ("Ana", "Ben")]
    ids = [client["_id"] for client in clients]
    (await coach.post("/coach/customers/bulk/groups-add", {"ids": ids, "groups": ["Morning"]})).ok()
    await numbered(coach, change_id(await coach.post("/coach/programs", {"name": "Base"})))  # later, so both are there
    page = await owner_page.get(COMPANY)
    first = [link for link in page.links if link.startswith(f"{COMPANY}/")][1]
    page = readable(await owner_page.get(first)).says("Groups added to clients", "Morning")
    page.forms = [form for form in page.forms if ("all", "true") in form.fields]
    page = await owner_page.submit(page, f"{first}/undo")
    page.ok().says("Undone.")
    for client in clients:
        assert (await coach.get(client_path(client))).ok()["customerRoleData"]["groups"] == []


async def test_employee_sees_and_undoes_what_they_may(coach: CoachClient, colleague: Colleague) -> None:
    ana = await coach.create_customer("Ana")
    program = await coach.post("/coach/programs", {"name": "Base"})
    program.ok(201)
    renamed = await rename(coach, ana, "Anna")
    page = await (viewer := await colleague("customers.view")).get(COMPANY)
    page.ok().says("Client changed")
    assert "Program created" not in page.text
    page = await viewer.get(f"{COMPANY}/{renamed}")
    assert not any(form.action.endswith("/undo") for form in page.forms)
    (await viewer.get(f"{COMPANY}/{change_id(program)}")).ok(404)
    scoped = await colleague("customers.view", "customers.edit", scope="assigned")
    assert "Client changed" not in (await scoped.get(COMPANY)).ok().text
    (await scoped.get(f"{COMPANY}/{renamed}")).ok(404)
    (await (await colleague("programs.view")).get(COMPANY)).ok(403)


async def test_change_of_another_client_is_not_on_this_page(coach: CoachClient, owner_page: Visitor) -> None:
    ana, ben = await coach.create_customer("Ana"), await coach.create_customer("Ben")
    change = await rename(coach, ana, "Anna")
    (await owner_page.get(f"{history_of(ben)}/{change}")).ok(404)
    (await owner_page.get(history_of(ana))).ok().says("Client changed")
    assert "Client changed" not in (await owner_page.get(history_of(ben))).ok().text


async def test_deletions_by_forms_are_undone(coach: CoachClient, owner_page: Visitor) -> None:
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    blocks = f"/coach/programs/{program['_id']}/wblocks"
    (await coach.post(blocks, {"name": "Day one", "day": 1, "items": [task("Walk")]})).ok(201)
    unit = (await coach.get("/metrics-units")).ok()[0]["_id"]
    metrics = {"name": "Body", "metrics": [{"name": "Weight", "metricUnitId": unit}]}
    metric_set = (await coach.post("/coach/metrics-sets", metrics)).ok(201)
    for path in (f"/app/programs/{program['_id']}/delete", f"/app/settings/metric-sets/{metric_set['_id']}/delete"):
        page = (await owner_page.get(path)).ok().says("It can be undone for 30 days")
        page = (await owner_page.submit(page, path)).ok()
        undo = next(form for form in page.forms if form.action.startswith(COMPANY))
        (await owner_page.submit(page, undo.action)).ok().says("Undone.", "Base" if "programs" in path else "Body")
        (await owner_page.get(path)).ok()
    restored = (await coach.get(f"/coach/programs/{program['_id']}/wblock", startDay=1, endDay=7)).ok()
    assert [block["name"] for block in restored] == ["Day one"]
    await numbered(coach, change_id(await coach.post("/coach/programs", {"name": "Later"})))
    page = readable(await owner_page.get(COMPANY))
    newest = [link for link in page.links if link.startswith(f"{COMPANY}/")][1]
    readable(await owner_page.get(newest)).says("Change undone", "Metric set changed: Body")
