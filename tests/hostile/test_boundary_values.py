"""Everything that may be stored is read everywhere: values at the bounds of each field, of clients in each state.

From the declarations: every body, form and tool that writes is sent with values at the bounds of all its fields; then all
routes, pages, tools, calendars, exports, checks, figures, reminders and digests are read. A new one is covered without being
listed. The product of all values and states is in tests/reliability/proofs.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from hashlib import sha256
from typing import Any, is_typeddict

import pytest
from aiohttp.test_utils import BaseTestServer
from bson import encode
from marshmallow import fields
from pymongo.errors import DuplicateKeyError

from coaching_service.core.database.context import Context
from coaching_service.core.database.declared import Portable
from coaching_service.core.database.documents import now, registry
from coaching_service.core.fields import checks_of
from coaching_service.core.http.routes import Route
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import worker
from coaching_service.core.validation import (
    Date,
    Integer,
    Number,
    Text,
    Timezone,
)
from coaching_service.features import STEPS
from coaching_service.integrations import load_unit
from coaching_service.integrations.company_import import service as company_import
from coaching_service.integrations.proposals import service as proposals
from coaching_service.library.exercises import service as exercises
from coaching_service.lifecycle.customer_bulk import service as customer_bulk
from coaching_service.people.changes import service as changes
from coaching_service.people.customers import derived_figures
from coaching_service.people.sessions import service as sessions
from coaching_service.settings import Settings
from tests.contract.test_declared import request_options
from tests.hostile.boundary_values import EARLY, LATE, TODAY, Attempt, attempts, flatten
from tests.hostile.cases import PAGES, ROUTES, TOOLS
from tests.hostile.conftest import _DERIVED, Caller, Victim, make_caller
from tests.hostile.readings import Readings, Visitors, of_client, read_pages, read_rest, read_tools
from tests.mcp.test_tool_access import arguments
from tests.support.client import CoachClient
from tests.support.declared_world import World, make_world
from tests.support.doctor import check, is_numbered
from tests.support.figures import renew_figures
from tests.support.mcp_client import McpHttpClient
from tests.support.notifications import send_due
from tests.support.own_application import running_application
from tests.support.sampled import MORE, some
from tests.support.service_process import until
from tests.support.visitor import Visitor
from tests.support.webhooks import Receiver, receiving
from tests.web.test_pages import filled

JOBS = {kind: STEPS[kind] for kind in (load_unit.CONVERT, customer_bulk.STEP, changes.STEP, company_import.IMPORT)}
ODD = "\u05e0\u05d5\u05e2\u05d4\u2028\U0001f469\u200d\U0001f469 \uff1d1" * 12


@dataclass
class Inhabited:
    """A company with clients in each state, and one to whom nothing happens."""

    caller: Caller
    clients: dict[str, World]
    neighbour: World
    mcp: McpHttpClient
    visitors: dict[str, Visitors]
    stranger: Victim
    receiver: Receiver

    def of(self, own: World) -> Caller:
        """The caller with a client's identifiers."""
        return replace(self.caller, own=own)


async def add_absence(coach: CoachClient, own: World, first: int, last: int | None, kind: str) -> None:
    """Enter that a client cannot train from and until so many days from today."""
    period = {"kind": kind, "from": str(TODAY + timedelta(first))}
    until = None if last is None else str(TODAY + timedelta(last))
    (await coach.post(f"/coach/customers/{own['customerId']}/availability", period | {"until": until})).ok(201)


@pytest.fixture(scope="module")
async def inhabited(settings: Settings, password_hash: str) -> AsyncIterator[Inhabited]:
    """A company in an application of its own, whose webhooks arrive; another company does not change."""
    async with running_application(settings, "bounds", password_hash) as application, receiving() as receiver:
        await exercises.publish_shared(application.services)
        coach, stranger = await application.new_coach(), await application.new_coach()
        async with AsyncExitStack() as stack:
            stack.push_async_callback(coach.close)
            stack.push_async_callback(stranger.close)
            world = await make_world(stranger)
            other = Victim(stranger, world, await make_caller(stranger, world))
            other.stored = await other.fingerprint()
            # The clock is moved while notifications are sent, and the application must not expire its proposals then.
            waiting = {"companyId": stranger.ctx.company_id, "kind": proposals.EXPIRE}
            assert (await stranger.ctx.db["jobs"].delete_many(waiting)).deleted_count == 2
            async with inhabit(coach, application.server, other, receiver) as company:
                yield company
            assert await other.fingerprint() == other.stored


