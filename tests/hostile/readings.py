"""Reading everything that there is about a client, or about a company, from the declarations."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field
from typing import Any

from coaching_service.core.http.routes import Route
from coaching_service.web.pages import Page
from tests.contract.test_declared import request_options
from tests.hostile.boundary_values import EARLY, LATE, TODAY
from tests.hostile.cases import PAGES, ROUTES, TOOLS
from tests.hostile.conftest import Caller
from tests.hostile.test_hostile_values import LEGACY
from tests.mcp.test_tool_access import arguments
from tests.support.client import Reply
from tests.support.declared_world import World
from tests.support.mcp_client import McpHttpClient
from tests.support.visitor import Visitor
from tests.web.test_pages import filled

# Processor time of an answer, of the client and the server together; the proof sends eight at once.
SECONDS = 2.0
_RANGES = (("startDate", "endDate"), ("from", "to"))
_DAYS = ((EARLY[0], "0001-01-31"), (str(TODAY), str(TODAY)), ("9999-12-01", LATE[0]))
_VOLATILE = re.compile(rb"(expires|signature|token|csrf|sha256-)[^\"&\s<>]*")
# What an assistant, a table or a calendar reads line by line.
_LINES = ("text/calendar", "text/csv", "text/plain")


@dataclass
class Readings:
    """The answers to everything that was read, and what was wrong with them."""

    answers: dict[str, Any] = field(default_factory=dict)
    problems: list[tuple[object, ...]] = field(default_factory=list)

    async def read(self, name: str, answering: Awaitable[Any]) -> Any:
        """Take an answer; a failure, a crash of the reader, or a slow answer is a problem."""
        began = time.process_time()
        try:
            answer = await answering
        except Exception as error:  # noqa: BLE001 - of the check against the declaration, or of the reading
            self.problems.append((name, repr(error)[:600]))
            return None
        if (seconds := time.process_time() - began) > SECONDS:
            self.problems.append((name, f"{seconds:.1f} s"))
        return answer


def of_client(path: str, audience: str) -> bool:
    """Whether a path is about one client."""
    return audience == "customer" or "{customerId}" in path or path.startswith("/calendar/")


async def read_rest(readings: Readings, caller: Caller, own: World, *, about_client: bool) -> None:
    """Read every route, those with a range of days at the ends of the calendar too."""
    for route in ROUTES:
        if route.method != "GET" or of_client(route.path, route.access.audience) != about_client:
            continue
        for params in _queries(route, caller.own):
            name = f"GET {route.path} {sorted(params.items())}"
            reply = await readings.read(name, caller.send(route, own, params=params))
            if reply is None:
                continue
            readings.answers[name] = reply.status, _VOLATILE.sub(b"", reply.raw)
            if reply.status >= 500 and (reply.json or {}).get("code") != LEGACY and "metrics-sets" not in route.path:
                readings.problems.append((name, reply.status, reply.raw[:300]))
            _check_lines(readings, name, reply)


def _queries(route: Route, own: World) -> Iterator[dict[str, str]]:
    params = {"pageSize": "50", "pageNum": "1"} if route.query and "pageSize" in route.query.fields else {}
    params = request_options(route, own)["params"] | params
    yield params
    names = {each.data_key or name for name, each in route.query.fields.items()} if route.query else set()
    for first, last in _RANGES:
        if {first, last} <= names:
            for start, end in _DAYS:
                yield params | {first: start, last: end}


def _check_lines(readings: Readings, name: str, reply: Reply) -> None:
    kind = reply.headers.get("Content-Type", "")
    if kind.startswith(_LINES):
        check_text(readings, name, reply.raw.decode())


def check_text(readings: Readings, name: str, text: str) -> None:
    """A line ends at a line feed and nowhere else."""
    if found := re.search("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", text):
        readings.problems.append((name, "ends a line", text[max(0, found.start() - 60) : found.end() + 60]))


Visitors = dict[str, tuple[Visitor, str]]


async def read_pages(readings: Readings, visitors: Visitors, own: World, *, about_client: bool) -> None:
    """Open every page."""
    for page in PAGES:
        is_read = page.method == "GET" and page.access.audience in ("coach", "customer")
        if is_read and of_client(page.path, page.access.audience) == about_client:
            visitor, _ = visitors[page.access.audience]
            name = f"page {page.path}"
            for query in _queries_of(page):
                seen = await readings.read(name, visitor.get(filled(page, own), params=query))
                if seen is None:
                    continue
                readings.answers[f"{name} {query}"] = seen.status, _VOLATILE.sub(b"", seen.text.encode())
                if seen.status >= 500:
                    readings.problems.append((name, query, seen.status, seen.text[:200]))


def _queries_of(page: Page) -> Iterator[dict[str, str]]:
    yield {}
    names = set(page.query.fields) if page.query is not None else set()
    for name in names & {"week", "month", "day", "date"}:
        for day in ("0001-01-01", "9999-12-31", str(TODAY)):
            yield {name: day[:7] if name == "month" else day}


async def read_tools(readings: Readings, mcp: McpHttpClient, own: World, *, about_client: bool) -> None:
    """Call every tool that reads, also with a range of days at the ends of the calendar."""
    for tool in TOOLS:
        names = set(tool.takes.fields)
        if tool.writes or bool(names & {"customerId", "customerIds"}) != about_client:
            continue
        given = arguments(tool, own) | ({"customerId": own["customerId"]} if "customerId" in names else {})
        details = [{"detail": each} for each in ("summary", "full")] if "detail" in names else []
        ranges = [{"startDate": first, "endDate": last} for first, last in _DAYS] if "startDate" in names else []
        for more in ({}, *details, *ranges):
            name = f"tool {tool.name} {more}"
            sent = {"name": tool.name, "arguments": given | more}
            reply = await readings.read(name, mcp.request("tools/call", sent))
            if reply is None:
                continue
            readings.answers[name] = reply.status, reply.raw
            if reply.status != 200 or b"-32603" in reply.raw or "unexpected" in reply.raw.decode().lower():
                readings.problems.append((name, reply.status, reply.raw[:300]))
            for content in reply.json.get("result", {}).get("content", ()):
                check_text(readings, name, content.get("text", ""))
