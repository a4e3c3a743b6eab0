"""The activity feed: what happened with a client, newest first, page by page."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.client import UNKNOWN, CoachClient
from tests.support.training import Json, block_with, client_path, employee_key, feed, feed_types, log, task


async def write(coach: CoachClient, customer: Json, count: int) -> list[str]:
    """Add `count` notes on a client; returns their identifiers, newest first."""
    path = client_path(customer, "notes")
    created = [(await coach.post(path, {"content": str(n)})).ok(201)["_id"] for n in range(count)]
    return created[::-1]


async def page(coach: CoachClient, customer: Json, number: int, limit: int) -> Json:
    events_values: Json = (await coach.get(client_path(customer, "activity-feed"), page=number, limit=limit)).ok()
    return events_values


async def test_feed_is_paginated(coach: CoachClient) -> None:
    """Contract 7: GET /activity-feed?page&limit: paginated, newest first: `{_id, type, date, data}`."""
    ana = await coach.create_customer()
    newest_first = await write(coach, ana, 7)

    pages = [await page(coach, ana, number, 3) for number in (1, 2, 3, 4)]

    assert [event["data"]["noteId"] for events_values in pages for event in events_values["docs"]] == newest_first
    assert [len(events_values["docs"]) for events_values in pages] == [3, 3, 1, 0]
    facts = ("totalDocs", "limit", "totalPages", "page", "pagingCounter", "prevPage", "nextPage")
    assert [[events_values[name] for name in facts] for events_values in pages] == [
        [7, 3, 3, 1, 1, None, 2],
        [7, 3, 3, 2, 4, 1, 3],
        [7, 3, 3, 3, 7, 2, None],
        [7, 3, 3, 4, 10, 3, None],
    ]
    assert [(events_values["hasPrevPage"], events_values["hasNextPage"]) for events_values in pages] == [
        (False, True),
        (True, True),
        (True, False),
        (True, False),
    ]
    dates = [event["date"] for event in (await page(coach, ana, 1, 100))["docs"]]
    assert dates == sorted(dates, reverse=True)


async def test_events_of_the_same_time_are_listed_once(coach: CoachClient) -> None:
    """Contract 1: order is total and stable (ties broken by `_id`), so walking the pages meets every document once."""
    ana = await coach.create_customer()
    await write(coach, ana, 9)
    collection, all_changes = coach.ctx.db["changes"], {"companyId": coach.ctx.company_id}
    first = await collection.find_one(all_changes)
    assert first is not None
    await collection.update_many(all_changes, {"$set": {"feedAt": first["feedAt"]}})
    met = [event["_id"] for number in range(1, 6) for event in (await page(coach, ana, number, 2))["docs"]]
    assert len(met) == len(set(met)) == 9
    assert met == sorted(met, reverse=True)


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"page": 1},
        {"limit": 10},
        {"page": 0, "limit": 10},
        {"page": -1, "limit": 10},
        {"page": 1, "limit": 0},
        {"page": 1, "limit": 101},
        {"page": 1.5, "limit": 10},
        {"page": "one", "limit": 10},
        {"page": "1_0", "limit": 10},
        {"page": "", "limit": 10},
        {"page": [1, 1], "limit": 10},
        {"pageNum": 1, "pageSize": 10},
    ],
)
async def test_page_and_limit_are_required_and_bounded(coach: CoachClient, query: dict[str, object]) -> None:
    """Contract 1: activity feed `page` >= 1, `limit` 1 to 100."""
    ana = await coach.create_customer()
    error = (await coach.get(client_path(ana, "activity-feed"), **query)).refused(400)
    if query in ({}, {"page": 1}, {"limit": 10}):
        assert error["message"] == "Validation failed (numeric string is expected)"


async def test_numbers_are_converted_as_everywhere(coach: CoachClient) -> None:
    """Contract 1: `1e0` and `2e1` are converted to numbers before integer validation."""
    ana = await coach.create_customer()
    events_values = (await coach.get(client_path(ana, "activity-feed"), page="1e0", limit="1e2")).ok()
    assert (events_values["page"], events_values["limit"], events_values["docs"], events_values["totalPages"]) == (
        1,
        100,
        [],
        1,
    )
    assert (await page(coach, ana, 2**50, 100))["docs"] == []


async def test_feed_contains_events_of_one_client(coach: CoachClient, other_company: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    await write(coach, ana, 1)
    assert await feed_types(coach, bo) == []
    path = client_path(ana, "activity-feed")
    unknown = client_path({"_id": UNKNOWN}, "activity-feed")
    theirs = (await other_company.get(path, page=1, limit=1)).refused(404)
    assert theirs == (await other_company.get(unknown, page=1, limit=1)).refused(404)
    scoped = coach.with_key(await employee_key(coach, "customers.view"))
    (await scoped.get(path, page=1, limit=1)).refused(403)
    powerless = coach.with_key(await employee_key(coach, "forms.view", scope="all"))
    (await powerless.get(path, page=1, limit=1)).refused(403, "customers.view")


async def test_repeated_event_moves_to_the_top(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, task("a"), task("b"))
    first, second = block["items"]
    (await log(coach, block, first)).ok()
    before = {event["data"]["witemId"]: event for event in await feed(coach, ana)}
    await asyncio.gather(write(coach, ana, 1), log(coach, block, first, comment="again"))
    events = {event["data"].get("witemId"): event for event in await feed(coach, ana)}
    assert events[first["_id"]]["date"] > before[first["_id"]]["date"]
    assert second["_id"] not in events


async def test_feed_of_a_deleted_client_is_not_found(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    await write(coach, ana, 1)
    (await coach.delete(client_path(ana))).ok(204)
    (await coach.get(client_path(ana, "activity-feed"), page=1, limit=1)).refused(404, "Customer")
