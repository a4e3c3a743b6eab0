"""A client's workouts in a calendar application, by a link that can be revoked (contract 14, calendar feed)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from icalendar import Calendar

from coaching_service.core.ids import ObjectId
from tests.support.client import UNKNOWN, CoachClient, Reply
from tests.support.fixed_clock import TODAY
from tests.support.logs import recorded_logs
from tests.support.training import employee_key

pytestmark = pytest.mark.usefixtures("wednesday")
TITLE = "Legs; heavy, “now” \\ ñandú " + "and long " * 9


def day(offset: int) -> str:
    return str(TODAY + timedelta(days=offset))


@pytest.fixture
async def ana(coach: CoachClient) -> dict[str, Any]:
    """A client with workouts."""
    customer = await coach.create_customer("Ana Flores")
    for offset, name in ((0, TITLE), (0, "Run"), (1, "Hidden"), (-200, "Long ago"), (300, "Next year"), (500, "Later")):
        await coach.schedule(customer, day(offset), name)
    hidden = {"startDate": day(1), "endDate": day(1), "isVisible": False}
    (await coach.put(f"/coach/customers/{customer['_id']}/visibility", hidden)).ok()
    return customer


async def link_of(coach: CoachClient, customer: dict[str, Any]) -> str:
    """The path of a client's calendar link, which is created if it is missing."""
    link = (await coach.post(f"/coach/customers/{customer['_id']}/calendar-link")).ok(201)
    assert link["url"].startswith("http://coaching.test/calendar/")
    return str(link["url"]).removeprefix("http://coaching.test")


def events_of(reply: Reply) -> list[Any]:
    return Calendar.from_ical(reply.raw).walk("VEVENT")


async def test_the_link_shows_titles_of_visible_days_and_nothing_else(
    coach: CoachClient, anonymous: CoachClient, ana: dict[str, Any]
) -> None:
    address = f"/coach/customers/{ana['_id']}/calendar-link"
    (await coach.get(address)).refused(404)
    path = await link_of(coach, ana)
    assert await link_of(coach, ana) == path, "a client has one link"
    assert (await coach.get(address)).ok()["url"].endswith(path)
    reply = await anonymous.get(path)
    assert (reply.status, reply.headers["Content-Type"]) == (200, "text/calendar; charset=utf-8")
    events = events_of(reply)
    assert [str(event["summary"]) for event in events] == [TITLE.strip(), "Run", "Next year"]
    assert [str(event["dtstart"].dt) for event in events] == [day(0), day(0), day(300)]
    assert len({str(event["uid"]) for event in events}) == 3
    assert all(len(line) <= 75 for line in reply.raw.split(b"\r\n"))
    assert b"\n" not in reply.raw.replace(b"\r\n", b"")
    assert not [word for word in (b"Ana", b"Flores", b"DESCRIPTION", b"LOCATION") if word in reply.raw]


async def test_an_unchanged_calendar_is_not_sent_again(
    coach: CoachClient, anonymous: CoachClient, ana: dict[str, Any]
) -> None:
    path = await link_of(coach, ana)
    first, second = await anonymous.get(path), await anonymous.get(path)
    assert (first.raw, first.headers["ETag"]) == (second.raw, second.headers["ETag"])
    known = {"If-None-Match": first.headers["ETag"]}
    unchanged = await anonymous.send("GET", path, headers=known)
    assert (unchanged.status, unchanged.raw, unchanged.headers["ETag"]) == (304, b"", first.headers["ETag"])
    assert (await anonymous.send("HEAD", path)).status == 200
    await coach.schedule(ana, day(2), "New")
    assert len(events_of(await anonymous.send("GET", path, headers=known))) == 4


async def test_absences_are_shown_in_place_of_their_workouts(
    coach: CoachClient, anonymous: CoachClient, ana: dict[str, Any]
) -> None:
    path, periods = await link_of(coach, ana), f"/coach/customers/{ana['_id']}/availability"
    ill = {"kind": "ill", "from": day(-1), "until": day(0), "note": "Secret"}
    (await coach.post(periods, ill)).ok(201)
    (await coach.post(periods, {"kind": "limited", "from": day(299)})).ok(201)
    reply = await anonymous.get(path)
    shown = [(str(each["summary"]), str(each["dtstart"].dt)) for each in events_of(reply)]
    assert shown == [("Ill", day(-1)), ("Limited training", day(299)), ("Next year", day(300))]
    assert [str(each["dtend"].dt) for each in events_of(reply)[:2]] == [day(1), day(367)]
    assert b"Secret" not in reply.raw
    assert (await anonymous.get(path)).headers["ETag"] == reply.headers["ETag"]


