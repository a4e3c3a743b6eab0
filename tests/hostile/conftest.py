"""Two companies with a document of each kind, and what the first must not lose or show."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import pytest
from bson import encode

from coaching_service.core.auth import ALL_PERMISSIONS
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import registry
from coaching_service.core.http.routes import Route
from coaching_service.core.ids import ObjectId
from coaching_service.people.sessions import service as sessions
from tests.conftest import NewCompany
from tests.contract.test_declared import fill_path, request_options
from tests.support.client import CoachClient, Reply
from tests.support.declared_world import World, make_world
from tests.support.training import employee_key

# What changes without a request: jobs run, changes receive numbers, and figures are derived.
_BACKGROUND = {
    "audit",  # what the company itself reads is stored some seconds later
    "changeCounters",
    "changeNumbers",
    "exerciseUses",
    "jobs",
    "notifications",
    "rateLimits",
    "webhookDeliveries",
}
_DERIVED = {
    "apiKeys": {"lastUsedAt": 0},
    "sessions": {"_id": 1},
    "changes": {"_id": 1},
    "customers": {
        "attention": 0,
        "customerRoleData": 0,
        "figuresUntil": 0,
        "figuresChangedAt": 0,
        "firstAccessHash": 0,
    },
    "proposals": {"isMailed": 0},  # a mail says after a minute that they wait
    "webhooks": {"position": 0},
}


@dataclass
class Caller:
    """One user of a company with each of their credentials."""

    key: CoachClient
    session: CoachClient
    client: CoachClient
    own: World

    def of(self, route: Route) -> CoachClient:
        """The credential that the route accepts."""
        if route.access.audience == "customer":
            return self.client
        return self.session if route.access.session_only else self.key

    async def send(self, route: Route, identifiers: World, **options: Any) -> Reply:
        """Call a route with these identifiers in its path; `options` replace its example and required query."""
        sent = request_options(route, self.own) | options
        reply = await self.of(route).send(route.method, fill_path(route, identifiers), **sent)
        if reply.status == 401 and route.access.audience != "public":  # an earlier case ended the session
            self.session, self.client = await self.key.interactive(), await self.key.as_client(self.customer)
            reply = await self.of(route).send(route.method, fill_path(route, identifiers), **sent)
        return reply

    @property
    def customer(self) -> dict[str, str]:
        """The client of the company."""
        return {"_id": self.own["customerId"]}


async def make_caller(coach: CoachClient, own: World) -> Caller:
    """The owner of a company, and the client of `own`."""
    return Caller(coach, await coach.interactive(), await coach.as_client({"_id": own["customerId"]}), own)


@dataclass
class Victim:
    """The company that no other company may read or change."""

    coach: CoachClient
    world: World
    caller: Caller
    stored: dict[str, str] = field(default_factory=dict)

    async def fingerprint(self) -> dict[str, str]:
        """A hash of all documents of the company, by collection."""
        hashes = {}
        for name in sorted(set(registry) - _BACKGROUND):
            where = {"companyId": self.coach.ctx.company_id}
            documents = await self.coach.ctx.db[name].find(where, _DERIVED.get(name)).sort("_id", 1).to_list(None)
            if documents:
                hashes[name] = sha256(b"".join(encode(document) for document in documents)).hexdigest()
        return hashes

    async def references_in(self, coach: CoachClient) -> list[str]:
        """The collections in which another company has an identifier of this one."""
        identifiers = [ObjectId(value).binary for value in self.world.values() if ObjectId.is_valid(value)]
        collections = []
        for name in sorted(set(registry) - {"jobs"}):
            async for document in coach.ctx.db[name].find({"companyId": coach.ctx.company_id}):
                raw = encode(document)
                collections += [name for identifier in identifiers if identifier in raw]
        return collections

    def is_shown_in(self, raw: bytes) -> list[str]:
        """The identifiers of the company that a response contains."""
        return sorted({value for value in self.world.values() if len(value) >= 12 and value.encode() in raw})


@pytest.fixture(scope="package")
async def victim(new_company: NewCompany) -> AsyncIterator[Victim]:
    """A company with a document of each kind; after all tests it has the same documents."""
    coach = await new_company()
    world = await make_world(coach)
    result = Victim(coach, world, await make_caller(coach, world))
    result.stored = await result.fingerprint()
    assert len(result.stored) > 25
    yield result
    after = await result.fingerprint()
    assert {name for name in after | result.stored if after.get(name) != result.stored.get(name)} == set()


@pytest.fixture(scope="package")
async def stranger(new_company: NewCompany) -> Caller:
    """Another company, and a document of each kind in it."""
    coach = await new_company()
    return await make_caller(coach, await make_world(coach))


@pytest.fixture(scope="package")
async def target(new_company: NewCompany) -> Caller:
    """A company that hostile values may change, and a document of each kind in it."""
    coach = await new_company()
    return await make_caller(coach, await make_world(coach))


@pytest.fixture(scope="package")
async def sibling(stranger: Caller) -> World:
    """Another client of the company of `stranger`, with other documents of each kind."""
    return await make_world(stranger.key)


@pytest.fixture(scope="package")
async def colleague(stranger: Caller) -> Caller:
    """A colleague of the owner of `stranger` with all permissions, and the same client."""
    key = stranger.key.with_key(await employee_key(stranger.key, *ALL_PERMISSIONS, scope="all"))
    who = (await key.get("/me")).ok()
    session = await sessions.create_session(stranger.key.ctx, ObjectId(who["_id"]), "coach")
    return Caller(key, key.with_bearer(session["accessToken"]), stranger.client, stranger.own)


@pytest.fixture(autouse=True)
async def no_failed_sign_ins(services: Services) -> AsyncIterator[None]:
    """All requests come from one network address, whose failures are counted."""
    yield
    await services.db["rateLimits"].delete_many({})


class Refusals:
    """What unknown identifiers are answered; one is sent only for an answer that none of its kind has had."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    async def like(self, kind: object, answer: Any, ask: Callable[[], Awaitable[Any]]) -> Any:
        """The answer to an unknown identifier of a kind: this one, if one of the kind had it before."""
        if repr((kind, answer)) in self._known:
            return answer
        unknown = await ask()
        self._known.add(repr((kind, unknown)))
        return unknown


@pytest.fixture(scope="module")
def refusals() -> Refusals:
    """The refusals that the tests of a module have seen."""
    return Refusals()