@asynccontextmanager
async def inhabit(
    coach: CoachClient, server: BaseTestServer, stranger: Victim, receiver: Receiver
) -> AsyncIterator[Inhabited]:
    """Clients: injured without an end, with everything; announced absence and a long odd name; archived; new.

    Those in the middle have everything in the proofs only.
    """
    injured, neighbour = [await make_world(coach) for _ in range(2)]
    announced, archived, new = [
        await make_world(coach)
        if MORE > 1 and name != "New"
        else {"customerId": (await coach.create_customer(name))["_id"]}
        for name in ("Announced", "Archived", "New")
    ]
    await add_absence(coach, injured, 0, None, "injured")
    await add_absence(coach, announced, 5, 9, "away")
    named = {"name": ODD[:190], "surname": ODD[:190]}
    (await coach.patch(f"/coach/customers/{announced['customerId']}", named)).ok()
    clients = {"injured": injured, "announced": announced, "archived": archived, "new": new}
    caller = await make_caller(coach, injured)
    visitors = {}
    for name, own in (clients | {"neighbour": neighbour}).items():
        visitors[name] = await visit(server, caller, own)
        link = await coach.post(f"/coach/customers/{own['customerId']}/calendar-link")
        own["calendarToken"] = link.ok(201)["url"].rpartition("/")[2]
    (await coach.post("/coach/customers/bulk/archive", {"ids": [archived["customerId"]]})).ok()
    (await coach.post("/coach/webhooks", {"url": receiver.url})).ok(201)
    async with McpHttpClient(server, {"X-API-Key": str(coach.key)}) as mcp:
        yield Inhabited(caller, clients, neighbour, mcp, visitors, stranger, receiver)
    for each in visitors.values():
        for visitor, _ in each.values():
            await visitor.close()


async def visit(server: BaseTestServer, caller: Caller, own: World) -> Visitors:
    """The browsers of the coach and of a client."""
    ctx = caller.key.ctx
    coach, client = Visitor(server), Visitor(server)
    coach.keep(coach_session=(await sessions.start_for_coach(ctx, ctx.caller.id)).token)
    client.keep(coach_session=(await sessions.start_for_customer(ctx, ObjectId(own["customerId"]), "Phone")).token)
    csrf = (await coach.get("/app/customers")).form("/app/sign-out").fields[0][1]
    own_csrf = (await client.get("/train")).html.partition('data-csrf="')[2].partition('"')[0]
    return {"coach": (coach, csrf), "customer": (client, own_csrf)}


# --- writing ---------------------------------------------------------------------------------------------------------


@dataclass
class Written:
    """How many requests were accepted and refused, and those that failed."""

    accepted: int = 0
    refused: int = 0
    failures: list[tuple[object, ...]] = field(default_factory=list)

    def add(self, name: str, status: int, raw: object) -> None:
        """Count an answer."""
        self.accepted += status < 400
        self.refused += 400 <= status < 500
        if status >= 500:
            self.failures.append((name, status, str(raw)[:300]))


async def run_jobs(ctx: Context) -> None:
    """Do at once what a request has begun, which others may wait for."""
    mine = {"companyId": ctx.company_id, "kind": {"$in": list(JOBS)}}
    while (await ctx.db["jobs"].update_many(mine, {"$set": {"runAfter": now() - timedelta(minutes=1)}})).matched_count:
        await worker.run_due(ctx.services, JOBS)


Case = Callable[[], Awaitable[None]]


async def write(cases: Iterable[Case]) -> None:
    """Send requests."""
    for case in cases:
        await case()


