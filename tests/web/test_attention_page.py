"""The start page of the web application: the clients who need a coach."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from tests.support.client import CoachClient
from tests.support.figures import renew_figures
from tests.support.training import block_with, client_path, form_of, log, own_log, task
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import Colleague

ATTENTION = "/app/attention"


async def test_each_reason_links_to_the_page_where_it_is_dealt_with(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana", surname="Ruiz")
    client = await coach.as_client(ana)
    (await client.post("/customer/messages", {"text": "Hello"})).ok(201)
    (await coach.post(client_path(ana, "notes"), {"content": "Knee", "isHealth": True})).ok(201)
    missed = str(coach.ctx.caller.today() - timedelta(days=2))
    await block_with(coach, ana, task(), date=missed)
    await renew_figures(coach.ctx)

    page = (await owner_page.get("/app")).ok()

    assert page.path == ATTENTION, "it is the start page"
    page.says(
        "Ana Ruiz", "1 health note", "1 unread message", "1 missed workout", "Low compliance", "Nothing scheduled"
    )
    path = f"/app/customers/{ana['_id']}"
    assert {f"{path}/notes", f"{path}/messages", f"{path}?week={missed}", f"{path}/progress", path} <= set(page.links)
    for link in page.links:
        if link.startswith(path):
            (await owner_page.get(link)).ok()


async def test_check_in_to_review_links_to_the_inbox(
    coach: CoachClient, owner_page: Visitor, colleague: Colleague
) -> None:
    ana, today = await coach.create_customer("Ana"), str(coach.ctx.caller.today())
    block = await block_with(coach, ana, form_of({"label": "How was it?", "type": "text"}), date=today)
    [item] = block["items"]
    answers = [{"questionId": item["form"]["questions"][0]["_id"], "value": "Good"}]
    (await own_log(await coach.as_client(ana), block, item, isCompleted=True, answers=answers)).ok()
    await renew_figures(coach.ctx)

    page = (await owner_page.get(ATTENTION)).says("1 check-in to review")

    assert "/app/inbox#responses" in page.links
    (await owner_page.get("/app/inbox")).says("Responses to review", "Ana")
    without_forms = (await (await colleague("customers.view")).get(ATTENTION)).says("Ana", "Nothing scheduled")
    assert "check-in to review" not in without_forms.text


async def test_dismissed_reason_leaves_the_list_and_can_be_undone(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    await renew_figures(coach.ctx)
    page = (await owner_page.get(ATTENTION)).ok().says("Ana", "Nothing scheduled")
    action = f"{ATTENTION}/{ana['_id']}/dismiss"

    page = await owner_page.submit(page, action)

    page.ok().says("Dismissed until something new happens.", "No client needs you now", "Undo")
    assert (await coach.get("/coach/attention")).ok()["docs"] == []
    undo = next(form for form in page.forms if form.action.endswith("/undo"))
    (await owner_page.submit(page, undo.action)).ok()
    await renew_figures(coach.ctx)
    page = (await owner_page.get(ATTENTION)).says("Nothing scheduled")
    today = coach.ctx.caller.today()
    for day in (today, today - timedelta(days=9)):
        await block_with(coach, ana, task(), date=str(day))
    await renew_figures(coach.ctx)
    (await owner_page.submit(page, action)).ok().says("This reason no longer applies.", "Low compliance")


async def test_list_is_read_in_parts(coach: CoachClient, owner_page: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coaching_service.web.views.attention._CLIENTS_PER_PAGE", 2)
    for number in range(3):
        await coach.create_customer(f"Client {number}")
    await renew_figures(coach.ctx)
    page = (await owner_page.get(ATTENTION)).says("Client 1", "3 left", "Show more")
    assert "Client 2" not in page.text
    (following,) = [link for link in page.links if "after=" in link]
    (await owner_page.get(following)).says("Client 2", "3 left")
    assert (await owner_page.get(f"{ATTENTION}?after=other")).path == ATTENTION


async def test_page_without_entries_says_why(coach: CoachClient, owner_page: Visitor, colleague: Colleague) -> None:
    (await owner_page.get(ATTENTION)).ok().says("Add your first client")
    eli = await colleague("customers.view", scope="assigned")
    (await eli.get("/app")).ok().says("No clients yet")
    ana = await coach.create_customer("Ana")
    block = await block_with(coach, ana, task(), date=str(coach.ctx.caller.today()))
    (await log(coach, block, block["items"][0])).ok()
    await renew_figures(coach.ctx)
    (await owner_page.get(ATTENTION)).says("No client needs you now")


async def test_coach_who_only_views_cannot_dismiss(coach: CoachClient, colleague: Colleague) -> None:
    await coach.create_customer("Ana")
    await renew_figures(coach.ctx)
    page = (await (await colleague("customers.view")).get(ATTENTION)).ok().says("Ana", "Nothing scheduled")
    assert "Dismiss" not in page.text


async def test_client_is_dealt_with_in_the_list(coach: CoachClient, owner_page: Visitor) -> None:
    ana, today = await coach.create_customer("Ana"), str(coach.ctx.caller.today())
    client = await coach.as_client(ana)
    for question in ("How was it?", "And sleep?"):
        block = await block_with(coach, ana, form_of({"label": question, "type": "text"}), date=today)
        [item] = block["items"]
        answers = [{"questionId": item["form"]["questions"][0]["_id"], "value": "Good"}]
        (await own_log(client, block, item, isCompleted=True, answers=answers)).ok()
    (await client.post("/customer/messages", {"text": "Which shoes?"})).ok(201)
    await renew_figures(coach.ctx)
    path = f"{ATTENTION}/{ana['_id']}"

    page = (await owner_page.get(path)).ok().says("Which shoes?", "How was it?", "And sleep?", "2 check-ins to review")
    [action, *_] = [form.action for form in page.forms if form.action.endswith("/reviewed")]
    (await owner_page.submit(page, action)).ok().says("Marked as reviewed.", "1 check-in to review", "1 unread message")
    (await owner_page.submit(page, f"{path}/reply", text=" ")).ok(400).says("Which shoes?", "should not be empty")
    (await owner_page.submit(page, f"{path}/reply", text="The flat ones")).ok().says("Message sent.")

    page = (await owner_page.get(path)).ok().says("1 check-in to review")
    assert "unread" not in page.text
    assert (await client.get("/customer/messages")).ok()["docs"][0]["text"] == "The flat ones"


async def test_client_is_snoozed_until_a_date(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    (await coach.post(client_path(ana, "notes"), {"content": "Knee", "isHealth": True})).ok(201)
    await renew_figures(coach.ctx)
    page = (await owner_page.get(ATTENTION)).says("1 left", "health note", "Nothing scheduled", "Until tomorrow")
    until = str(coach.ctx.caller.today() + timedelta(days=1))

    sent = await owner_page.submit(
        page, f"{ATTENTION}/{ana['_id']}/dismiss", reason=["health_note", "nothing_scheduled"], until=until
    )

    sent.ok().says("Dismissed until", "0 left", "Undo")
    assert (await coach.get("/coach/attention")).ok()["docs"] == []


def options_of(page: HtmlPage, name: str) -> list[str]:
    """The texts of the options of a filter."""
    select = page.html.partition(f'<select id="filter-{name}"')[2].partition("</select>")[0]
    return re.findall(r"<option[^>]*>([^<]*)</option>", select)


async def test_list_is_filtered_by_reason_trainer_and_group(
    coach: CoachClient, owner_page: Visitor, colleague: Colleague
) -> None:
    me = str(coach.ctx.caller.id)
    ana = await coach.create_customer("Ana", groups=["Morning", "Strength"], assignedTo=me)
    bo = await coach.create_customer("Bo", groups=["Morning"])
    await coach.create_customer("Cem", assignedTo=me)
    for client in (ana, bo):
        (await coach.post(client_path(client, "notes"), {"content": "Knee", "isHealth": True})).ok(201)
    (await (await coach.as_client(ana)).post("/customer/messages", {"text": "Hello"})).ok(201)
    await renew_figures(coach.ctx)

    page = (await owner_page.get(ATTENTION)).ok().says("3 left")
    assert options_of(page, "reason") == [
        "All", "Health notes (2)", "Unread messages (1)", "Nothing scheduled (3)"
    ]  # fmt: skip
    assert options_of(page, "assignedTo") == ["All", "Olga Owner (2)", "Unassigned (1)"]
    assert options_of(page, "groups") == ["All", "Morning (2)", "Strength (1)"]

    page = await owner_page.get(ATTENTION, params={"reason": "health_note", "assignedTo": "none", "groups": ""})
    page.ok().says("1 left", "Bo", "Clear filters")
    assert f"/app/customers/{ana['_id']}" not in page.links
    assert options_of(page, "reason") == ["All", "Health notes (1)", "Nothing scheduled (1)"], "of this trainer"
    assert options_of(page, "assignedTo") == ["All", "Olga Owner (1)", "Unassigned (1)"], "with this reason"
    entry = f"{ATTENTION}/{bo['_id']}"
    page = await owner_page.submit(page, f"{entry}/dismiss", reason="health_note")
    page.ok().says("Dismissed until", "No client matches", "0 left")
    assert page.path == f"{ATTENTION}?reason=health_note&assignedTo=none", "the filter stays"
    (await owner_page.get(f"{entry}?reason=health_note")).ok().says("Nothing left")
    (await owner_page.get(f"{entry}?reason=nothing_scheduled")).ok().says("Bo", "Nothing scheduled")

    page = await owner_page.get(f"{ATTENTION}?groups=Strength")
    page.ok().says("Ana", "1 left")
    (await owner_page.get(f"{ATTENTION}?reason=unknown")).ok().says("3 left")
    eli = await colleague("customers.view", scope="assigned")
    assert "Morning" not in (await eli.get(ATTENTION)).ok().text, "clients of others are not counted"


async def test_filter_stays_in_the_parts_of_the_list(
    coach: CoachClient, owner_page: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coaching_service.web.views.attention._CLIENTS_PER_PAGE", 2)
    for number in range(5):
        await coach.create_customer(f"Client {number}", groups=["Odd"] if number % 2 else ["Even"])
    await renew_figures(coach.ctx)
    page = (await owner_page.get(f"{ATTENTION}?groups=Even")).says("3 left", "Client 0", "Client 2")
    (following,) = [link for link in page.links if "after=" in link]
    page = (await owner_page.get(following)).says("Client 4")
    assert "Client 1" not in page.text
    assert "Client 3" not in page.text


async def test_absent_clients_are_counted_as_they_are_listed(coach: CoachClient, owner_page: Visitor) -> None:
    """Those with other reasons first; of a filter too."""
    today = str(coach.ctx.caller.today())
    for name in ("Ana", "Bo"):
        client = await coach.create_customer(name, groups=["Morning", name])
        (await coach.post(client_path(client, "availability"), {"kind": "away", "from": today})).ok(201)
    (await coach.post(client_path(client, "notes"), {"content": "Knee", "isHealth": True})).ok(201)
    await renew_figures(coach.ctx)
    page = (await owner_page.get(ATTENTION)).ok().says("Ana", "Bo", "2 left")
    assert options_of(page, "reason") == ["All", "Health notes (1)", "Away or ill (2)"]
    assert options_of(page, "groups") == ["All", "Ana (1)", "Bo (1)", "Morning (2)"]
    (await owner_page.get(f"{ATTENTION}?reason=unavailable")).ok().says("Ana", "Bo", "2 left")
    page = (await owner_page.get(f"{ATTENTION}?reason=health_note")).ok().says("Bo", "1 left")


async def test_many_lesser_reasons_are_a_line_each(coach: CoachClient, owner_page: Visitor) -> None:
    for number in range(7):
        await coach.create_customer(f"Client {number}", groups=["Odd"] if number % 2 else ["Even"])
    urgent = await coach.create_customer("Ana")
    (await coach.post(client_path(urgent, "notes"), {"content": "Knee", "isHealth": True})).ok(201)
    await renew_figures(coach.ctx)
    page = (await owner_page.get(ATTENTION)).ok().says("Ana", "Less urgent", "Nothing scheduled 8 clients", "8 left")
    assert "Client 0" not in page.text
    [link] = [each for each in page.links if each == f"{ATTENTION}?reason=nothing_scheduled"]
    (await owner_page.get(link)).ok().says("Client 0", "Client 6", "Ana", "8 left")
    few = (await owner_page.get(f"{ATTENTION}?groups=Odd")).ok().says("Client 1", "Client 5", "3 left")
    assert "Less urgent" not in few.text, "a few have an entry each"


async def test_a_check_in_is_answered_and_reminded_of_here(
    coach: CoachClient, owner_page: Visitor, colleague: Colleague
) -> None:
    ana, today = await coach.create_customer("Ana"), coach.ctx.caller.today()
    question = form_of({"label": "How was it?", "type": "text"})
    block = await block_with(coach, ana, question, date=str(today - timedelta(days=1)))
    await block_with(coach, ana, question, date=str(today - timedelta(days=2)))
    [item] = block["items"]
    answers = [{"questionId": item["form"]["questions"][0]["_id"], "value": "Good"}]
    client = await coach.as_client(ana)
    (await own_log(client, block, item, isCompleted=True, answers=answers)).ok()
    await renew_figures(coach.ctx)
    entry = f"{ATTENTION}/{ana['_id']}"
    page = (await owner_page.get(entry)).ok().says("Answer Ana", "How was it?", "Remind Ana")
    viewer = await (await colleague("customers.view", "forms.view")).get(entry)
    assert "Remind Ana" not in viewer.ok().says("How was it?").text
    (await owner_page.submit(page, f"{entry}/remind")).ok().says("Ana is reminded.")
    (await owner_page.submit(page, f"{entry}/remind")).ok().says("Ana has been reminded today already.")
    [response] = (await coach.get("/coach/form-responses")).ok()["docs"]
    reply = f"{entry}/responses/{response['_id']}/reply"
    (await owner_page.submit(page, reply, text=" ")).ok(400).says("Answer Ana")
    page = await owner_page.submit(page, reply, text="Well done")
    page.ok().says("Message sent, and marked as reviewed.")
    assert "check-in to review" not in page.text
    [message] = (await client.get("/customer/messages")).ok()["docs"]
    assert message["text"] == "Well done"
