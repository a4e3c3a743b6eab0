"""The kinds of requests that are compared, and the servers that each is sent to."""

from __future__ import annotations

from benchmarks.peers import mcp_calls
from benchmarks.peers.report import SERVICE
from benchmarks.peers.requests import LOGGED, PRESENTED, Arm, Kind

PEERS = {"motor": "aiohttp, Motor", "pymongo": "aiohttp, PyMongo Async", "fastapi": "FastAPI", "nest": "NestJS"}
ALONE, COMPLETE, SAME_RESPONSE = "one write", "same writes", "same response"
BARE, _FASTAPI = f"{PEERS['motor']}: {COMPLETE}", f"{PEERS['fastapi']}: {COMPLETE}"
_ADDING = {_FASTAPI: 1.2, BARE: 0.95}
_WEEK = {
    f"{PEERS[server]}{form}": target
    for server, target in (("fastapi", 1.5), ("nest", 2.0))
    for form in ("", f": {SAME_RESPONSE}")
}
KINDS = {
    "list": Kind("GET customers, page of 50", "GET", {PEERS["fastapi"]: 2.5, PEERS["nest"]: 3.0}),
    "week": Kind("GET calendar week", "GET", _WEEK, has_presented=True),
    "attention": Kind("GET attention, page of 20", "GET"),
    "events": Kind("GET events, page of 100", "GET"),
    "create": Kind("POST customer", "POST", {BARE: 0.8}, writes=True),
    "item": Kind("POST witem", "POST", _ADDING, writes=True),
    "log": Kind("PUT log", "PUT", _ADDING, writes=True),
    "copy": Kind("POST schedule/copy, a week", "POST", writes=True, factor=4),
    "mcp": Kind("MCP list_customers, 50", "POST", headers=mcp_calls.headers_of("list_customers")),
    "mcp-log": Kind(
        "MCP log_workout, 4 sets",
        "POST",
        writes=True,
        headers=mcp_calls.headers_of("log_workout"),
        expects='"text":"Logged ',
        once=True,
    ),
}
SDK = {"mcp": Arm("MCP SDK, low-level server", "mcp"), "mcp-log": Arm(f"MCP SDK, low-level server: {COMPLETE}", "mcp")}


def arms_of(kind: str) -> list[Arm]:
    """The arms that a kind of request is sent to: the service, each peer, and each peer twice for writes and weeks."""
    arms = [Arm(SERVICE, "service")]
    if kind in SDK:
        return [*arms, SDK[kind]]
    for server, name in PEERS.items():
        if KINDS[kind].writes:
            arms += [Arm(f"{name}: {ALONE}", server), Arm(f"{name}: {COMPLETE}", server, LOGGED)]
        else:
            arms.append(Arm(name, server))
        if KINDS[kind].has_presented:
            arms.append(Arm(f"{name}: {SAME_RESPONSE}", server, PRESENTED))
    return arms
