"""What lists show of others: by a filter with their identifiers, by their cursors, outside a scope, on a hidden day."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.core.auth import ALL_PERMISSIONS
from coaching_service.core.ids import ObjectId
from coaching_service.people import team
from coaching_service.people.sessions import service as sessions
from tests.contract.test_declared import request_options
from tests.hostile.cases import (
    ROUTES,
    ParameterCase,
    identifiers_in_bodies,
    of_key,
    outside_scope,
    pages_with_identifiers,
    path_cases,
    query_cases,
    searched_parameters,
    tool_cases,
)
from tests.hostile.conftest import Caller, Victim
from tests.hostile.test_foreign_identifiers import KINDS, body_of, kind_of, with_one
from tests.hostile.test_tools import call, is_failure, is_refused, name_of
from tests.mcp.test_tool_access import arguments
from tests.support.client import MONDAY, UNKNOWN
from tests.support.declared_world import World
from tests.support.mcp_client import McpHttpClient
from tests.support.training import employee_key, hide, show
from tests.support.visitor import Visitor
from tests.web.test_pages import filled

FILTERS = KINDS | {"actorId": "employeeId", "ids": "noteId"}


async def test_a_filter_with_an_identifier_of_another_company_finds_nothing(victim: Victim, stranger: Caller) -> None:
    """The same status as of an unknown identifier."""
    differences = []
    for case in searched_parameters():
        name = FILTERS.get(case.parameter, case.parameter)
        foreign = victim.world.get(name, victim.world["customerId"])
        theirs, unknown = [await find(stranger, case, value) for value in (foreign, UNKNOWN)]
        if theirs.status != unknown.status or set(victim.is_shown_in(theirs.raw)) - {foreign}:
            differences.append((str(case), theirs.status, unknown.status, theirs.raw[:200]))
    assert not differences, "\n".join(map(str, differences))


async def find(caller: Caller, case: ParameterCase, value: str, **more: str) -> Any:
    params = request_options(case.route, caller.own)["params"] | more
    return await caller.send(case.route, caller.own, params=params | {case.parameter: value})


async def test_a_cursor_of_another_company_continues_nothing_of_it(victim: Victim, stranger: Caller) -> None:
    differences, cursors = [], 0
    for case in (case for case in query_cases() if case.parameter == "after"):
        params = request_options(case.route, victim.world)["params"]
        short = {name: "1" for name in ("limit", "pageSize") if name in case.route.query.fields}  # type: ignore[union-attr]  # it has a query
        page = (await victim.caller.send(case.route, victim.world, params=params | short)).json
        if not (cursor := page.get("nextCursor") if isinstance(page, dict) else None):
            continue
        cursors += 1
        reply = await find(stranger, case, cursor)
        if reply.status not in (200, 400, 410) or victim.is_shown_in(reply.raw):
            differences.append((str(case), reply.status, reply.raw[:200]))
    assert not differences, "\n".join(map(str, differences))
    assert cursors >= 5


# What belongs to one client: an employee to whom the client is not assigned does not see it.
OF_THE_CLIENT = (
    "customerId", "noteId", "messageId", "messageId/messageId", "photoId", "planId", "recordId", "responseId", "wblockId",
    "witemId", "wblockId/witemId", "checkInId", "assignmentId", "circuitId", "changeId",
)  # fmt: skip


@pytest.fixture(scope="module")
async def colleague(stranger: Caller) -> Caller:
    """An employee of the company with all permissions, to whom no client is assigned."""
    key = stranger.key.with_key(await employee_key(stranger.key, *sorted(ALL_PERMISSIONS)))
    return Caller(key, stranger.session, stranger.client, stranger.own)


async def test_a_client_outside_the_scope_is_in_no_list(colleague: Caller, stranger: Caller) -> None:
    hidden = {stranger.own[name] for name in OF_THE_CLIENT}
    differences = []
    lists = [route for route in ROUTES if route.method == "GET" and not route.path_parameters and of_key(route)]
    for route in lists:
        period = {"from": MONDAY, "to": MONDAY} if route.path == "/coach/compliance" else {}
        reply = await colleague.send(route, {}, params=request_options(route, colleague.own)["params"] | period)
        if reply.status != 200 or (seen := {each for each in hidden if each.encode() in reply.raw}):
            differences.append((route.path, reply.status, seen))
    for case in (case for case in searched_parameters() if case.route in lists):
        sent = colleague.own.get(FILTERS.get(case.parameter, case.parameter), colleague.own["customerId"])
        reply = await find(colleague, case, sent)
        if reply.status not in (200, 400, 403, 404, 410) or (
            seen := {each for each in hidden - {sent} if each.encode() in reply.raw}
        ):
            differences.append((str(case), reply.status, seen))
    assert not differences, "\n".join(map(str, differences))


async def test_a_client_outside_the_scope_is_refused_by_path(colleague: Caller) -> None:
    """Contract 1: 403, whatever follows in the path."""
    differences = []
    for case in outside_scope():
        for identifiers in (colleague.own, {"customerId": colleague.own["customerId"]}):
            reply = await colleague.send(case.route, identifiers)
            if reply.status != 403 or reply.json["code"] != "CUSTOMER_OUT_OF_SCOPE":
                differences.append((str(case), reply.status, reply.raw[:200]))
    assert not differences, "\n".join(map(str, differences))


async def test_a_client_outside_the_scope_is_not_changed_by_a_body(colleague: Caller) -> None:
    """403, 404, or `failed` in a bulk operation."""
    differences = []
    for case in identifiers_in_bodies():
        if kind_of(case) != "customerId" or not of_key(case.route):
            continue
        reply = await colleague.send(
            case.route, colleague.own, json=body_of(case, colleague.own, colleague.own["customerId"])
        )
        changed = reply.status < 400 and reply.json.get("ok", 1) != 0
        if changed or reply.status >= 500:
            differences.append((str(case), reply.status, reply.raw[:200]))
    assert not differences, "\n".join(map(str, differences))


async def test_a_hidden_day_is_unknown_to_the_client(stranger: Caller, sibling: World) -> None:
    """Its workout and items are in no list of the client, and unknown in each path."""
    own = sibling
    client = await stranger.key.as_client({"_id": own["customerId"]})
    caller = Caller(stranger.key, stranger.session, client, own)
    await hide(stranger.key, {"_id": own["customerId"]}, "2026-02-20", MONDAY)  # the days of the workouts
    differences = []
    for case in (case for case in path_cases() if case.route.access.audience == "customer"):
        if case.parameter != "wblockId":
            continue
        theirs = await caller.send(case.route, own)
        unknown = await caller.send(case.route, with_one(case.route, own, "wblockId", UNKNOWN))
        if theirs.status != 404 or theirs.json != unknown.json:
            differences.append((str(case), theirs.status, theirs.raw[:200]))
    for route in ROUTES:
        if route.access.audience == "customer" and route.method == "GET" and not route.path_parameters:
            reply = await caller.send(route, own)
            if any(own[name].encode() in reply.raw for name in ("witemId", "wblockId/witemId", "circuitId")):
                differences.append((route.path, reply.status, reply.raw[:200]))
    await show(stranger.key, {"_id": own["customerId"]}, "2026-02-20", MONDAY)  # others use this client
    assert not differences, "\n".join(map(str, differences))


# Where the client is a filter, which matches nothing.
LISTS_OF_TOOLS = {"list_check_ins"}


async def test_a_client_outside_the_scope_is_unknown_to_tools(
    colleague: Caller, stranger: Caller, public_server: TestServer
) -> None:
    """Each tool that takes a client refuses, and shows nothing of the client."""
    hidden = {stranger.own[name] for name in OF_THE_CLIENT} - {stranger.own["customerId"]}
    differences = []
    async with McpHttpClient(public_server, {"X-API-Key": str(colleague.key.key)}) as mcp:
        for case in tool_cases():
            if name_of(case) != "customerId":
                continue
            reply = await call(mcp, case, stranger.own, stranger.own["customerId"])
            given = arguments(case.tool, stranger.own).values()
            seen = {each for each in hidden - set(map(str, given)) if each.encode() in reply.raw}
            refused = is_refused(reply) or case.tool.name in LISTS_OF_TOOLS
            if is_failure(reply) or not refused or seen:
                differences.append((str(case), seen, reply.raw[:300]))
    assert not differences, "\n".join(map(str, differences))


async def test_a_client_outside_the_scope_is_refused_by_pages(stranger: Caller, server: TestServer) -> None:
    """Each page and form with the client in its path."""
    ctx = stranger.key.ctx
    hired = await team.create(
        ctx, "Eli", f"eli-{ObjectId()}@example.com", sorted(ALL_PERMISSIONS), "assigned", "no hash"
    )
    visitor = Visitor(server)
    visitor.keep(coach_session=(await sessions.start_for_coach(ctx, hired["_id"])).token)
    csrf = (await visitor.get("/app/customers")).form("/app/sign-out").fields[0][1]
    differences = []
    for case in pages_with_identifiers():
        if case.parameter != "customerId" or case.page.access.audience != "coach":
            continue
        path = filled(case.page, stranger.own)
        options: dict[str, Any] = {} if case.page.method == "GET" else {"data": {"csrf": csrf}}
        page = await visitor.send(case.page.method, path, **options)
        if page.status not in (400, 403) or "Ana" in page.text:
            differences.append((case.page.method, case.page.path, page.status, page.text[:150]))
    await visitor.close()
    assert not differences, "\n".join(map(str, differences))
