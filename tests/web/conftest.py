"""Browsers for stories of the application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp.test_utils import TestServer

from tests.client import CoachClient
from tests.conftest import PASSWORD
from tests.web.visitor import Visitor

NewVisitor = Callable[[], Visitor]
SignedIn = Callable[[CoachClient], Awaitable[Visitor]]


@pytest.fixture
async def new_visitor(server: TestServer) -> AsyncIterator[NewVisitor]:
    """Opens browsers, and closes them."""
    opened: list[Visitor] = []

    def make() -> Visitor:
        opened.append(Visitor(server))
        return opened[-1]

    yield make
    for visitor in opened:
        await visitor.close()


@pytest.fixture
async def visitor(new_visitor: NewVisitor) -> Visitor:
    """A browser that has never been here."""
    return new_visitor()


@pytest.fixture
async def owner_page(coach: CoachClient, visitor: Visitor) -> Visitor:
    """The company's owner, signed in."""
    (await visitor.sign_in(str(coach.ctx.who.email), PASSWORD)).ok()
    return visitor
