"""Bulk actions: only on the confirmed clients, and only with permission."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest

from coaching_service.core.jobs import queue
from coaching_service.people import jobs, team
from tests.support.client import CoachClient
from tests.support.service_process import until
from tests.support.training import block_with
from tests.support.visitor import Visitor
from tests.web.conftest import Colleague

LIST, BULK = "/app/customers", "/app/customers/bulk"


async def test_client_added_after_the_confirmation_is_not_deleted(coach: CoachClient, owner_page: Visitor) -> None:
    for name in ("Ana", "Björn", "Chidi"):
        await coach.create_customer(name)
    confirmation = await owner_page.get(BULK, params={"all": "true", "action": "delete"})
    confirmation.says("3 clients will be deleted.", "Ana", "Björn", "Chidi")
    await coach.create_customer("Dora")

    changed = await owner_page.submit(confirmation, BULK)

    changed.ok(409).says(
        "Nothing was changed: the selection changed to 4 clients meanwhile.", "4 clients will be deleted.", "Dora"
    )
    assert await coach.names() == ["Ana", "Björn", "Chidi", "Dora"]
    (await owner_page.submit(changed, BULK)).ok().says("4 clients deleted")
    assert await coach.names() == []


async def test_undo_returns_to_a_list_with_a_long_address(coach: CoachClient, owner_page: Visitor) -> None:
    group = "ñ" * 100
    await coach.create_customer("Ana", groups=[group])
    params = {"all": "true", "action": "archive", "groups": group}
    done = (await owner_page.submit(await owner_page.get(BULK, params=params), BULK)).ok().says("1 client changed")
    undo = next(form.action for form in done.forms if form.action.endswith("/undo"))
    undone = await owner_page.submit(done, undo)
    assert undone.ok().says("Undone. Undo again to redo.", "Ana").path.startswith(f"{LIST}?groups=%C3%B1")


async def test_preview_whose_address_would_be_too_long_is_shown(coach: CoachClient, owner_page: Visitor) -> None:
    """An address of more than 8 kB is refused: the page is the response to the form."""
    ids = [each["_id"] for each in [await coach.create_customer(name) for name in ("Ana", "Bo")]]
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    confirmation = await owner_page.get(BULK, params={"ids": ids, "action": "assign-program"})
    csrf = dict(confirmation.form(BULK).fields)["csrf"]
    form = {"csrf": csrf, "programId": program["_id"], "startDate": "2026-11-30", "onConflict": "add"}
    form |= {"text": "\u05d0" * 1_500}
    path = f"{BULK}/preview?ids={ids[0]}&ids={ids[1]}&action=assign-program"
    shown = (await owner_page.send("POST", path, data=form)).ok()
    assert shown.path == path
    shown.says("Assign program", "2 clients")


async def test_changed_selection_of_equal_size_is_rejected(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    confirmation = await owner_page.get(BULK, params={"all": "true", "action": "archive"})
    await coach.delete(f"/coach/customers/{ana['_id']}")
    await coach.create_customer("Björn")
    (await owner_page.submit(confirmation, BULK)).ok(409).says("the selection changed to 1 client", "Björn")
    assert await coach.names() == ["Björn"]


async def test_confirmation_lists_the_first_clients(coach: CoachClient, owner_page: Visitor) -> None:
    ids = await coach.create_customers(*(f"Client {number:02}" for number in range(15)))
    for params in ({"all": "true"}, {"ids": ids}):
        confirmation = await owner_page.get(BULK, params={**params, "action": "archive"})
        confirmation.says("15 clients", "Client 00", "Client 11", "and 3 more")
        assert "Client 12" not in confirmation.text


async def test_clients_that_the_list_does_not_show_are_listed_first(coach: CoachClient, owner_page: Visitor) -> None:
    ids = await coach.create_customers(*(f"Client {number:02}" for number in range(27)))
    (await coach.patch(f"/coach/customers/{ids[3]}", {"groups": ["Late"]})).ok()
    for params, hidden, visible in (
        ({"ids": [ids[2], ids[26], ids[25]]}, ["Client 25", "Client 26"], ["Client 02"]),
        ({"ids": [ids[2], ids[26]], "page": "2"}, ["Client 02"], ["Client 26"]),
        ({"ids": [ids[2], ids[3]], "groups": "Late"}, ["Client 02"], ["Client 03"]),
        ({"all": "true"}, ["Client 25", "Client 26"], [f"Client {number:02}" for number in range(12)]),
    ):
        text = (await owner_page.get(BULK, params={**params, "action": "message"})).ok().text
        listed = " ".join([f"Not visible in the list ({len(hidden)})", *hidden, "Visible ("])
        assert listed in text
        assert " ".join(visible) in text.partition(listed)[2]
    shown = await owner_page.get(BULK, params={"ids": [ids[2], ids[3]], "action": "message"})
    assert "Visible" not in shown.text
    for name in ("sort", "page"):
        assert name in (await owner_page.get(LIST)).form(BULK, "get").controls


async def test_existing_groups_are_checkboxes(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana", groups=["Legs, arms", "Evening"])
    confirmation = await owner_page.get(BULK, params={"ids": ana["_id"], "action": "groups-remove"})
    assert 'value="Legs, arms"' in confirmation.html
    assert "New groups" not in confirmation.text
    (await owner_page.submit(confirmation, BULK)).ok(400).says("This is required.")
    (await owner_page.submit(confirmation, BULK, groupNames=["Legs, arms", ""])).says("1 client changed")
    saved = (await coach.get(f"/coach/customers/{ana['_id']}")).ok()
    assert saved["customerRoleData"]["groups"] == ["Evening"]
    await coach.patch(f"/coach/customers/{ana['_id']}", {"groups": []})
    nothing = await owner_page.get(BULK, params={"ids": ana["_id"], "action": "groups-remove"})
    assert [form for form in nothing.says("No groups yet").forms if form.action.startswith(BULK)] == []


async def test_empty_selection_is_reported(coach: CoachClient, owner_page: Visitor) -> None:
    await coach.create_customer("Ana")
    confirmation = await owner_page.get(BULK, params={"all": "true", "action": "archive"})
    (await owner_page.submit(confirmation, BULK)).says("1 client changed")

    again = await owner_page.submit(confirmation, BULK)

    again.ok().says("The action may already have been completed", "No active clients", "You have 1 archived client.")
    (await owner_page.get(next(link for link in again.links if "archived" in link))).says("Ana")


async def test_long_search_is_truncated(coach: CoachClient, owner_page: Visitor) -> None:
    await coach.create_customer("Ana", groups=["Morning"])
    for words in ("x" * 300, "x\x00y"):
        seen = await owner_page.get(LIST, params={"keywords": words, "groups": "Morning"})
        seen.ok().says("No clients found")
        assert seen.form(LIST, "get").controls["keywords"]["value"] == words.replace("\x00", " ")[:200]
    for library in ("/app/exercises", "/app/programs"):
        (await owner_page.get(library, params={"keywords": "x" * 300})).ok().says("matches")


async def test_actions_are_hidden_without_edit_permission(coach: CoachClient, colleague: Colleague) -> None:
    await coach.create_customer("Ana")
    seen = (await (await colleague("customers.view")).get(LIST)).says("Ana")
    assert 'type="checkbox" name="ids"' not in seen.html
    assert "Bulk action" not in seen.text


async def test_assigning_programs_requires_viewing_programs(coach: CoachClient, colleague: Colleague) -> None:
    ana = await coach.create_customer("Ana")
    eli = await colleague("customers.view", "customers.edit", "metrics.edit")
    seen = (await eli.get(LIST)).says("Add to groups…")
    assert "Assign a program" not in seen.text
    assert "Assign a metric set" not in seen.text
    confirmation = await eli.get(BULK, params={"ids": ana["_id"], "action": "assign-program"})
    confirmation.ok(403).says("The permission “Programs: view” is missing.")


async def test_assigning_programs_without_programs_shows_a_hint(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    for action, rejected in (("assign-program", "No programs yet"), ("assign-metrics-set", "No metric sets yet")):
        confirmation = await owner_page.get(BULK, params={"ids": ana["_id"], "action": action})
        confirmation.ok().says(rejected)
        assert [form.action for form in confirmation.forms if form.action.startswith(BULK)] == []


async def test_add_client_is_hidden_without_permission(coach: CoachClient, colleague: Colleague) -> None:
    (await (await colleague("customers.view")).get(LIST)).says("No clients yet", "Clients added by your colleagues")
    (await (await colleague("customers.view", scope="assigned")).get(LIST)).says("You see the clients assigned")


async def test_page_beyond_the_last_links_back(coach: CoachClient, owner_page: Visitor) -> None:
    await coach.create_customers(*(f"Client {number:02}" for number in range(26)))
    past = (await owner_page.get(f"{LIST}?page=99999&keywords=client")).ok()
    past.says("There is no page 99999", "Go to page 2")
    assert "Your first client" not in past.text
    back = await owner_page.get(next(link for link in past.links if "page=2" in link))
    back.says("Client 25", "Page 2 of 2")
    for library in ("/app/exercises", "/app/exercises?keywords=squat"):
        (await owner_page.get(library, params={"page": "99999"})).ok().says("There is no page 99999")


async def test_many_clients_are_changed_and_restored_in_the_background(
    coach: CoachClient, owner_page: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The form leads to a page with the progress, once; from there, and from the history, the job is undone."""
    monkeypatch.setattr(jobs, "MAX_AT_ONCE", 2)
    for name in ("Ana", "Björn", "Chidi"):
        await coach.create_customer(name)
    confirmation = await owner_page.get(BULK, params={"all": "true", "action": "message"})
    job = await owner_page.submit(confirmation, BULK, text="Closed on Monday")
    again = await owner_page.submit(confirmation, BULK, text="Closed on Monday")
    assert job.path.startswith("/app/jobs/")
    assert job.path == again.path

    async def has_ended() -> bool:
        return "Cancel" not in (await owner_page.get(job.path)).ok().text

    await until(has_ended, "the messages are sent", 60)
    sent = (await owner_page.get(job.path)).says("Message sent to clients", "3 clients written to")
    assert f"{job.path.partition('?')[0]}/undo" not in sent.html  # messages cannot be undone
    assert await coach.ctx.db["messages"].count_documents({"companyId": coach.ctx.company_id}) == 3

    confirmation = await owner_page.get(BULK, params={"all": "true", "action": "archive"})
    job = await owner_page.submit(confirmation, BULK)
    await until(has_ended, "the clients are archived", 60)
    assert await coach.names() == []
    undo = await owner_page.get(job.path.partition("?")[0])
    job = await owner_page.submit(undo, f"{undo.path}/undo")
    await until(has_ended, "the clients are active", 60)
    (await owner_page.get(job.path)).says("Undo of changes", "3 records restored")
    assert await coach.names() == ["Ana", "Björn", "Chidi"]

    (await owner_page.get("/app/settings/history")).says("Changes of many clients")
    listed = await owner_page.get("/app/jobs")
    listed.says("Undo of changes", "Clients archived", "Message sent to clients", "Done, 3 clients", "Done, 3 changes")
    assert job.path in listed.links