def rest_cases(inhabited: Inhabited, written: Written, *, about_client: bool, every: bool = False) -> Iterator[Case]:
    """Requests of every body with values at the bounds, to the clients in turn."""
    worlds = list(inhabited.clients.values())
    for turn, route in enumerate(ROUTES):
        if route.body is None or route.access.audience == "public":
            continue
        if of_client(route.path, route.access.audience) != about_client:
            continue
        for number, attempt in enumerate(_attempts_of(route, worlds[0], turn, every=every)):
            own = worlds[(turn + number) % len(worlds)] if number % 3 == 0 else worlds[0]
            yield partial(_send, inhabited.of(worlds[0] | own), written, route, attempt)


async def _send(caller: Caller, written: Written, route: Route, attempt: Attempt) -> None:
    for _ in range(6):
        body = attempt.body()
        reply = await caller.send(route, caller.own, json=body)
        if reply.status != 400 or not attempt.refuse([each["field"] for each in reply.json.get("errors", ())]):
            break
    written.add(f"{route.method} {route.path} {body}", reply.status, reply.raw)
    if reply.status == 202:
        await run_jobs(caller.key.ctx)


def _attempts_of(route: Any, own: World, turn: int, *, every: bool) -> Iterator[Attempt]:
    example = {name: each for name, each in request_options(route, own)["json"].items() if name != "version"}
    return attempts(
        route.body, example | ({"dryRun": False} if "dryRun" in example else {}), own, turn=turn, every=every
    )


def tool_cases(inhabited: Inhabited, written: Written, *, every: bool = False) -> Iterator[Case]:
    """Calls of every tool that writes with values at the bounds."""
    worlds = list(inhabited.clients.values())
    for tool in (each for each in TOOLS if each.writes):
        example = arguments(tool, worlds[0])
        for number, attempt in enumerate(attempts(tool.takes, example, worlds[0], every=every)):
            given = attempt.body()
            if "customerId" in given and number % 3 == 0:
                given["customerId"] = worlds[number % len(worlds)]["customerId"]
            yield partial(_call, inhabited.mcp, written, tool.name, given)


async def _call(mcp: McpHttpClient, written: Written, name: str, given: dict[str, Any]) -> None:
    reply = await mcp.request("tools/call", {"name": name, "arguments": given})
    failed = reply.status != 200 or b"-32603" in reply.raw or "unexpected" in reply.raw.decode().lower()
    refused = not failed and ("error" in reply.json or bool(reply.json["result"].get("isError")))
    written.add(f"{name} {given}", 500 if failed else 400 if refused else 200, reply.raw)


async def approve_all(inhabited: Inhabited, written: Written) -> None:
    """Approve what is proposed."""
    session = await inhabited.caller.key.interactive()
    pending = (await session.get("/coach/proposals", status="pending")).ok()
    for proposal in pending["docs"]:
        reply = await session.post(f"/coach/proposals/{proposal['_id']}/approve")
        written.add("approve", reply.status, reply.raw)


def form_cases(inhabited: Inhabited, written: Written, *, every: bool = False) -> Iterator[Case]:
    """Every form with values at the bounds."""
    own, visitors = inhabited.clients["injured"], inhabited.visitors["injured"]
    for page in PAGES:
        if page.method != "POST" or page.schema is None or page.access.audience not in ("coach", "customer"):
            continue
        visitor, csrf = visitors[page.access.audience]
        for number, attempt in enumerate(attempts(page.schema, {}, own, every=every)):
            if every or number % 2 == 0:
                sent = {"csrf": csrf} | flatten(attempt.body())
                yield partial(_fill_in, visitor, written, filled(page, own), sent)


async def _fill_in(visitor: Visitor, written: Written, path: str, sent: dict[str, str]) -> None:
    seen = await visitor.send("POST", path, follow=False, data=sent)
    written.add(f"form {path} {sent}", seen.status, seen.text)


# --- reading ---------------------------------------------------------------------------------------------------------


