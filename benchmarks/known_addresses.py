"""Whether the time of a response tells that an e-mail address or a token is known.

    .venv/bin/python -m benchmarks.known_addresses

Pairs of requests, one with a known value and one with an unknown value, in alternating order, on one connection. For each
kind: the medians, the median of the differences within a pair, and how often the known one took longer: 50 % tell nothing.
Target: the median of the differences is under a millisecond or 2 % of the response, or the known one took longer in 35 to
65 % of the pairs. The counters of failures are deleted before each pair.
"""

from __future__ import annotations

import asyncio
import sys
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from statistics import median

import aiohttp
import click
from rich.console import Console
from rich.table import Table

from benchmarks.servers import running_service, temporary_settings
from coaching_service import runtime
from coaching_service.core.database.context import Context, Services
from coaching_service.core.ids import ObjectId
from coaching_service.people import team
from coaching_service.people.customers import batch
from coaching_service.people.identities import service as identities
from coaching_service.people.identities.passwords import hash_password
from coaching_service.settings import Settings

WARM_UP = 10
MOST_SECONDS, MOST_SHARE = 0.001, 0.02
FEWEST_SLOWER, MOST_SLOWER = 0.35, 0.65
_COACH, _CLIENT, _UNUSED = "owner@example.com", "ana@example.com", "unused@example.com"
_PASSWORD, _WRONG = "a password for the bench", "another password for it"


@dataclass
class Kind:
    """One kind of request: its path, and its bodies with a known and an unknown value."""

    name: str
    path: str
    known: dict[str, str]
    unknown: dict[str, str]
    statuses: set[int] = field(default_factory=set)
    took: list[tuple[float, float]] = field(default_factory=list)

    @property
    def difference(self) -> float:
        """The median of the differences within a pair, in seconds."""
        return median(known - unknown for known, unknown in self.took)

    @property
    def slower(self) -> float:
        """The share of the pairs whose known request took longer."""
        return sum(known > unknown for known, unknown in self.took) / len(self.took)

    @property
    def tells_nothing(self) -> bool:
        """Whether the target is reached, and both responses have the same status."""
        most = max(MOST_SECONDS, MOST_SHARE * median(unknown for _, unknown in self.took))
        is_similar = abs(self.difference) < most or FEWEST_SLOWER <= self.slower <= MOST_SLOWER
        return is_similar and len(self.statuses) == 1


async def _tokens(services: Services) -> tuple[str, str]:
    """Create a company and a client who has signed in; returns the used token of the first access and an unused one."""
    owner = await team.create_company(Context(services), "Bench", "Owner", _COACH, await hash_password(_PASSWORD))
    ctx = Context(services).acting_as(owner)
    ana = await batch.create_customer(ctx, {"name": "Ana", "email": _CLIENT})
    bea = await batch.create_customer(ctx, {"name": "Bea"})
    return str(ana["firstAccessToken"]), str(bea["firstAccessToken"])


async def _confirmation(services: Services, http: aiohttp.ClientSession) -> str:
    """Sign up a company; returns the token that confirms the address."""
    body = {"companyName": "New", "name": "Nora", "email": "nora@example.com", "password": _PASSWORD}
    async with http.post("/auth/register", json=body) as response:
        tokens = await response.json()
    async with http.get("/me", headers={"Authorization": f"Bearer {tokens['accessToken']}"}) as response:
        owner = await team.get_principal(services, ObjectId((await response.json())["_id"]))
    assert owner is not None
    confirmation = await identities.sign_confirmation(Context(services).acting_as(owner), owner.id)
    assert confirmation is not None
    return confirmation[1]


def _with_other_end(token: str) -> str:
    """The token with another last character."""
    return token[:-1] + ("0" if token[-1] != "0" else "1")


