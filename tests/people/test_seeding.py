"""Clients seeded in bulk: counted, sorted and searched like clients created through the API."""

from __future__ import annotations

import io
from collections import Counter
from typing import Any

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


async def all_clients(coach: CoachClient, *, archived: bool) -> list[dict[str, Any]]:
    clients, page = [], 1
    while page:
        answer = await coach.customers(archived=str(archived).lower(), pageNum=page)
        clients += answer["docs"]
        page = answer["nextPage"]
    return clients


async def test_the_totals_are_those_of_the_list(seeded: CoachClient) -> None:
    active, archived = await all_clients(seeded, archived=False), await all_clients(seeded, archived=True)
    assert len(active) + len(archived) == COUNT
    assert (await seeded.customers())["totalDocs"] == len(active)
    assert (await seeded.customers(archived="true"))["totalDocs"] == len(archived)
    assert 0 < len(archived) < COUNT / 4


async def test_seeded_clients_are_sorted_and_searched_by_name(seeded: CoachClient) -> None:
    active = await all_clients(seeded, archived=False)
    keys = [(normalize(client["name"]), normalize(client["surname"])) for client in active]
    assert keys == sorted(keys)
    someone = active[70]
    for term in (someone["name"], someone["surname"][1:], someone["email"]):
        assert someone["_id"] in [client["_id"] for client in (await seeded.customers(contains=term))["docs"]]


async def test_seeded_clients_are_plausible_and_distinct(seeded: CoachClient) -> None:
    people = await all_clients(seeded, archived=False) + await all_clients(seeded, archived=True)
    assert all(client["email"].isascii() and client["email"].endswith("@example.com") for client in people)
    assert len({client["email"] for client in people}) == COUNT
    assert {client["customerRoleData"]["customerType"] for client in people} == {"SAMPLE"}
    trainers = Counter(client["customerRoleData"]["assignedTo"] for client in people)
    assert trainers.keys() == {None, str(seeded.ctx.caller.id)}
    groups = Counter(group for client in people for group in client["customerRoleData"]["groups"])
    counted = {group["name"]: group["count"] for group in (await seeded.get("/coach/customers/groups")).ok()}
    assert counted == dict(groups)


async def test_every_company_gets_the_same_clients(seeded: CoachClient, other_company: CoachClient) -> None:
    reported: list[int] = []
    await seeding.seed_clients(other_company.ctx.services, other_company.ctx, COUNT, reported.append)
    assert reported == [50, 100, 120]

    def facts(clients: list[dict[str, Any]]) -> list[tuple[object, ...]]:
        return [(c["name"], c["surname"], c["email"], c["birthday"], c["customerRoleData"]["groups"]) for c in clients]

    for archived in (False, True):
        ours = await all_clients(seeded, archived=archived)
        assert facts(ours) == facts(await all_clients(other_company, archived=archived))


async def test_clients_are_assigned_to_given_trainers(coach: CoachClient, other_company: CoachClient) -> None:
    two = (coach.ctx.caller.id, other_company.ctx.caller.id)
    await seeding.seed_clients(coach.ctx.services, coach.ctx, COUNT, trainers=two)
    for trainer in two:
        result = await customers.list_customers(coach.ctx, archived=False, page=1, size=50, trainers=[trainer])
        assert result["totalDocs"] > COUNT / 5


def test_progress_bar_shows_the_total() -> None:
    screen = io.StringIO()
    with seeding.progress_bar(Console(file=screen, force_terminal=True, width=80), 2_000) as advance:
        advance(1_000)
        advance(2_000)
    assert "2000/2000" in screen.getvalue()
