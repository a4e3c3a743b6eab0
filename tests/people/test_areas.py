"""Areas that a coach may not see, in feeds, events, changes and workouts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coaching_service.core.auth import ALL_PERMISSIONS, FORMS, METRICS, NUTRITION, Visibility, areas_of
from coaching_service.core.database.documents import registry
from coaching_service.core.events import EVENT_TYPES
from coaching_service.core.ids import ObjectId
from coaching_service.people.changes.models import area_of
from tests.support.client import CoachClient
from tests.support.training import (
    Json,
    block_with,
    client_path,
    employee_key,
    form_of,
    log,
    metric_set,
    metrics_of,
    read,
)

CLIENT = ObjectId()
AREA_OF_KIND = {"form_response": FORMS, "metric_value": METRICS, "metrics_assignment": METRICS} | {
    "nutrition_plan": NUTRITION,
    "form": FORMS,  # the library's, which are of no client
    "metrics_set": METRICS,
}
AREA_OF_EVENT = {"form": FORMS, "metric": METRICS, "metrics_set": METRICS, "plan": NUTRITION}


def test_every_kind_and_event_has_the_area_that_is_written_here() -> None:
    kinds = {each.history.kind for each in registry.values() if each.history is not None}
    assert {kind: area_of(kind, CLIENT) for kind in kinds} == {kind: AREA_OF_KIND.get(kind) for kind in kinds}
    words = {each.partition(".")[0] for each in EVENT_TYPES}
    assert {word: area_of(word, CLIENT) for word in words} == {word: AREA_OF_EVENT.get(word) for word in words}


def test_visibility_asks_for_client_area_and_day(coach: CoachClient) -> None:
    visibility = Visibility(frozenset({FORMS.VIEW}), frozenset({CLIENT}), frozenset({"2026-03-02"}))

    assert visibility.allows(customer_id=CLIENT, area=FORMS, day="2026-03-03")
    assert not visibility.allows(customer_id=ObjectId(), area=FORMS, day="2026-03-03")
    assert not visibility.allows(customer_id=CLIENT, area=METRICS, day="2026-03-03")
    assert not visibility.allows(customer_id=CLIENT, area=FORMS, day="2026-03-02")
    client = replace(coach.ctx.caller, role="CUSTOMER", permissions=frozenset())
    assert areas_of(client).allows(area=METRICS), "clients see all areas of their own data"


async def restricted(coach: CoachClient, *without: str) -> CoachClient:
    """A colleague who sees all clients and has all permissions except those of these areas."""
    permissions = [each for each in ALL_PERMISSIONS if each.partition(".")[0] not in without]
    return coach.with_key(await employee_key(coach, *permissions, scope="all"))


@pytest.fixture
async def customer(coach: CoachClient) -> Json:
    return await coach.create_customer()


@pytest.fixture
async def block(coach: CoachClient, customer: Json) -> Json:
    """A workout with an answered form and recorded values."""
    body = await metric_set(coach)
    block = await block_with(coach, customer, form_of({"label": "How?", "type": "text"}), metrics_of(body))
    form, metrics = block["items"]
    answers = [{"questionId": form["form"]["questions"][0]["_id"], "value": "Well"}]
    (await log(coach, block, form, isCompleted=True, answers=answers)).ok()
    values = [{"metricId": body["metrics"][0]["_id"], "value": 81.5}]
    reply = await log(coach, block, metrics, isCompleted=True, values=values)
    await coach.wait_until_numbered(reply.headers["X-Change-Id"])
    return await read(coach, block)


async def test_feeds_count_and_walk_only_what_is_shown(coach: CoachClient, customer: Json, block: Json) -> None:
    path, reader = client_path(customer, "activity-feed"), await restricted(coach, "metrics")
    complete_feed = (await coach.get(path, page=1, limit=50)).ok()
    shown = [each for each in complete_feed["docs"] if each["type"] != "metric_recorded"]
    assert len(shown) < complete_feed["totalDocs"]

    pages = [(await reader.get(path, page=number, limit=1)).ok() for number in range(1, len(shown) + 2)]
    assert {page["totalDocs"] for page in pages} == {len(shown)}
    assert [entry for page in pages for entry in page["docs"]] == shown
    company = (await reader.get("/coach/activity-feed")).ok()
    assert [each["_id"] for each in company["docs"]] == [each["_id"] for each in shown]
    hidden = (await reader.get("/coach/activity-feed", types="metric_recorded")).ok()
    assert hidden == {"docs": [], "nextCursor": None, "hasMore": False}


async def test_a_change_has_only_the_documents_of_areas_that_are_shown(
    coach: CoachClient, customer: Json, block: Json
) -> None:
    listed = (await coach.get("/coach/changes", customerId=customer["_id"])).ok()["docs"]
    logged = next(each for each in listed if each["operation"] == "logWorkoutItem")
    assert {each["kind"] for each in logged["documents"]} == {"workout", "metric_value", "metrics_assignment"}

    reader = await restricted(coach, "metrics")
    change = (await reader.get(f"/coach/changes/{logged['_id']}")).ok()
    assert [each["kind"] for each in change["documents"]] == ["workout"]
    assert change["summary"] == "1 workout changed"
    (after,) = [each for each in change["documents"][0]["after"]["items"] if each["type"] == "METRICS"]
    assert after["values"] is None
    assert after["isCompleted"] is True


async def test_a_change_of_hidden_documents_alone_is_not_found(coach: CoachClient, customer: Json) -> None:
    body = await metric_set(coach)
    (await coach.post(client_path(customer, "metrics-sets"), {"metricsSetId": body["_id"]})).ok(201)
    entry = {"metricId": body["metrics"][0]["_id"], "date": "2026-03-02", "value": 81.5}
    recorded = await coach.post(client_path(customer, "metrics-sets", body["_id"], "entries"), entry)
    change_id = recorded.headers["X-Change-Id"]
    await coach.wait_until_numbered(change_id)

    reader = await restricted(coach, "metrics")
    (await reader.get(f"/coach/changes/{change_id}")).refused(404)
    (await reader.post(f"/coach/changes/{change_id}/undo")).refused(404)
    assert change_id not in [each["_id"] for each in (await reader.get("/coach/changes")).ok()["docs"]]
    assert not [each for each in (await reader.get("/coach/events")).ok()["docs"] if "metric" in each["type"]]
    (await coach.post(f"/coach/changes/{change_id}/undo")).ok()


@pytest.mark.parametrize(("area", "number", "name"), [("forms", 0, "answers"), ("metrics", 1, "values")])
async def test_a_log_keeps_what_its_author_may_not_see(
    coach: CoachClient, customer: Json, block: Json, area: str, number: int, name: str
) -> None:
    reader, item = await restricted(coach, area), block["items"][number]
    assert (await read(reader, block))["items"][number][name] is None

    for sent in ({}, {name: None}):
        logged = (await log(reader, block, item, isCompleted=True, comment="Seen", **sent)).ok()
        assert (logged[name], logged["comment"]) == (None, "Seen")
    assert (await read(coach, block))["items"][number][name] == item[name] != []
    (await log(reader, block, item, isCompleted=True, **{name: []})).ok()
    assert (await read(coach, block))["items"][number][name] == []
