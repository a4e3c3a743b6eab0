"""A REST client for tests, which checks every response against the declaration of its route."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import aiohttp
import jsonschema_rs
import orjson
from aiohttp.test_utils import BaseTestServer

from coaching_service import features
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import Route, routes_of
from coaching_service.core.ids import ObjectId
from coaching_service.documentation.openapi import describe
from coaching_service.people.sessions import service as sessions
from tests.support.service_process import until

MONDAY, TUESDAY, SUNDAY = "2026-03-02", "2026-03-03", "2026-03-08"
UNKNOWN = "0123456789abcdef01234567"


@dataclass
class Reply:
    """A response: status, headers, and its JSON (or None)."""

    status: int
    headers: Any
    json: Any
    raw: bytes

    def ok(self, status: int = 200) -> Any:
        """Assert the status and return the JSON."""
        assert self.status == status, f"{self.status}: {self.raw[:500]!r}"
        return self.json

    def refused(self, status: int, *words: str) -> Any:
        """Assert that the request is refused with this status and all these words, and return the error body."""
        assert self.status == status, f"{self.status}: {self.raw[:500]!r}"
        for word in words:
            assert word in str(self.json["message"]), f"{word!r} is not in {self.json['message']!r}"
        return self.json


class CoachClient:
    """Sends REST requests with one credential. `checks`: compare every response with the declaration of its route."""

    checks = True

    def __init__(
        self, server: BaseTestServer, key: str | None, ctx: Context | None, *, bearer: str | None = None
    ) -> None:
        self.key, self._ctx, self._server = key, ctx, server
        self._headers = {"X-API-Key": key} if key else {}
        if bearer:
            self._headers["Authorization"] = f"Bearer {bearer}"
        self._http = aiohttp.ClientSession(base_url=server.make_url("/"))
        self._others: list[CoachClient] = []

    async def interactive(self) -> CoachClient:
        """Return a client with a session of the same coach."""
        return self.with_bearer((await sessions.create_session(self.ctx, self.ctx.caller.id, "coach"))["accessToken"])

    async def as_client(self, customer: dict[str, Any]) -> CoachClient:
        """Return a client with a session of a client of the company."""
        tokens = await sessions.create_session(self.ctx, ObjectId(customer["_id"]), "customer")
        return self.with_bearer(tokens["accessToken"])

    def with_bearer(self, bearer: str) -> CoachClient:
        """Return a client that sends only this bearer token; it is closed with this client."""
        self._others.append(CoachClient(self._server, None, self._ctx, bearer=bearer))
        return self._others[-1]

    def with_key(self, key: str) -> CoachClient:
        """Return a client that sends only this API key; it is closed with this client."""
        self._others.append(CoachClient(self._server, key, self._ctx))
        return self._others[-1]

    @property
    def headers(self) -> dict[str, str]:
        """The headers with the credential."""
        return dict(self._headers)

    @property
    def ctx(self) -> Context:
        """The context of the same coach, for calling services and reading the database."""
        assert self._ctx is not None
        return self._ctx

    async def close(self) -> None:
        """Close the connections."""
        for other in self._others:
            await other.close()
        await self._http.close()

    def address(self, path: str) -> str:
        """Return the URL of a path of the service."""
        return str(self._server.make_url(path))

    async def send(
        self, method: str, path: str, *, headers: dict[str, str] | None = None, dry: bool = False, **options: Any
    ) -> Reply:
        """Send a request; the response is checked against the declaration of its route, unless `checks` is off.

        `dry`: a multipart body asks for a dry run.
        """
        sent = self._headers | (headers or {})
        async with self._http.request(method, path, headers=sent, **options) as response:
            raw = await response.read()
            is_json = response.content_type == "application/json"
            reply = Reply(response.status, response.headers, orjson.loads(raw) if is_json and raw else None, raw)
        selects = "fields" in dict(options.get("params") or ())  # the other fields are absent
        if self.checks and not (selects and reply.status == 200):
            body = options.get("json")
            check_answer(
                method,
                path.partition("?")[0],
                reply,
                dry=dry or (isinstance(body, dict) and body.get("dryRun") is True),
            )
        return reply

    async def get(self, path: str, **query: Any) -> Reply:
        """Read."""
        return await self.send("GET", path, params=_spelled(query))

    async def post(self, path: str, body: Any = None, **options: Any) -> Reply:
        """Create or act."""
        return await self.send("POST", path, json=body or {}, **options)

    async def put(self, path: str, body: Any = None, **options: Any) -> Reply:
        """Set."""
        return await self.send("PUT", path, json=body or {}, **options)

    async def patch(self, path: str, body: Any, **options: Any) -> Reply:
        """Change."""
        return await self.send("PATCH", path, json=body, **options)

    async def delete(self, path: str, **options: Any) -> Reply:
        """Remove."""
        return await self.send("DELETE", path, **options)

    # --- common requests -----------------------------------------------------------------------------------------

    async def undo(self, change: Reply) -> Reply:
        """Undo what a request has changed."""
        return await self.post(f"/coach/changes/{change.headers['X-Change-Id']}/undo")

    async def create_customer(self, name: str = "Ana", **fields: Any) -> dict[str, Any]:
        """Create a client."""
        created: dict[str, Any] = (await self.post("/coach/customers", {"name": name, **fields})).ok(201)
        return created

    async def create_customers(self, *names: str, **fields: Any) -> list[str]:
        """Create many clients with one request; returns their identifiers."""
        body = {"customers": [{"name": name, **fields} for name in names]}
        results = (await self.post("/coach/customers/batch", body)).ok()["results"]
        return [each["_id"] for each in results]

    async def customers(self, **query: Any) -> dict[str, Any]:
        """Return a page of clients; by default the first 50 active ones."""
        document: dict[str, Any] = (
            await self.get("/coach/customers", **{"archived": "false", "pageSize": 50, "pageNum": 1, **query})
        ).ok()
        return document

    async def names(self, **query: Any) -> list[str]:
        """Return the names on a page of clients."""
        return [customer["name"] for customer in (await self.customers(**query))["docs"]]

    async def create_exercise(self, name: str = "Squat", **fields: Any) -> dict[str, Any]:
        """Create an exercise of the company."""
        created: dict[str, Any] = (await self.post("/exercises", {"name": name, **fields})).ok(201)
        return created

    async def schedule(self, customer: dict[str, Any], date: str = MONDAY, name: str = "Legs") -> dict[str, Any]:
        """Create a block on a client's calendar."""
        path = f"/coach/customers/{customer['_id']}/wblocks"
        created: dict[str, Any] = (await self.post(path, {"name": name, "date": date})).ok(201)
        return created

    async def calendar(self, customer: dict[str, Any], start: str = MONDAY, end: str = SUNDAY) -> list[dict[str, Any]]:
        """Return a client's blocks of a week."""
        path = f"/coach/customers/{customer['_id']}/wblock"
        documents: list[dict[str, Any]] = (await self.get(path, startDate=start, endDate=end)).ok()
        return documents

    async def wait_until_numbered(self, change_id: str) -> None:
        """Wait until a change, and with it those before it, are in the lists of changes."""

        async def is_numbered() -> bool:
            return (await self.get(f"/coach/changes/{change_id}")).status == 200

        await until(is_numbered, f"change {change_id} is numbered")