async def read_client(inhabited: Inhabited, name: str, own: World) -> Readings:
    """Read everything about a client."""
    readings = Readings()
    key = inhabited.caller.key
    caller = replace(inhabited.caller, own=own, client=await key.as_client({"_id": own["customerId"]}))
    await read_rest(readings, caller, own, about_client=True)
    await read_pages(readings, inhabited.visitors[name], own, about_client=True)
    await read_tools(readings, inhabited.mcp, inhabited.clients["injured"] | own, about_client=True)
    return readings


async def read_company(inhabited: Inhabited) -> Readings:
    """Read everything about the company, and do what is done in the background."""
    readings, own, ctx = Readings(), inhabited.clients["injured"], inhabited.caller.key.ctx
    await readings.read("figures", renew_figures(ctx))
    await readings.read("reminders and digests", send_due(ctx, after=timedelta(days=1)))
    await read_rest(readings, inhabited.caller, own, about_client=False)
    await read_pages(readings, inhabited.visitors["injured"], own, about_client=False)
    await read_tools(readings, inhabited.mcp, own, about_client=False)
    for result in await check(ctx.services):
        if result.error:
            readings.problems.append(("doctor", result.check.name, result.error))
    return readings


async def read_all(inhabited: Inhabited, *names: str) -> list[tuple[object, ...]]:
    """The problems of everything about the company and its clients, or those with these names."""
    problems = (await read_company(inhabited)).problems
    for name, own in inhabited.clients.items():
        if names and name not in names:
            continue
        problems += [(name, *each) for each in (await read_client(inhabited, name, own)).problems]
    return problems


async def stored_about(inhabited: Inhabited, own: World) -> dict[str, str]:
    """A hash of all documents about a client."""
    hashes = {}
    for name, collection in registry.items():
        if collection.client_field and name not in ("audit", "jobs", "notifications", "changes"):
            where = {"companyId": inhabited.caller.key.ctx.company_id}
            owner = "_id" if name == "customers" else collection.client_field
            where |= {owner: ObjectId(own["customerId"])}
            found = await inhabited.caller.key.ctx.db[name].find(where, _DERIVED.get(name)).sort("_id", 1).to_list(None)
            hashes[name] = sha256(b"".join(map(encode, found))).hexdigest()
    return hashes


async def read_webhooks(inhabited: Inhabited) -> list[tuple[object, ...]]:
    """The problems of what was delivered: each event arrives as it is read by others, with the same texts."""
    services, key, receiver = inhabited.caller.key.ctx.services, inhabited.caller.key, inhabited.receiver
    await until(lambda: is_numbered(services), "all changes are numbered")
    events: dict[str, Any] = {}
    page = {"hasMore": True, "nextCursor": "0"}
    while page["hasMore"]:
        page = (await key.get("/coach/events", limit=500, after=page["nextCursor"])).ok()
        events |= {each["id"]: each for each in page["docs"]}
    first = min(receiver.sequence)
    later = {each["id"] for each in events.values() if each["seq"] >= first}
    await until(
        lambda: later <= {each.event["id"] for each in receiver.messages}, "every event is delivered", pause=0.2
    )
    delivered = [each.event for each in receiver.messages]
    return [("webhook", each, events.get(each["id"])) for each in delivered if each != events.get(each["id"])]


# Pages about a client that also say something of others: what is left to do, which is next, groups to choose from, and
# the number of the company's last change; and how often this test has looked at the client.
OF_OTHERS = re.compile(
    "page /(app/attention/|.*/review |.*/details |.*/messages/live |.*/access )|GET /customer/access "
)


def differences(before: Readings, after: Readings) -> list[str]:
    """What has another answer than before, but for archives, which have the time at which they are made."""
    names = sorted({*before.answers, *after.answers})
    assert len(names) > 150
    differing = [name for name in names if before.answers.get(name) != after.answers.get(name)]
    return [name for name in differing if b"PK" not in after.answers[name][1] and not OF_OTHERS.match(name)]