async def test_stored_values_beyond_the_limits_are_shown(
    coach: CoachClient, anonymous: CoachClient, ana: dict[str, Any]
) -> None:
    """An end at the end of the calendar, names with what ends a line elsewhere, and time zones that do not exist."""
    path, db = await link_of(coach, ana), coach.ctx.db
    period = {"kind": "injured", "from": day(5)}
    made = (await coach.post(f"/coach/customers/{ana['_id']}/availability", period)).ok(201)
    await db["availability"].update_one({"_id": ObjectId(made["_id"])}, {"$set": {"until": "9999-12-31"}})
    blocks = {"customerId": ObjectId(ana["_id"]), "name": "Run"}
    await db["workoutBlocks"].update_one(blocks, {"$set": {"name": "Run\u2028fast"}})
    await db["customers"].update_one({"_id": ObjectId(ana["_id"])}, {"$set": {"timezone": "Mars/Olympus"}})
    reply = await anonymous.get(path)
    assert reply.status == 200
    assert [str(each["summary"]) for each in events_of(reply)] == ["Injured", TITLE.strip(), "Run fast"]
    assert str(events_of(reply)[0]["dtend"].dt) == "9999-12-31"


async def test_revoked_links_and_clients_who_are_archived_or_erased_are_404(
    coach: CoachClient, anonymous: CoachClient, ana: dict[str, Any]
) -> None:
    customer = f"/coach/customers/{ana['_id']}"
    assert (await coach.delete(f"{customer}/calendar-link")).refused(404)["code"] == "CALENDAR_LINK_NOT_FOUND"
    revoked = await link_of(coach, ana)
    (await coach.delete(f"{customer}/calendar-link")).ok(204)
    path = await link_of(coach, ana)
    assert path != revoked
    forged = [path[:-1] + ("A" if path[-1] != "A" else "B"), f"/calendar/{UNKNOWN}.{path.partition('.')[2]}"]
    for wrong in (revoked, *forged, path.partition(".")[0], "/calendar/nothing", "/calendar/%00"):
        assert (await anonymous.get(wrong)).refused(404)["code"] == "CALENDAR_NOT_FOUND", wrong
    (await coach.put("/coach/customers/archive", {"id": ana["_id"]})).ok()
    (await anonymous.get(path)).refused(404)
    (await coach.put("/coach/customers/unarchive", {"id": ana["_id"]})).ok()
    (await anonymous.get(path)).ok()
    (await coach.delete(customer)).ok(204)
    (await anonymous.get(path)).refused(404)


async def test_only_those_who_may_change_the_client_create_links(
    coach: CoachClient, other_company: CoachClient, ana: dict[str, Any]
) -> None:
    path = f"/coach/customers/{ana['_id']}/calendar-link"
    reader = coach.with_key(await employee_key(coach, "customers.view", scope="all"))
    outsider = coach.with_key(await employee_key(coach, "customers.view", "customers.edit"))
    for client, status in ((reader, 403), (outsider, 403), (other_company, 404)):
        for method in ("POST", "DELETE"):
            assert (await client.send(method, path)).status == status


async def test_requests_at_the_same_time_create_one_link(coach: CoachClient, ana: dict[str, Any]) -> None:
    path = f"/coach/customers/{ana['_id']}/calendar-link"
    replies = await asyncio.gather(*(coach.post(path) for _ in range(5)))
    assert len({reply.ok(201)["url"] for reply in replies}) == 1
    assert await coach.ctx.db["calendarLinks"].count_documents({"customerId": ObjectId(ana["_id"])}) == 1


async def test_the_token_is_in_no_log_and_no_metric(
    coach: CoachClient, anonymous: CoachClient, ana: dict[str, Any]
) -> None:
    path = await link_of(coach, ana)
    with recorded_logs() as entries:
        (await anonymous.get(path)).ok()
        (await anonymous.get(path + "x")).refused(404)
        (await anonymous.send("POST", path)).refused(405)
    assert [entry["route"] for entry in entries if entry["event"] == "request"] == ["/calendar/{calendarToken}"] * 3
    signature = path.partition(".")[2]
    assert signature not in str(entries)
    assert signature.encode() not in (await anonymous.get("/metrics")).raw