def _kinds(used: str, unused: str, refresh: str, confirmation: str) -> list[Kind]:
    wrong = f"{refresh.partition('.')[0]}.{'x' * 43}"
    confirming = _with_other_end(confirmation)
    company, _, *rest = confirming.split(".")
    return [
        Kind(
            "sign-in of a coach, wrong password",
            "/auth/login",
            {"email": _COACH, "password": _WRONG},
            {"email": _UNUSED, "password": _WRONG},
        ),
        Kind(
            "sign-in of a client, wrong password",
            "/auth/login",
            {"email": _CLIENT, "password": _WRONG},
            {"email": _UNUSED, "password": _WRONG},
        ),
        Kind("forgotten password of a coach", "/auth/password/forgot", {"email": _COACH}, {"email": _UNUSED}),
        Kind("forgotten password of a client", "/auth/password/forgot", {"email": _CLIENT}, {"email": _UNUSED}),
        Kind(
            "first access, a used token",
            "/auth/first-access",
            {"token": used, "password": _WRONG},
            {"token": str(uuid.uuid4()), "password": _WRONG},
        ),
        Kind(
            "first access, another digit of an unused token",
            "/auth/first-access",
            {"token": _with_other_end(unused), "password": _WRONG},
            {"token": str(uuid.uuid4()), "password": _WRONG},
        ),
        Kind("renewal, the family of a session", "/auth/refresh", {"refreshToken": wrong}, {"refreshToken": "x" * 87}),
        Kind(
            "confirmation, a wrong signature for a user",
            "/auth/confirm-email",
            {"token": confirming},
            {"token": ".".join((company, str(ObjectId()), *rest))},
        ),
    ]


async def _took(http: aiohttp.ClientSession, kind: Kind, body: dict[str, str]) -> float:
    began = time.perf_counter()
    async with http.post(kind.path, json=body) as response:
        await response.read()
    took = time.perf_counter() - began
    kind.statuses.add(response.status)
    return took


async def _measure_pair(http: aiohttp.ClientSession, kind: Kind, *, known_first: bool) -> tuple[float, float]:
    if known_first:
        known = await _took(http, kind, kind.known)
        return known, await _took(http, kind, kind.unknown)
    unknown = await _took(http, kind, kind.unknown)
    return await _took(http, kind, kind.known), unknown


async def _measure(settings: Settings, pairs: int) -> bool:
    async with runtime.open_services(settings) as services:
        await runtime.make_indexes(services)
        used, unused = await _tokens(services)
        with running_service(settings, 0, REGISTRATION="true") as server:
            async with aiohttp.ClientSession(
                server.base_url, connector=aiohttp.TCPConnector(limit=1), cookie_jar=aiohttp.DummyCookieJar()
            ) as http:
                async with http.post("/auth/first-access", json={"token": used, "password": _PASSWORD}) as response:
                    response.raise_for_status()
                    refresh = (await response.json())["refreshToken"]
                kinds = _kinds(used, unused, refresh, await _confirmation(services, http))
                await _measure_all(http, kinds, pairs, lambda: services.db["rateLimits"].delete_many({}))
    return _show(kinds, pairs)


async def _measure_all(
    http: aiohttp.ClientSession, kinds: list[Kind], pairs: int, forget_failures: Callable[[], Awaitable[object]]
) -> None:
    for number in range(WARM_UP + pairs):
        for kind in kinds:
            await forget_failures()
            pair = await _measure_pair(http, kind, known_first=number % 2 == 0)
            if number >= WARM_UP:
                kind.took.append(pair)


def _show(kinds: list[Kind], pairs: int) -> bool:
    """Print what was measured; returns whether each kind tells nothing."""
    table = Table(title=f"Known and unknown addresses and tokens, {pairs} pairs each, median ms")
    for heading in ("", "Status", "Known", "Unknown", "Difference", "Known slower", "Tells nothing"):
        table.add_column(heading, justify="right" if heading else "left")
    for kind in kinds:
        known, unknown = (median(each[side] for each in kind.took) * 1000 for side in (0, 1))
        table.add_row(
            kind.name,
            ", ".join(map(str, sorted(kind.statuses))),
            f"{known:.2f}",
            f"{unknown:.2f}",
            f"{kind.difference * 1000:+.2f}",
            f"{kind.slower:.0%}",
            "yes" if kind.tells_nothing else "NO",
        )
    Console(width=None if sys.stdout.isatty() else 130).print(table)
    return all(kind.tells_nothing for kind in kinds)


@click.command()
@click.option("--pairs", type=click.IntRange(1), default=100, show_default=True, help="Of each kind of request.")
def main(pairs: int) -> None:
    """Measure; exit with 1 when a time tells something."""
    with temporary_settings() as settings:
        reached = asyncio.run(_measure(settings, pairs))
        sys.exit(0 if reached else 1)


if __name__ == "__main__":
    main()