async def test_values_at_the_bounds_are_read_everywhere(inhabited: Inhabited) -> None:
    written, neighbour = Written(), inhabited.neighbour
    # From now on the messages are read.
    await read_pages(Readings(), inhabited.visitors["neighbour"], neighbour, about_client=True)
    answers = await read_client(inhabited, "neighbour", neighbour)
    before = await stored_about(inhabited, neighbour)
    await write(rest_cases(inhabited, written, about_client=True))
    assert await stored_about(inhabited, neighbour) == before
    differing = differences(answers, await read_client(inhabited, "neighbour", neighbour))
    assert not differing, differing
    await write(rest_cases(inhabited, written, about_client=False))
    await write(tool_cases(inhabited, written))
    await approve_all(inhabited, written)
    await write(form_cases(inhabited, written))
    problems = list(written.failures)
    problems += await read_all(inhabited, *some(list(inhabited.clients), 2))
    problems += await read_webhooks(inhabited)
    assert not problems, "\n".join(str(each)[:600] for each in problems)


# --- documents of earlier versions -----------------------------------------------------------------------------------

# Beyond the bounds, in the two passes: what an earlier version, or a hand in the database, may have stored.
BEYOND: list[tuple[type[fields.Field[Any]], tuple[Any, Any]]] = [
    (Timezone, ("Mars/Olympus", "Europe/Atlantis")),
    (Date, (EARLY[0], LATE[0])),
    (Number, (-1e12, 1e15)),
    (Integer, (-1_000_000, 10**12)),
]


def beyond(check: fields.Field[Any], value: Any, turn: int) -> Any:
    """A value that the field would refuse, of the type of the stored one."""
    if value is None or isinstance(value, bool):
        return value
    for kind, values in BEYOND:
        if isinstance(check, kind):
            return values[turn % 2] if kind is not Integer or isinstance(value, int) else value
    is_text = type(check) is Text and isinstance(value, str)
    return f"{ODD}\x0b\x0c\x1c\u202e{value}\n{'x' * 300}" if is_text else value


def put_beyond(document: Any, names: list[str], check: fields.Field[Any], turn: int) -> None:
    """Change the values at a path of names; the entries of a list have the same path."""
    if isinstance(document, list):
        for entry in document:
            put_beyond(entry, names, check, turn)
    elif isinstance(document, dict) and names[0] in document:
        if len(names) > 1:
            put_beyond(document[names[0]], names[1:], check, turn)
        elif isinstance(document[names[0]], list):
            document[names[0]] = [
                [beyond(check, inner, turn) for inner in each] if isinstance(each, list) else beyond(check, each, turn)
                for each in document[names[0]]
            ]
        else:
            document[names[0]] = beyond(check, document[names[0]], turn)


async def store_beyond(inhabited: Inhabited, turn: int) -> int:
    """Change all documents of the company but those about the neighbour and other clients, and count them."""
    ctx, changed = inhabited.caller.key.ctx, 0
    for name, collection in registry.items():
        transfer = collection.transfer
        if isinstance(transfer, Portable):
            checks = transfer.all_checks
        else:
            checks = checks_of(collection.model) if is_typeddict(collection.model) else {}
        where: dict[str, Any] = {"companyId": ctx.company_id}
        if collection.client_field:
            of = "_id" if name == "customers" else collection.client_field
            where[of] = ObjectId(inhabited.clients["injured"]["customerId"])
        for document in await ctx.db[name].find(where).to_list(None) if checks else ():
            for position, (path, each) in enumerate(checks.items()):
                put_beyond(document, path.split("."), each, turn + position // 2)
            with suppress(DuplicateKeyError):
                await ctx.db[name].replace_one({"_id": document["_id"]}, document)
                changed += 1
    return changed


@pytest.mark.parametrize("turn", some([0, 1], 1))
async def test_stored_values_beyond_the_bounds_are_read_everywhere(inhabited: Inhabited, turn: int) -> None:
    assert await store_beyond(inhabited, turn) > 50
    await derived_figures.mark_all_due(
        inhabited.caller.key.ctx.services, inhabited.caller.key.ctx.company_id, None, 100
    )
    problems = await read_all(inhabited, "injured")  # of the other clients nothing has changed
    assert not problems, "\n".join(str(each)[:600] for each in problems)