async def test_jobs_are_listed_with_how_far_they_are(
    coach: CoachClient, owner_page: Visitor, colleague: Colleague, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the coach; an undo of one that is running leads to the job that undoes it already."""
    monkeypatch.setattr(queue, "enqueue", partial(queue.enqueue, after=timedelta(hours=1)))
    (await owner_page.get("/app/jobs")).says("No changes of many clients")
    body = {"ids": [(await coach.create_customer())["_id"]]}
    accepted = await coach.post("/coach/customers/bulk/archive", body, headers={"Prefer": "respond-async"})
    path = f"/app/jobs/{accepted.ok(202)['jobId']}"
    (await owner_page.get("/app/jobs")).says("Client archived", "Waiting to begin, 1 client")
    waiting = (await owner_page.get(path)).says("Waiting to begin", "0 of 1 client")
    (await owner_page.submit(waiting, f"{path}/cancel")).says("Cancelled.", "0 of 1 client changed")
    (await owner_page.get("/app/jobs")).says("Cancelled, 1 client")
    (await (await colleague("customers.view")).get("/app/jobs")).says("No changes of many clients")


async def test_who_may_no_longer_change_clients_only_reads_a_job(
    coach: CoachClient, colleague: Colleague, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page offers what the coach may do, and refuses a form that was open before."""
    monkeypatch.setattr(jobs, "MAX_AT_ONCE", 0)
    monkeypatch.setattr(queue, "enqueue", partial(queue.enqueue, after=timedelta(hours=1)))
    await coach.create_customer("Ana")
    eli = await colleague("customers.view", "customers.edit")
    confirmation = await eli.get(BULK, params={"all": "true", "action": "archive"})
    waiting = await eli.submit(confirmation, BULK)
    [employee] = [each for each in await team.list_coaches(coach.ctx) if each["role"] != "OWNER"]
    await team.update_employee(coach.ctx, employee["_id"], {"permissions": ["customers.view"]})
    path = waiting.path.partition("?")[0]
    (await eli.submit(waiting, f"{path}/cancel")).ok(403)
    page = (await eli.get(path)).says("Waiting to begin")
    assert f"{path}/cancel" not in page.html


async def test_check_ins_are_added_to_the_selected_clients(coach: CoachClient, owner_page: Visitor) -> None:
    ids = [(await coach.create_customer(name))["_id"] for name in ("Ana", "Bo")]
    form = (await coach.post("/coach/forms", {"name": "Weekly", "questions": [{"label": "Well?"}]})).ok(201)
    page = (await owner_page.get(BULK, params={"ids": ids, "action": "check-in"})).ok().says("Add a check-in")
    (await owner_page.submit(page, BULK, content="task", title="")).ok(400).says("should not be empty")
    days = {"startDate": "2026-03-02", "rhythm": "weekday-7"}
    done = await owner_page.submit(page, BULK, content=f"form-{form['_id']}", **days)
    done.ok().says("Check-in added to clients", "2 clients changed")
    for customer_id in ids:
        [check_in] = (await coach.get(f"/coach/customers/{customer_id}/check-ins")).ok()
        assert (check_in["formId"], check_in["weekday"]) == (form["_id"], 7)
    undone = await owner_page.submit(done, f"{done.path.partition('?')[0]}/undo")
    undone.ok().says("Undone.", "Ana")
    assert undone.path.startswith(LIST)


async def test_clients_are_reminded_of_overdue_forms(
    coach: CoachClient, owner_page: Visitor, colleague: Colleague
) -> None:
    ana, bo, cy = [await coach.create_customer(name) for name in ("Ana", "Bo", "Cy")]
    item = {"type": "FORM", "form": {"name": "Sleep", "questions": [{"label": "Well?"}]}}
    for customer in (ana, bo):
        await block_with(coach, customer, item, date=str(coach.ctx.caller.today() - timedelta(days=2)))
    remind = "/app/inbox/remind"
    inbox = (await owner_page.get("/app/inbox")).ok().says("Remind all", "Remind Ana")
    of_ana = next(form for form in inbox.forms if form.action == remind and ("customerId", ana["_id"]) in form.fields)
    for answer in ("Ana is reminded.", "Ana has been reminded today already."):
        (await owner_page.submit(inbox.with_form(of_ana), remind)).ok().says(answer)
    page = await owner_page.get(BULK, params={"ids": [ana["_id"], bo["_id"], cy["_id"]], "action": "form-remind"})
    done = await owner_page.submit(page.ok().says("once a day"), BULK)
    done.ok().says("1 of 3 clients reminded", "1 client reminded today already.", "1 client without an overdue form")
    assert not [form for form in done.forms if form.action.endswith("/undo")]
    all_of_them = next(form for form in inbox.forms if form.action == remind and "customerId" not in dict(form.fields))
    everybody = await owner_page.submit(inbox.with_form(all_of_them), remind)
    everybody.ok().says("0 of 3 clients reminded", "2 clients reminded today already.")
    seen = await (await colleague("customers.view", "forms.view")).get("/app/inbox")
    assert "Remind" not in seen.ok().says("Sleep").text


async def test_templates_fill_a_message_to_many(coach: CoachClient, owner_page: Visitor) -> None:
    ana, bo = [await coach.create_customer(name) for name in ("Ana", "Bo")]
    made = await owner_page.get("/app/settings/message-templates")
    made = await owner_page.submit(made.ok(), "/app/settings/message-templates", name="Hi", text="Hi {firstName}")
    made.ok().says("Hi created.")
    page = await owner_page.get(BULK, params={"ids": [ana["_id"], bo["_id"]], "action": "message"})
    [link] = [each for each in page.links if "templateId=" in each]
    filled = await owner_page.get(link)
    assert dict(filled.form(BULK).fields)["text"].strip() == "Hi {firstName}"
    (await owner_page.submit(filled, BULK, text="Hello {firstName}")).ok().says("2 clients written to")
    for customer, name in ((ana, "Ana"), (bo, "Bo")):
        [message] = (await coach.get(f"/coach/customers/{customer['_id']}/messages")).ok()["docs"]
        assert message["text"] == f"Hello {name}"
    wrong = await owner_page.submit(filled, BULK, deliverAt="2020-01-01T09:00")
    wrong.ok(400).says("must not be in the past")
    tomorrow = coach.ctx.caller.today() + timedelta(days=1)
    later = (await owner_page.submit(filled, BULK, text="Later", deliverAt=f"{tomorrow}T09:00")).ok()
    undone = await owner_page.submit(later, f"{later.path.partition('?')[0]}/undo")
    undone.ok().says("Undone.")
    assert len((await coach.get(f"/coach/customers/{ana['_id']}/messages")).ok()["docs"]) == 1
