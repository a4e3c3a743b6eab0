"""The demo company: sample data for every feature, created once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import time_machine
from aiohttp.test_utils import TestServer

from coaching_service.core.database.context import Context, Services
from coaching_service.core.ids import ObjectId
from coaching_service.demo import ensure_demo, samples
from coaching_service.integrations import commands
from coaching_service.people import team
from tests.support.client import CoachClient
from tests.support.figures import renew_figures


@pytest.fixture(scope="module")
async def facts(services: Services) -> dict[str, str]:
    facts = await ensure_demo(services)
    await renew_figures(Context(services).acting_as(await team.get_owner(services, ObjectId(facts["companyId"]))))
    return facts


@pytest.fixture
async def demo(facts: dict[str, str], server: TestServer) -> AsyncIterator[CoachClient]:
    client = CoachClient(server, facts["apiKey"], None)
    yield client
    await client.close()


async def pages(demo: CoachClient, path: str, **query: Any) -> list[dict[str, Any]]:
    docs: list[dict[str, Any]] = (await demo.get(path, pageSize=50, pageNum=1, **query)).ok()["docs"]
    return docs


async def download(demo: CoachClient, link: str) -> bytes:
    reply = await demo.send("GET", link[link.index("/files/") :])
    assert reply.status == 200
    return reply.raw


async def find_client(demo: CoachClient, name: str) -> tuple[dict[str, Any], str]:
    clients = await pages(demo, "/coach/customers", archived="false")
    client = next(client for client in clients if client["name"] == name)
    return client, f"/coach/customers/{client['_id']}"


async def test_changes_are_named_as_sample_data(facts: dict[str, str], services: Services) -> None:
    company = {"companyId": ObjectId(facts["companyId"])}
    of_other_tests = {"importCompany", "schedule_check_ins"}  # those of imports may have used the company before
    names = await services.db["changes"].distinct("operation", company)
    assert set(names) - of_other_tests == {"addSampleData", "renewAttention"}


async def test_ten_active_clients_and_some_archived(demo: CoachClient) -> None:
    active = await pages(demo, "/coach/customers", archived="false")
    roles = [client["customerRoleData"] for client in active]

    assert len(active) == 10
    assert await pages(demo, "/coach/customers", archived="true")
    assert {"Morning", "Strength"} <= {group for role in roles for group in role["groups"]}
    assert len({role["assignedTo"] for role in roles}) == 3, "two coaches, and clients without a trainer"
    assert {role["customerType"] for role in roles} == {"SAMPLE"}
    assert all(client["email"].endswith("@example.com") for client in active)
    assert all(client["profilePhotoUrl"] and client["lastActivityDate"] for client in active)


async def test_every_client_has_weeks_of_training_before_and_after_today(demo: CoachClient) -> None:
    today = datetime.now(UTC).date()
    for client in await pages(demo, "/coach/customers", archived="false"):
        blocks = await demo.calendar(client, str(today - timedelta(weeks=13)), str(today + timedelta(weeks=3)))
        days = [date.fromisoformat(block["date"]) for block in blocks if block["checkInId"] is None]
        logged = [block for block in blocks if any(item["isCompleted"] for item in block["items"])]

        assert (today - min(days)).days >= 6 * 7
        assert max(days) > today
        assert len(logged) >= 10, client["name"]
        zone = ZoneInfo(client["timezone"] or "UTC")
        assert all(block["date"] < str(datetime.now(zone).date()) for block in logged), client["name"]
        assert client["customerRoleData"]["lastWorkoutDate"] == str(max(days))


async def test_characters_show_in_the_figures(demo: CoachClient) -> None:
    async def rate(name: str, period: str) -> float:
        _, path = await find_client(demo, name)
        value: float = (await demo.get(path)).ok()["customerRoleData"][f"complianceRate{period}"]
        return value

    assert await rate("Amara", "90d") > 85 > await rate("Liam", "90d")
    assert await rate("Björn", "30d") < await rate("Björn", "90d") - 10, "he fades"
    assert await rate("José", "30d") > await rate("José", "90d"), "he has returned"
    _, path = await find_client(demo, "Chidi")
    responses = (await demo.get(f"{path}/form-responses")).ok()
    assert any("Knee" in str(answer["value"]) for response in responses for answer in response["answers"])


async def test_clients_have_messages_and_reasons_for_attention(
    demo: CoachClient, facts: dict[str, str], services: Services
) -> None:
    entries = (await demo.get("/coach/attention", limit=100)).ok()["docs"]
    reasons = {entry["customer"]["name"]: {reason["type"] for reason in entry["reasons"]} for entry in entries}
    assert {"health_note", "unread_message"} <= reasons["Chidi"]
    assert "unread_message" not in reasons["Ana"], "her conversation is read"
    assert {"missed_workout", "check_in_to_review", "low_compliance"} <= set().union(*reasons.values())
    conversations = (await demo.get("/coach/conversations")).ok()["docs"]
    assert {each["customer"]["name"]: each["unread"] for each in conversations} == {
        "Ana Flores": 0,
        "Björn Lund": 0,
        "Chidi Okafor": 2,
        "Ingrid Haugen": 1,
    }
    _, path = await find_client(demo, "Ana")
    newest, *_, oldest = (await demo.get(f"{path}/messages")).ok()["docs"]
    assert newest["createdAt"] > oldest["createdAt"]
    about_messages = {"companyId": ObjectId(facts["companyId"]), "kind": "messages"}
    assert await services.db["notifications"].find_one(about_messages) is None, "of sample messages"


async def test_libraries_are_filled(demo: CoachClient) -> None:
    programs = await pages(demo, "/coach/programs", archived="false")
    assert len(programs) >= 3
    assert all(program["numberOfDaysWithWorkouts"] >= 6 for program in programs)
    assert len((await demo.get("/coach/forms")).ok()) == 2
    assert len((await demo.get("/coach/metrics-sets")).ok()) == 2
    assert len((await demo.get("/coach/workout-templates")).ok()) == 3


async def test_own_exercises_have_pictures(demo: CoachClient) -> None:
    exercises = await pages(demo, "/exercises")
    assert len(exercises) == 4
    for exercise in exercises:
        for link in (exercise["image"], exercise["thumbnail"]):
            assert (await download(demo, link)).startswith(b"\x89PNG")


async def test_links_to_pictures_of_exercises_are_created_when_they_are_read(
    demo: CoachClient, services: Services
) -> None:
    """They expire as other links to files do."""
    [exercise, *_] = await pages(demo, "/exercises")
    link = exercise["media"][0]["url"]
    stored = await services.db["exercises"].find_one({"_id": ObjectId(exercise["_id"])}) or {}
    assert "signature" not in str(stored["media"])
    with time_machine.travel(datetime.now(UTC) + timedelta(hours=3)):
        assert (await demo.send("GET", link[link.index("/files/") :])).status == 403
        read = (await demo.get(f"/exercises/{exercise['_id']}")).ok()
        for fresh in (read["image"], read["thumbnail"], read["media"][0]["url"]):
            assert (await download(demo, fresh)).startswith(b"\x89PNG")


async def test_diligent_client_shows_every_feature(demo: CoachClient) -> None:
    client, path = await find_client(demo, "Amara")
    today = datetime.now(UTC).date()
    span = {"startDate": str(today - timedelta(weeks=12)), "endDate": str(today)}

    assert (await demo.get(f"{path}/workload", **span, groupBy="week")).ok()["periods"]
    assert (await demo.get(f"{path}/musclegroups/volume", **span)).ok()["muscleGroups"]
    assert all(m["currentValue"] for s in (await demo.get(f"{path}/metrics-sets")).ok() for m in s["metrics"])
    assert len((await demo.get(f"{path}/personal-records")).ok()) > 5
    assert len((await demo.get(f"{path}/notes")).ok()) == 2
    assert len(await pages(demo, f"{path}/plan-versions")) == 2
    [*_, first] = photos = await pages(demo, f"{path}/progress-photos")
    assert len(photos) == 3
    assert (await download(demo, first["photos"]["frontUrl"])).startswith(b"\x89PNG")
    squat = samples.exercise_id("Barbell Back Squat")
    assert len(await pages(demo, f"{path}/exercise/{squat}/history")) > 5
    assert client["customerRoleData"]["complianceRate90d"] > 50


async def test_forms_are_answered_and_pending(demo: CoachClient) -> None:
    client, path = await find_client(demo, "Amara")
    today = datetime.now(UTC).date()
    assert len((await demo.get(f"{path}/form-responses", **{"from": str(today - timedelta(days=84))})).ok()) > 5
    ahead = await demo.calendar(client, str(today), str(today + timedelta(weeks=3)))
    pending = [item for block in ahead for item in block["items"] if item["type"] == "FORM"]
    assert pending
    assert not any(item["isCompleted"] for item in pending)
    [weekly] = (await demo.get(f"{path}/check-ins")).ok()
    assert (weekly["name"], weekly["weekday"]) == ("Weekly check-in", 7)
    calendar = await demo.calendar(client, str(today - timedelta(weeks=13)), str(today + timedelta(weeks=4)))
    of_forms = {block["checkInId"] for block in calendar if any(item["type"] == "FORM" for item in block["items"])}
    assert of_forms == {weekly["_id"]}, "no plain block that would count as a workout"
    dates = [block["date"] for block in calendar if block["checkInId"] is not None]
    assert len(dates) == len(set(dates))
    assert {date.fromisoformat(day).isoweekday() for day in dates} == {7}


async def test_one_client_has_a_program_in_progress(demo: CoachClient) -> None:
    client, path = await find_client(demo, "Ana")
    today = datetime.now(UTC).date()
    blocks = await demo.calendar(client, str(today - timedelta(weeks=3)), str(today + timedelta(weeks=4)))
    days = [block["date"] for block in blocks if block["programId"]]
    assert min(days) < str(today) < max(days)
    [program] = (await demo.get(f"{path}/programs")).ok()
    assert 0 < program["completedBlocks"] < program["blocks"]
    assert client["customerRoleData"]["complianceRate7d"] > 0


@pytest.mark.parametrize("weekday", range(7))
def test_client_with_a_program_does_its_workouts_instead_of_others(weekday: int) -> None:
    today = date(2026, 11, 23) + timedelta(days=weekday)
    ana = next(client for client in samples.CLIENTS if client.name == samples.WITH_PROGRAM)
    first = date(2026, 11, 16)
    *_, days = samples.PROGRAMS[0]
    dates = [first + timedelta(days=7 * week + day - 1) for week in range(2) for day in days]
    items = samples.plan_items("Full body")
    program: Any = [{"name": "P", "date": str(day), "isRest": False, "items": items} for day in dates if day < today]
    blocks = list(samples.schedule(ana, today, program))
    planned = [str(block["plan"].get("date")) for block in blocks]
    assert len(planned) == len(set(planned)), "a day with two workouts, one of them not done, is not completed"
    assert planned[-len(program) :] == [block["date"] for block in program]
    week = [block for block in blocks if str(today - timedelta(days=6)) <= str(block["plan"].get("date")) < str(today)]
    assert any(all(done and done["isCompleted"] for done in block["logs"]) for block in week)


async def test_a_monday_has_an_illness_and_one_proposal(demo: CoachClient, services: Services) -> None:
    client, path = await find_client(demo, samples.ILL)
    [absence] = (await demo.get(f"{path}/availability")).ok()
    today = datetime.now(UTC).date()
    assert (absence["kind"], absence["customerId"]) == ("ill", client["_id"])
    assert absence["from"] <= str(today) <= absence["until"]
    for _ in range(2):
        await commands.ensure_sample_proposal(services)
    stored = await services.db["customers"].find_one({"_id": ObjectId(client["_id"])}) or {}
    proposals = await services.db["proposals"].find({"companyId": stored["companyId"]}).to_list()
    assert [(each["tool"], each["status"], len(each["customerIds"])) for each in proposals] == [
        ("send_message", "pending", 2)
    ]
