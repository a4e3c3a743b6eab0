"""Many clients at once: counted, sorted and found like those created one by one."""

from __future__ import annotations

import io
from collections import Counter

import pytest
from rich.console import Console

from coaching_service import seeding
from coaching_service.core.text import normalize
from coaching_service.people.customers import service as customers
from tests.support.client import CoachClient

COUNT = 120


@pytest.fixture
async def seeded(coach: CoachClient, monkeypatch: pytest.MonkeyPatch) -> CoachClient:
    """A coach with so many clients, added in batches of 50."""
    monkeypatch.setattr(seeding, "BATCH", 50)
    await seeding.seed_clients(coach.ctx.services, coach.ctx, COUNT)
    return coach


async def all_clients(coach: CoachClient, *, archived: bool) -> list[dict]:
    found, page = [], 1
    while page:
        answer = await coach.customers(archived=str(archived).lower(), pageNum=page)
        found += answer["docs"]
        page = answer["nextPage"]
    return found


async def test_the_totals_are_those_of_the_list(seeded: CoachClient) -> None:
    active, archived = await all_clients(seeded, archived=False), await all_clients(seeded, archived=True)
    assert len(active) + len(archived) == COUNT
    assert (await seeded.customers())["totalDocs"] == len(active)
    assert (await seeded.customers(archived="true"))["totalDocs"] == len(archived)
    assert 0 < len(archived) < COUNT / 4


async def test_they_are_listed_by_name_and_found_by_part_of_it(seeded: CoachClient) -> None:
    active = await all_clients(seeded, archived=False)
    keys = [(normalize(client["name"]), normalize(client["surname"])) for client in active]
    assert keys == sorted(keys)
    someone = active[70]
    for term in (someone["name"], someone["surname"][1:], someone["email"]):
        assert someone["_id"] in [client["_id"] for client in (await seeded.customers(contains=term))["docs"]]


async def test_they_are_plausible_and_different(seeded: CoachClient) -> None:
    people = await all_clients(seeded, archived=False) + await all_clients(seeded, archived=True)
    assert all(client["email"].isascii() and client["email"].endswith("@example.com") for client in people)
    assert len({client["email"] for client in people}) == COUNT
    assert {client["customerRoleData"]["customerType"] for client in people} == {"SAMPLE"}
    trainers = Counter(client["customerRoleData"]["assignedTo"] for client in people)
    assert trainers.keys() == {None, str(seeded.ctx.caller.id)}
    groups = Counter(group for client in people for group in client["customerRoleData"]["groups"])
    counted = {group["name"]: group["count"] for group in (await seeded.get("/coach/customers/groups")).ok()}
    assert counted == dict(groups)


async def test_every_company_gets_the_same_people(seeded: CoachClient, other_company: CoachClient) -> None:
    told: list[int] = []
    await seeding.seed_clients(other_company.ctx.services, other_company.ctx, COUNT, told.append)
    assert told == [50, 100, 120]

    def facts(clients: list[dict]) -> list[tuple]:
        return [(c["name"], c["surname"], c["email"], c["birthday"], c["customerRoleData"]["groups"]) for c in clients]

    for archived in (False, True):
        ours = await all_clients(seeded, archived=archived)
        assert facts(ours) == facts(await all_clients(other_company, archived=archived))


async def test_trainers_can_be_named(coach: CoachClient, other_company: CoachClient) -> None:
    two = (coach.ctx.caller.id, other_company.ctx.caller.id)
    await seeding.seed_clients(coach.ctx.services, coach.ctx, COUNT, trainers=two)
    for trainer in two:
        found = await customers.list_customers(coach.ctx, archived=False, page=1, size=50, trainers=[trainer])
        assert found["totalDocs"] > COUNT / 5


def test_the_bar_says_how_many_there_are() -> None:
    screen = io.StringIO()
    with seeding.progress_bar(Console(file=screen, force_terminal=True, width=80), 2_000) as told:
        told(1_000)
        told(2_000)
    assert "2000/2000" in screen.getvalue()
