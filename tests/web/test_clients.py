"""The pages of clients: the list, adding a client, bulk actions and the calendar."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import derived_figures
from coaching_service.progress.attention import service as attention
from tests.support import training
from tests.support.client import MONDAY, TUESDAY, CoachClient
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import Colleague


def week_of(customer: dict[str, str], day: str = MONDAY) -> str:
    return f"/app/customers/{customer['_id']}?week={day}"


async def test_client_list_is_filtered_and_paginated(coach: CoachClient, owner_page: Visitor) -> None:
    await coach.create_customers("Client 00", "Client 01", groups=["Morning"])
    await coach.create_customers(*(f"Client {number:02}" for number in range(2, 27)))
    await coach.create_customer("José", surname="García")

    first = (await owner_page.get("/app/customers")).ok().says("28 active clients", "Page 1 of 2", "Client 00")
    assert "José" not in first.text
    second = await owner_page.get(next(link for link in first.links if "page=2" in link))
    second.says("José García", "Page 2 of 2")
    (await owner_page.get("/app/customers?keywords=jose")).says("1 active client found", "José García")
    (await owner_page.get("/app/customers?groups=Morning")).says("2 active clients found")
    (await owner_page.get("/app/customers?keywords=zzz")).says("No clients found")
    await coach.create_customer("Sinéad", surname="O’Connor")
    (await owner_page.get("/app/customers?keywords=o'connor")).says("1 active client found", "Sinéad O’Connor")
    (await owner_page.get("/app/customers?archived=true")).says("No archived clients")
    (await owner_page.get("/app/customers?page=zero")).ok().says("Page 1 of 2")


async def test_client_list_is_sorted_by_stored_figures(
    coach: CoachClient, owner_page: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coaching_service.web.views.customers._CLIENTS_PER_PAGE", 2)
    figures = {"Ana": ("2026-03-02", 50.0), "Björn": ("2026-03-09", None), "Chidi": (None, 75.0), "Dana": (None, None)}
    for name, (trained, rate) in figures.items():
        customer = await coach.create_customer(name, groups=["Morning"] if name != "Ana" else [])
        stored = {ObjectId(customer["_id"]): {"lastTrainedDate": trained, "complianceRate30d": rate}}
        until = dict.fromkeys(stored, now() + timedelta(days=1))
        await derived_figures.store_figures(coach.ctx, stored, until)

    async def names(query: str) -> list[str]:
        listed = []
        for page in (1, 2):
            text = (await owner_page.get(f"/app/customers?{query}&page={page}")).ok().text
            listed += re.findall("|".join(figures), text)
        return list(dict.fromkeys(listed))

    assert await names("sort=lastTrained") == ["Ana", "Björn", "Chidi", "Dana"]
    assert await names("sort=-lastTrained") == ["Björn", "Ana", "Dana", "Chidi"]
    assert await names("sort=compliance") == ["Ana", "Chidi", "Björn", "Dana"]
    assert await names("sort=-compliance") == ["Chidi", "Ana", "Dana", "Björn"]
    assert await names("sort=compliance&groups=Morning") == ["Chidi", "Björn", "Dana"]
    (await owner_page.get("/app/customers?sort=compliance&keywords=a")).says("found, by name")
    assert await names("sort=compliance&keywords=a") == ["Ana", "Dana"]


async def test_client_list_is_sorted_by_unread_messages(coach: CoachClient, owner_page: Visitor) -> None:
    clients = {name: await coach.create_customer(name) for name in ("Ana", "Björn", "Chidi", "Dana")}
    for name, count in (("Chidi", 1), ("Dana", 2), ("Björn", 1)):
        writer = await coach.as_client(clients[name])
        for number in range(count):
            (await writer.post("/customer/messages", {"text": str(number)})).ok(201)

    async def names() -> list[str]:
        for client in clients.values():
            await attention.renew(coach.ctx, ObjectId(client["_id"]))
        text = (await owner_page.get("/app/customers?sort=-unread")).ok().text
        return list(dict.fromkeys(re.findall("|".join(clients), text)))

    assert await names() == ["Dana", "Björn", "Chidi", "Ana"]
    await owner_page.get(f"/app/customers/{clients['Dana']['_id']}/messages")
    (await coach.put(f"/coach/customers/{clients['Dana']['_id']}/messages/read")).ok()
    assert await names() == ["Björn", "Chidi", "Ana", "Dana"]


async def test_client_list_has_the_last_seven_days_and_unread_messages(coach: CoachClient, owner_page: Visitor) -> None:
    ana, today = await coach.create_customer("Ana"), coach.ctx.caller.today()
    await (await coach.as_client(ana)).post("/customer/messages", {"text": "Hello"})
    days = [today - timedelta(days=number) for number in range(5)]
    for day in days[:3]:
        block = await training.block_with(coach, ana, training.task(), training.task(), date=str(day))
        for item in block["items"][: (today - day).days]:
            (await training.log(coach, block, item)).ok()
    await training.block_with(coach, ana, training.task(), date=str(days[3]))
    await coach.post(f"/coach/customers/{ana['_id']}/wblocks", {"name": "Rest", "date": str(days[4]), "isRest": True})

    page = (await owner_page.get("/app/customers")).ok()

    states = ("planned", "partly done", "done", "missed", "rest")
    page.says(*(f"{day:%a} {day.day} {day:%b}: {state}" for day, state in zip(days, states, strict=True)))
    page.says("1 unread from Ana")


async def test_new_company_is_prompted_to_add_its_first_client(owner_page: Visitor) -> None:
    (await owner_page.get("/app")).ok().says("Add your first client", "Add client")


async def test_client_is_added_with_groups(coach: CoachClient, owner_page: Visitor) -> None:
    page = await owner_page.get("/app/customers/new")
    invalid = await owner_page.submit(page, "/app/customers/new", name="Ana", email="not an address")
    assert invalid.ok(400).form("/app/customers/new").controls["email"]["value"] == "not an address"

    added = await owner_page.submit(
        invalid, "/app/customers/new", email="ana@example.com", groups=["Morning\r\nOnline, late\r\n", "Morning"]
    )

    added.ok().says("Ana added. Invitation sent.")
    (ana,) = (await coach.customers())["docs"]
    assert ana["customerRoleData"]["groups"] == ["Morning", "Online, late"]
    assert ana["customerRoleData"]["assignedTo"] == str(coach.ctx.caller.id)


async def choose(page: HtmlPage, visitor: Visitor, **chosen: str | list[str]) -> HtmlPage:
    form = page.form("/app/customers/bulk", "get")
    pairs = [(name, value) for name, value in form.fields if name not in chosen]
    for name, value in chosen.items():
        pairs += [(name, each) for each in (value if isinstance(value, list) else [value])]
    return await visitor.get("/app/customers/bulk", params=pairs)


async def test_selected_clients_are_added_to_a_group(coach: CoachClient, owner_page: Visitor) -> None:
    ids = [(await coach.create_customer(name))["_id"] for name in ("Ana", "Björn", "Chidi")]
    page = await owner_page.get("/app/customers")

    confirmation = await choose(page, owner_page, ids=ids[:2], action="groups-add")
    confirmation.ok().says("2 clients", "Add to groups")
    repeated = await owner_page.submit(confirmation, "/app/customers/bulk", groupNames=" ")
    repeated.ok(400).says("This is required.", "2 clients")
    done = await owner_page.submit(confirmation, "/app/customers/bulk", groupNames=["Spring\r\nRunners, early"])

    done.ok().says("2 clients changed")
    assert "default-src 'none'" in done.headers["Content-Security-Policy"]
    assert await coach.names(groups="Runners, early") == ["Ana", "Björn"]


async def test_all_clients_of_a_filter_are_archived_and_deleted(coach: CoachClient, owner_page: Visitor) -> None:
    await coach.create_customers(*(f"Old {number}" for number in range(30)))
    await coach.create_customer("Ana")
    page = await owner_page.get("/app/customers?keywords=old")

    confirmation = await choose(page, owner_page, all="true", action="archive")
    done = await owner_page.submit(confirmation.says("30 clients"), "/app/customers/bulk")
    done.says("30 clients changed")
    assert await coach.names() == ["Ana"]

    archived = await owner_page.get("/app/customers?archived=true")
    confirmation = await choose(archived, owner_page, all="true", action="delete")
    confirmation.says("30 clients will be deleted.", "This cannot be undone.")
    (await owner_page.submit(confirmation, "/app/customers/bulk")).says("30 clients deleted")
    assert await coach.names(archived="true") == []


async def test_bulk_result_lists_each_client_that_failed(coach: CoachClient, owner_page: Visitor) -> None:
    ana, deleted = await coach.create_customer("Ana"), await coach.create_customer("Gone")
    page = await owner_page.get("/app/customers")
    confirmation = await choose(page, owner_page, ids=[ana["_id"], deleted["_id"]], action="archive")
    await coach.delete(f"/coach/customers/{deleted['_id']}")

    done = await owner_page.submit(confirmation, "/app/customers/bulk")

    done.ok().says("1 of 2 clients changed", "1 client could not be changed", "Customer not found")


async def test_bulk_result_names_each_client_that_failed(coach: CoachClient, owner_page: Visitor) -> None:
    full = await coach.create_customer("Ana", surname="Costa", groups=[f"Group {number}" for number in range(50)])
    page = await owner_page.get("/app/customers")
    confirmation = await choose(page, owner_page, ids=[full["_id"]], action="groups-add")
    done = await owner_page.submit(confirmation, "/app/customers/bulk", groupNames=["Evening"])
    done.ok().says("0 of 1 client changed", "1 client could not be changed: Ana Costa : ")
    assert f"/app/customers/{full['_id']}" in done.links


async def test_bulk_action_requires_a_selected_client(owner_page: Visitor, coach: CoachClient) -> None:
    await coach.create_customer()
    page = await owner_page.get("/app/customers")
    (await choose(page, owner_page, action="delete")).says("Select at least one client.")


async def test_bulk_assignment_reports_a_deleted_program(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    confirmation = await choose(
        await owner_page.get("/app/customers"), owner_page, ids=[ana["_id"]], action="assign-program"
    )
    await coach.delete(f"/coach/programs/{program['_id']}")

    rejected = await owner_page.submit(confirmation, "/app/customers/bulk", programId=program["_id"], startDate=MONDAY)

    rejected.ok(409).says("Program not found")


async def test_week_is_planned_on_the_calendar(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    squat = await coach.create_exercise("Garage Squat")
    week = (await owner_page.get(week_of(ana))).ok().says("2 – 8 Mar 2026", "No workouts this week")

    invalid = await owner_page.submit(week, f"/app/customers/{ana['_id']}/blocks", name=" ", date=TUESDAY)
    invalid.ok(400).says("This should not be empty.", "2 – 8 Mar 2026")
    block = await owner_page.submit(week, f"/app/customers/{ana['_id']}/blocks", name="Legs", date=TUESDAY)
    block.ok().says("Legs added. Now add exercises to it.")
    path = block.path.partition("?")[0]
    results_page = (await owner_page.get(f"{path}?keywords=garage")).says("Garage Squat")
    invalid = await owner_page.submit(results_page, f"{path}/items", exerciseId=squat["_id"], sets="many")
    invalid.ok(400).says("This must be a whole number.", "Garage Squat")
    added = await owner_page.submit(
        results_page,
        f"{path}/items",
        exerciseId=squat["_id"],
        sets="4",
        low="5",
        high="6",
        load="82,5",
    )
    added.ok().says("Garage Squat added.", "4 × 5–6 × 82.5 kg")
    (await owner_page.submit(added, f"{path}/tasks", title="Walk", description="Half an hour")).says("Walk added.")

    (stored,) = await coach.calendar(ana)
    assert [item["type"] for item in stored["items"]] == ["EXERCISE", "TASK"]
    (await owner_page.get(week_of(ana))).says("Legs", "Garage Squat", "4 × 5–6 × 82.5 kg", "Half an hour")


async def test_item_is_moved_to_another_day(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    legs, arms = await coach.schedule(ana, MONDAY, "Legs"), await coach.schedule(ana, TUESDAY, "Arms")
    plans: list[tuple[dict[str, Any], list[str]]] = [(legs, ["Walk", "Run"]), (arms, ["Swim"])]
    for block, tasks in plans:
        for title in tasks:
            path = f"/coach/customers/{ana['_id']}/wblocks/{block['_id']}/witems"
            (await coach.post(path, {"type": "TASK", "taskFields": {"title": title}})).ok(201)
    week = await owner_page.get(week_of(ana))

    moved = await owner_page.submit(week, f"/app/customers/{ana['_id']}/move", target=arms["_id"], place="1")

    moved.ok().says("Moved to Arms.")
    calendar = await coach.calendar(ana)
    titles = [[item["taskFields"]["title"] for item in block["items"]] for block in calendar]
    assert titles == [["Run"], ["Walk", "Swim"]]
    repeated = await owner_page.submit(week, f"/app/customers/{ana['_id']}/move", target=arms["_id"], place="2")
    repeated.ok(409).says("This item is no longer in the workout")


async def test_workout_is_copied_and_deleted(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    block = await coach.schedule(ana)
    path = f"/app/customers/{ana['_id']}/blocks/{block['_id']}"

    (await owner_page.submit(await owner_page.get(path), f"{path}/copy", date=TUESDAY)).says("Legs copied.")
    confirmation = (await owner_page.get(f"{path}/delete")).says("It can be undone for 30 days")
    (await owner_page.submit(confirmation, f"{path}/delete")).ok().says("Legs deleted.")

    assert [b["date"] for b in await coach.calendar(ana)] == [TUESDAY]


async def test_calendar_describes_every_type_of_item(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    block = await coach.schedule(ana)
    for item in await training.one_of_each(coach):
        await training.add(coach, block, item)
    timed = await coach.create_exercise("Plank")
    sets: list[dict[str, Any]] = [
        {"type": "time", "minPlannedSeconds": 30, "maxPlannedSeconds": 45},
        {"type": "distance", "plannedMeters": 400},
        {"type": "reps", "isWarmup": True},
        {"type": "reps"},
    ]
    await training.add(coach, block, training.exercise_of(timed, *sets))

    calendar_page = (await owner_page.get(week_of(ana))).ok()

    calendar_page.says("3 × 8–10 × 60 kg", "2 rounds", "Measure: Body", "Form: ", "Walk")
    calendar_page.says("1 × 30–45 s", "1 × 400 m", "1 × warm-up", "1 set")


async def test_each_bulk_action_changes_the_selected_clients(coach: CoachClient, owner_page: Visitor) -> None:
    me = str(coach.ctx.caller.id)
    ana = await coach.create_customer("Ana", groups=["Old", "Morning"])
    body = await training.metric_set(coach)

    async def do(action: str, typed: dict[str, str], list_path: str = "/app/customers") -> None:
        page = await owner_page.get(list_path)
        confirmation = await choose(page, owner_page, ids=[ana["_id"]], action=action)
        (await owner_page.submit(confirmation, "/app/customers/bulk", **typed)).ok().says("1 client changed")

    await do("groups-remove", {"groupNames": "Old"})
    await do("assign-trainer", {"coachId": me}, "/app/customers?groups=Morning&assignedTo=none")
    await do("assign-metrics-set", {"metricsSetId": body["_id"]}, f"/app/customers?assignedTo={me}")
    await do("archive", {})
    await do("unarchive", {}, "/app/customers?archived=true")

    customer_data = (await coach.get(f"/coach/customers/{ana['_id']}")).ok()["customerRoleData"]
    assert (customer_data["groups"], customer_data["assignedTo"], customer_data["isArchived"]) == (
        ["Morning"],
        me,
        False,
    )
    assert [each["metricsSet"]["_id"] for each in await training.assigned_sets(coach, ana)] == [body["_id"]]
    chosen = await owner_page.get(f"/app/customers?groups=Morning&assignedTo={me}")
    all_clients = await choose(chosen, owner_page, all="true", action="assign-trainer")
    (await owner_page.submit(all_clients, "/app/customers/bulk")).ok(400).says("This is required.")
    assert (await coach.customers())["docs"][0]["customerRoleData"]["assignedTo"] == me, "no trainer was chosen"
    (await owner_page.submit(all_clients, "/app/customers/bulk", coachId="none")).says("1 client changed")
    assert (await coach.customers())["docs"][0]["customerRoleData"]["assignedTo"] is None


async def test_decimal_comma_is_accepted_and_thousands_separator_is_rejected(
    coach: CoachClient, owner_page: Visitor
) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Garage Squat")
    path = f"/app/customers/{ana['_id']}/blocks/{(await coach.schedule(ana))['_id']}"
    page = await owner_page.get(f"{path}?keywords=garage")
    for name in ("load", "rest"):
        field = page.form(f"{path}/items").controls[name]
        assert (field["type"], field["inputmode"]) == ("text", "decimal"), "a browser drops the comma of type=number"

    for unclear in ("1,234.5", "1.234,5", "1,000"):
        refused = await owner_page.submit(page, f"{path}/items", exerciseId=squat["_id"], load=unclear)
        refused.ok(400).says("This must be a number such as 77.5 or 77,5, without thousands separators.")
        assert refused.form(f"{path}/items").controls["load"]["value"] == unclear
    for sent in ("77,5", "77.5"):
        (await owner_page.submit(page, f"{path}/items", exerciseId=squat["_id"], load=sent)).ok().says("77.5 kg")

    (block,) = await coach.calendar(ana)
    assert [item["exerciseSets"][0]["load"] for item in block["items"]] == [77.5, 77.5]


async def test_calendar_ends_at_the_years_1_and_9999(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    block = await coach.schedule(ana, name="Last")
    await coach.ctx.db["workoutBlocks"].update_one({"_id": ObjectId(block["_id"])}, {"$set": {"date": "9999-12-31"}})
    first = (await owner_page.get(week_of(ana, "0001-01-01"))).ok()
    last = (await owner_page.get(week_of(ana, "9999-12-31"))).ok().says("27 – 31 Dec 9999", "Last")
    assert not [link for link in first.links if "week=0000" in link]
    assert [link for link in last.links if link.endswith("?week=9999-12-20")]
    for page in ("details", "progress", "notes"):
        (await owner_page.get(f"/app/customers/{ana['_id']}/{page}")).ok()
    (await owner_page.get("/app/customers")).ok()


async def test_employee_with_assigned_scope_becomes_trainer_of_new_clients(
    coach: CoachClient, colleague: Colleague
) -> None:
    eli = await colleague("customers.view", "customers.create", scope="assigned")
    page = (await eli.get("/app/customers/new")).ok()
    assert "Unassigned" not in page.text

    added = await eli.submit(page, "/app/customers/new", name="Ana", assignedTo=str(coach.ctx.caller.id))

    added.ok().says("Ana added. No invitation was sent because the client has no email address.")
    (ana,) = (await coach.customers())["docs"]
    assert ana["customerRoleData"]["assignedTo"] not in (None, str(coach.ctx.caller.id))
