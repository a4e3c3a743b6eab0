"""Browsers for tests of the web application."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.core.ids import ObjectId
from coaching_service.people import team
from coaching_service.people.sessions import service as sessions
from coaching_service.people.team import CustomersScope
from coaching_service.training.workouts import plan_changes
from tests.support.client import CoachClient
from tests.support.visitor import Visitor

NewVisitor = Callable[[], Visitor]
ClientPage = Callable[[CoachClient, Mapping[str, Any]], Awaitable[Visitor]]
Colleague = Callable[..., Awaitable[Visitor]]
SignedIn = Callable[[CoachClient], Awaitable[Visitor]]


@pytest.fixture(autouse=True)
def usual_first_load(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads of clients without a history are not asked about, where a test is not about that."""
    if not request.module.__name__.endswith("test_unusual_values"):
        monkeypatch.setattr(plan_changes, "MAX_FIRST_KG", 500)


@pytest.fixture
async def new_visitor(server: TestServer) -> AsyncIterator[NewVisitor]:
    """Creates browsers, and closes them after the test."""
    opened: list[Visitor] = []

    def make() -> Visitor:
        opened.append(Visitor(server))
        return opened[-1]

    yield make
    for visitor in opened:
        await visitor.close()


@pytest.fixture
async def visitor(new_visitor: NewVisitor) -> Visitor:
    """A browser without cookies."""
    return new_visitor()


@pytest.fixture
async def owner_page(coach: CoachClient, visitor: Visitor) -> Visitor:
    """The company's owner, signed in."""
    visitor.keep(coach_session=(await sessions.start_for_coach(coach.ctx, coach.ctx.caller.id)).token)
    return visitor


@pytest.fixture
async def colleague(coach: CoachClient, new_visitor: NewVisitor, password_hash: str) -> Colleague:
    """Creates an employee with permissions, and signs them in."""

    async def sign_in(*permissions: str, scope: CustomersScope = "all") -> Visitor:
        email = f"eli-{secrets.token_hex(6)}@example.com"
        employee = await team.create(coach.ctx, "Eli", email, list(permissions), scope, password_hash)
        visitor = new_visitor()
        visitor.keep(coach_session=(await sessions.start_for_coach(coach.ctx, employee["_id"])).token)
        return visitor

    return sign_in


@pytest.fixture
async def client_page(new_visitor: NewVisitor) -> ClientPage:
    """Opens a browser in which a client of a company is signed in."""

    async def sign_in(company: CoachClient, customer: Mapping[str, Any]) -> Visitor:
        session = await sessions.start_for_customer(company.ctx, ObjectId(customer["_id"]), "Test browser")
        visitor = new_visitor()
        visitor.keep(coach_session=session.token)
        return visitor

    return sign_in
