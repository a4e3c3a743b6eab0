"""The stored numbers of clients in groups: they always equal a count of the clients."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from coaching_service import features
from coaching_service.core.database.context import reading_snapshot
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.worker import run_due
from coaching_service.installation import migrations
from coaching_service.people.customers import counters
from coaching_service.people.customers.counters import COUNT_GROUPS
from tests.support.client import CoachClient

GROUPS = ("A", "$b.c", "Ünder 30")
BULK = "/coach/customers/bulk"


async def count_by_hand(coach: CoachClient) -> Counter[tuple[str, bool]]:
    """How many clients are in each group, by whether they are archived."""
    clients = await coach.ctx.db["customers"].find({"companyId": coach.ctx.company_id}).to_list(None)
    roles = [client["customerRoleData"] for client in clients]
    return Counter((group, role["isArchived"]) for role in roles for group in role["groups"])


async def require_answers(coach: CoachClient) -> None:
    """The list of groups and the totals of the list of clients agree with the clients."""
    counted = await count_by_hand(coach)
    groups = {group: counted[group, False] + counted[group, True] for group, _ in counted}
    listed = (await coach.get("/coach/customers/groups")).ok()
    assert listed == [{"name": group, "count": groups[group]} for group in sorted(groups)]
    for group in (*GROUPS, "Unused"):
        for archived in (False, True):
            page = await coach.customers(groups=group, archived=str(archived).lower())
            assert (len(page["docs"]), page["totalDocs"]) == (counted[group, archived],) * 2


async def require_right(coach: CoachClient) -> None:
    """So do the answers and the stored numbers, which doctor compares."""
    await require_answers(coach)
    services, company_id = coach.ctx.services, coach.ctx.company_id
    async with reading_snapshot(services) as session:
        assert await counters.GROUP_NUMBERS.find_differences(services, company_id, session) == []
        assert await counters.NUMBERS.find_differences(services, company_id, session) == []


async def test_numbers_follow_every_change_of_clients(coach: CoachClient) -> None:
    a, b, c = GROUPS
    ids = [(await coach.create_customer(f"Client {n}", groups=[a, b][: n % 3]))["_id"] for n in range(6)]
    await require_right(coach)
    batch = [{"name": "Ada", "groups": [a, c]}, {"name": "Bo", "groups": [c, c]}, {"name": "", "groups": [b]}]
    (await coach.post("/coach/customers/batch", {"customers": batch})).ok()
    await require_right(coach)

    changed = [
        await coach.patch(f"/coach/customers/{ids[0]}", {"groups": [c, b]}),
        await coach.post(f"{BULK}/groups-add", {"ids": ids, "groups": [a, c]}),
        await coach.post(f"{BULK}/archive", {"ids": ids[1:4]}),
        await coach.post(f"{BULK}/groups-remove", {"ids": ids[2:], "groups": [c]}),
        await coach.patch(f"/coach/customers/{ids[3]}", {"groups": []}),
    ]
    for reply in changed:
        reply.ok()
    await require_right(coach)
    for reply in changed[:1:-1]:
        (await coach.undo(reply)).ok()
    await require_right(coach)
    for number, operation in enumerate(("archive", "unarchive", "archive")):
        (await coach.put(f"/coach/customers/{operation}", {"id": ids[number // 2]})).ok()
    await require_right(coach)

    (await coach.delete(f"/coach/customers/{ids[0]}")).ok(204)
    (await coach.post(f"{BULK}/delete", {"ids": ids[1:3]})).ok()
    await require_right(coach)


async def test_concurrent_changes_are_all_counted(coach: CoachClient) -> None:
    clients = await asyncio.gather(*(coach.create_customer(f"Client {n}", groups=["A"]) for n in range(12)))
    changes = [coach.patch(f"/coach/customers/{each['_id']}", {"groups": ["A", "$b.c"]}) for each in clients[:6]]
    archived = coach.post(f"{BULK}/archive", {"ids": [each["_id"] for each in clients[4:]]})
    for reply in await asyncio.gather(*changes, archived):
        reply.ok()
    await require_right(coach)


@pytest.fixture
async def upgraded(only_coach: CoachClient) -> CoachClient:
    """A company whose clients older code has stored: they are not in the numbers."""
    coach = only_coach
    for name in ("Ana", "Bo", "Cy"):
        await coach.create_customer(name, groups=["A", "$b.c"])
    services = coach.ctx.services
    services.complete_counts.clear()
    await coach.ctx.db["groupTotals"].delete_many({"companyId": coach.ctx.company_id})
    for _ in range(2):  # a step can be repeated
        await migrations.group_totals(services.db, services.vault)
    return coach


async def test_clients_of_older_code_are_counted_a_day_later(upgraded: CoachClient) -> None:
    services, steps = upgraded.ctx.services, {COUNT_GROUPS: features.STEPS[COUNT_GROUPS]}
    await upgraded.create_customer("Di", groups=["A"])
    of_erased_company = {"companyId": ObjectId(), "group": "A", "slot": 0, "active": 1}
    await services.db["groupTotals"].insert_one(of_erased_company)
    await require_answers(upgraded)  # they are counted for each request
    assert await run_due(services, steps, at=now() + timedelta(hours=23)) == 0

    assert await run_due(services, steps, at=now() + timedelta(hours=25), limit=100) > 0
    stored: list[Any] = await services.db["groupTotals"].find({"companyId": upgraded.ctx.company_id}).to_list(None)
    assert sum(each.get("active", 0) for each in stored) == 7
    await require_right(upgraded)
    assert services.complete_counts == {COUNT_GROUPS}
