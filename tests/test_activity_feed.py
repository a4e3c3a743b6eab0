"""The activity feed: what happened with a client, newest first, page by page."""

from __future__ import annotations

import asyncio

import pytest

from tests.client import UNKNOWN, CoachClient
from tests.training import Json, block_with, client_path, employee_key, feed, feed_types, log, task


async def write(coach: CoachClient, customer: Json, count: int) -> list[str]:
    """So many notes on a client; gives their identifiers, newest first."""
    path = client_path(customer, "notes")
    made = [(await coach.post(path, {"content": str(n)})).ok(201)["_id"] for n in range(count)]
    return made[::-1]


async def page(coach: CoachClient, customer: Json, number: int, limit: int) -> Json:
    found: Json = (await coach.get(client_path(customer, "activity-feed"), page=number, limit=limit)).ok()
    return found


async def test_the_feed_is_walked_page_by_page(coach: CoachClient) -> None:
    """Contract 7: GET /activity-feed?page&limit: paginated, newest first: `{_id, type, date, data}`."""
    ana = await coach.create_customer()
    newest_first = await write(coach, ana, 7)

    pages = [await page(coach, ana, number, 3) for number in (1, 2, 3, 4)]

    assert [event["data"]["noteId"] for found in pages for event in found["docs"]] == newest_first
    assert [len(found["docs"]) for found in pages] == [3, 3, 1, 0]
    facts = ("totalDocs", "limit", "totalPages", "page", "pagingCounter", "prevPage", "nextPage")
    assert [[found[name] for name in facts] for found in pages] == [
        [7, 3, 3, 1, 1, None, 2],
        [7, 3, 3, 2, 4, 1, 3],
        [7, 3, 3, 3, 7, 2, None],
        [7, 3, 3, 4, 10, 3, None],
    ]
    assert [(found["hasPrevPage"], found["hasNextPage"]) for found in pages] == [
        (False, True),
        (True, True),
        (True, False),
        (True, False),
    ]
    dates = [event["date"] for event in (await page(coach, ana, 1, 100))["docs"]]
    assert dates == sorted(dates, reverse=True)


async def test_events_of_one_moment_are_met_once_each(coach: CoachClient) -> None:
    """Contract 1: order is total and stable (ties broken by `_id`), so walking the pages meets every document once."""
    ana = await coach.create_customer()
    await write(coach, ana, 9)
    collection, everything = coach.ctx.db["activity"], {"companyId": coach.ctx.company_id}
    first = await collection.find_one(everything)
    assert first is not None
    await collection.update_many(everything, {"$set": {"date": first["date"]}})
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
    """Specification 4 and 8: activity feed `page` >= 1, `limit` 1 to 100."""
    ana = await coach.create_customer()
    error = (await coach.get(client_path(ana, "activity-feed"), **query)).refused(400)
    if query in ({}, {"page": 1}, {"limit": 10}):
        assert error["message"] == "Validation failed (numeric string is expected)"


async def test_numbers_are_converted_as_everywhere(coach: CoachClient) -> None:
    """Specification 8: `1e0` and `2e1` are converted to numbers before integer validation."""
    ana = await coach.create_customer()
    found = (await coach.get(client_path(ana, "activity-feed"), page="1e0", limit="1e2")).ok()
    assert (found["page"], found["limit"], found["docs"], found["totalPages"]) == (1, 100, [], 1)
    assert (await page(coach, ana, 2**50, 100))["docs"] == []


async def test_a_feed_is_one_client_s_of_one_company(coach: CoachClient, other_company: CoachClient) -> None:
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


async def test_doing_something_again_brings_it_to_the_top(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, task("a"), task("b"))
    first, second = block["items"]
    (await log(coach, block, first)).ok()
    before = {event["data"]["witemId"]: event for event in await feed(coach, ana)}
    await asyncio.gather(write(coach, ana, 1), log(coach, block, first, comment="again"))
    events = {event["data"].get("witemId"): event for event in await feed(coach, ana)}
    assert events[first["_id"]]["_id"] == before[first["_id"]]["_id"]
    assert events[first["_id"]]["date"] > before[first["_id"]]["date"]
    assert second["_id"] not in events


async def test_an_erased_client_s_feed_is_gone(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    await write(coach, ana, 1)
    (await coach.delete(client_path(ana))).ok(204)
    (await coach.get(client_path(ana, "activity-feed"), page=1, limit=1)).refused(404, "Customer")