def _spelled(query: dict[str, Any]) -> list[tuple[str, str]]:
    pairs = []
    for name, value in query.items():
        pairs += [(name, str(each)) for each in (value if isinstance(value, list) else [value])]
    return pairs


# --- the check of every response against the published document ----------------------------------------------------


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document the service publishes."""
    return describe(routes_of(features.ROUTES), features.TAGS, "http://coaching.test", features.WEBHOOKS())


@cache
def _closed_schemas() -> dict[str, Any]:
    """The response schemas, closed: a field that is not documented fails the test."""
    closed = {}
    for name, schema in document()["components"]["schemas"].items():
        closed[name] = {**schema, "additionalProperties": False} if "properties" in schema else schema
    return closed


def components_of(schema: Any) -> set[str]:
    """The names of the component schemas that a schema needs: a validator with all of them takes 8 ms to build."""
    needed: set[str] = set()
    named = _named_in(schema)
    while named:
        needed |= named
        named = set().union(*(_named_in_component(name) for name in named)) - needed
    return needed


def _named_in(schema: Any) -> set[str]:
    return {name.decode() for name in re.findall(rb'"#/components/schemas/(\w+)"', orjson.dumps(schema))}


@cache
def _named_in_component(name: str) -> set[str]:
    return _named_in(document()["components"]["schemas"][name])


@cache
def _validator(operation: str, status: str) -> jsonschema_rs.Draft202012Validator | None:
    for methods in document()["paths"].values():
        for declared in methods.values():
            if declared["operationId"] == operation:
                answer = declared["responses"][status]
                schema = answer.get("content", {}).get("application/json", {}).get("schema")
                if schema is None:
                    return None
                closed = {name: _closed_schemas()[name] for name in components_of(schema)}
                complete_schema = {**schema, "components": {"schemas": closed}}
                return jsonschema_rs.Draft202012Validator(complete_schema, validate_formats=True)
    raise AssertionError(operation)


def route_of(method: str, path: str) -> Route | None:
    """The declared route that serves a path."""
    parts = path.strip("/").split("/")
    matching = [
        route
        for declared, route in _routes_by_shape().get((method, len(parts)), ())
        if all(d.startswith("{") or d == p for d, p in zip(declared, parts, strict=True))
    ]
    return min(matching, key=lambda route: route.path.count("{")) if matching else None


@cache
def _routes_by_shape() -> dict[tuple[str, int], list[tuple[list[str], Route]]]:
    """The routes with the parts of their paths, by method and number of parts."""
    routes: dict[tuple[str, int], list[tuple[list[str], Route]]] = {}
    for route in routes_of(features.ROUTES):
        declared = route.path.strip("/").split("/")
        routes.setdefault((route.method, len(declared)), []).append((declared, route))
    return routes


@cache
def _listed_codes() -> frozenset[str]:
    reference = Path(__file__).parents[2] / "docs" / "errors.md"
    return frozenset(re.findall(r"\| `([A-Z0-9_]+)` \|", reference.read_text("utf-8")))


def check_error(reply: Reply) -> None:
    """Assert that an error has one of the declared shapes, and that docs/errors.md lists its codes."""
    if reply.json is None:
        return
    assert "message" in reply.json, reply.raw
    codes = {each["code"] for each in reply.json.get("errors", ())} | ({reply.json.get("code")} - {None})
    assert codes <= _listed_codes(), f"docs/errors.md does not list {codes - _listed_codes()}"
    if "code" not in reply.json:
        assert reply.status in (401, 500, 501) or "string is expected" in reply.json["message"], reply.raw


def check_answer(method: str, path: str, reply: Reply, *, dry: bool = False) -> None:
    """Assert that a successful response matches its declaration, and an error has one of the declared shapes.

    `dry`: of a dry run, in whose response new records have null as identifier.
    """
    assert "X-Request-Id" in reply.headers
    route = route_of(method, path)
    if reply.status >= 400:
        check_error(reply)
        return
    if route is None or route.returns is bytes:
        return
    assert (
        reply.status == route.status
        or (reply.status == 200 and dry)
        or (reply.status in (200, 201) and route.upserts)
        or (reply.status == 202 and route.resumable)
    )
    if route.returns is None:
        assert reply.raw == b""
    elif (validator := _validator(route.operation_id, str(reply.status))) is not None:
        validator.validate(_with_identifiers(reply.json) if dry else reply.json)


def _with_identifiers(value: Any) -> Any:
    """The response to a dry run with an identifier for each record that would be new."""
    if isinstance(value, list):
        return [_with_identifiers(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    return {
        name: UNKNOWN if name == "_id" and each is None else _with_identifiers(each) for name, each in value.items()
    }
