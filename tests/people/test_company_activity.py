"""The activity feed of all clients."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import UNKNOWN, CoachClient
from tests.support.training import Json, block_with, client_path, employee_key, log, own_log, task

FEED = "/coach/activity-feed"


async def docs(coach: CoachClient, **query: Any) -> list[Json]:
    """The first part of the feed."""
    result: list[Json] = (await coach.get(FEED, **query)).ok()["docs"]
    return result


async def write(coach: CoachClient, customer: Json, content: str = "Hello") -> Json:
    """Add a note about a client."""
    created: Json = (await coach.post(client_path(customer, "notes"), {"content": content})).ok(201)
    return created


async def test_feed_has_entries_of_all_clients_with_client_and_author(coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana", surname="Ruiz"), await coach.create_customer("Bo")
    note = await write(coach, ana)
    block = await block_with(coach, bo, task())
    (await own_log(await coach.as_client(bo), block, block["items"][0], isCompleted=True)).ok()

    completed, logged, noted = await docs(coach)

    assert [entry["type"] for entry in (logged, completed, noted)] in (
        ["item_logged", "workout_completed", "note_added"],
        ["workout_completed", "item_logged", "note_added"],
    )
    assert logged["customer"] == {"_id": bo["_id"], "name": "Bo"}
    assert logged["actor"] == {"type": "client", "_id": bo["_id"], "name": "Bo"}
    assert noted["customer"] == {"_id": ana["_id"], "name": "Ana Ruiz"}
    assert noted["actor"] == {"type": "key", "_id": str(coach.ctx.caller.id), "name": "Olga Owner"}
    assert noted["data"]["noteId"] == note["_id"]


async def test_walking_the_parts_meets_every_entry_once(coach: CoachClient) -> None:
    """A log that completes a workout has two entries of the same time, which may be in different parts."""
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    for customer in (ana, bo, ana):
        block = await block_with(coach, customer, task())
        (await log(coach, block, block["items"][0], isCompleted=True)).ok()
        await write(coach, customer)
    expected = [entry["_id"] for entry in await docs(coach, limit=100)]
    assert len(set(expected)) == 9

    met: list[str] = []
    after: Json = {}
    for _ in expected:
        part = (await coach.get(FEED, limit=1, **after)).ok()
        met += [entry["_id"] for entry in part["docs"]]
        assert part["hasMore"] == (part["nextCursor"] is not None) == (len(met) < len(expected))
        after = {"after": part["nextCursor"]}
    assert met == expected


async def test_feed_is_filtered_by_time_type_and_client(coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    await write(coach, ana, "old")
    block = await block_with(coach, bo, task())
    (await log(coach, block, block["items"][0], isCompleted=True)).ok()
    recent = await write(coach, bo, "new")

    assert [entry["data"]["noteId"] for entry in await docs(coach, types="note_added", limit=1)] == [recent["_id"]]
    both = await docs(coach, types=["item_logged", "workout_completed"])
    assert sorted(entry["type"] for entry in both) == ["item_logged", "workout_completed"]
    assert [entry["data"]["text"] for entry in await docs(coach, customerId=ana["_id"])] == ["old"]
    since = (await docs(coach))[0]["date"]
    assert [entry["data"].get("text") for entry in await docs(coach, since=since)] == ["new"]
    assert await docs(coach, since="2999-01-01T00:00:00Z") == []
    assert await docs(coach, customerId=UNKNOWN) == []


async def test_removed_entries_and_erased_clients_are_left_out(coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    note = await write(coach, ana)
    (await coach.delete(client_path(ana, "notes", note["_id"]))).ok(204)
    await write(coach, bo)
    assert [entry["customer"]["name"] for entry in await docs(coach)] == ["Bo"]
    (await coach.delete(client_path(bo))).ok(204)
    assert await docs(coach) == []


async def test_employee_sees_assigned_clients_only(coach: CoachClient, other_company: CoachClient) -> None:
    eli = coach.with_key(await employee_key(coach, "customers.view", "customers.create", "customers.edit"))
    ana, bo = await coach.create_customer("Ana"), await eli.create_customer("Bo")
    await write(coach, ana)
    await write(coach, bo)
    assert [entry["customer"]["name"] for entry in await docs(eli)] == ["Bo"]
    assert await docs(eli, customerId=ana["_id"]) == []
    assert await docs(other_company, customerId=ana["_id"]) == []
    powerless = coach.with_key(await employee_key(coach, "forms.view", scope="all"))
    (await powerless.get(FEED)).refused(403, "customers.view")


@pytest.mark.parametrize(
    "query",
    [{"limit": 0}, {"limit": 101}, {"types": "unknown"}, {"since": "yesterday"}, {"customerId": "x"}, {"after": "x"}],
)
async def test_invalid_query_is_refused(coach: CoachClient, query: dict[str, object]) -> None:
    (await coach.get(FEED, **query)).refused(400, next(iter(query)))


async def test_cursor_belongs_to_its_filters(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    await write(coach, ana)
    await write(coach, ana)
    cursor = (await coach.get(FEED, limit=1)).ok()["nextCursor"]
    (await coach.get(FEED, limit=1, after=cursor, types="note_added")).refused(400, "after")
