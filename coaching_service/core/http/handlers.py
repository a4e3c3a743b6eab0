"""From a declaration to an aiohttp handler: who, what, then the domain function, then the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from aiohttp import web
from marshmallow import Schema

from coaching_service.core.auth.access import check
from coaching_service.core.auth.principal import Principal
from coaching_service.core.database.context import Context, Services
from coaching_service.core.http.downloads import Stream, in_turns, send
from coaching_service.core.http.middleware import PRINCIPAL, REQUEST_ID
from coaching_service.core.http.request_parsing import (
    is_disconnected,
    network_address,
    path_identifiers,
    read_json,
    read_query,
    validate_body,
)
from coaching_service.core.http.responses import to_json
from coaching_service.core.http.routes import Form, Lane, Route
from coaching_service.core.http.uploads import keeping, read_upload, stored
from coaching_service.core.idempotency import Claim, StoredResponse, in_steps, once
from coaching_service.core.ids import ObjectId

Authenticate = Callable[[Services, web.Request], Awaitable[Principal]]
AiohttpHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_JSON = "application/json; charset=utf-8"


@dataclass(frozen=True)
class UploadLimits:
    """How large files may be: bytes of a photo and of a plan, pixels of a photo."""

    photo_bytes: int = 15_000_000
    plan_bytes: int = 25_000_000
    photo_pixels: int = 40_000_000

    def bytes_of(self, form: Form) -> int:
        """How many bytes the file of a form may have."""
        return self.plan_bytes if form.plan else self.photo_bytes


@dataclass(frozen=True)
class Server:
    """What every handler is served with: `gate` bounds how many work on the database at once, `slow_gate` how many of
    those that take long, `stream_gate` how many read a piece of a download; `proxies` of ours stand between the caller
    and the service."""

    services: Services
    authenticate: Authenticate
    gate: asyncio.Semaphore
    slow_gate: asyncio.Semaphore
    stream_gate: asyncio.Semaphore
    body_limit: int
    proxies: int = 0
    limits: UploadLimits = UploadLimits()

    def lane(self, lane: Lane) -> AbstractAsyncContextManager[None]:
        """The line a request stands in while it works."""
        if lane == "own":
            return nullcontext()
        return self.slow_gate if lane == "long" else self.gate


def mount(app: web.Application, routes: Iterable[Route], server: Server) -> None:
    """Serve `routes` on `app`."""
    declared = list(routes)
    for route in declared:
        handler = handler_of(route, server)
        if route.method == "GET":
            app.router.add_get(route.path, handler)  # answers HEAD too
        else:
            app.router.add_route(route.method, route.path, handler)

    for path in {route.path for route in declared if not route.path_parameters}:
        methods = {route.method for route in declared if route.path == path}
        app.router.add_route("*", path, _not_allowed(methods))


def _not_allowed(methods: set[str]) -> AiohttpHandler:
    """Refuses other methods on a fixed path, which would otherwise be taken for an identifier's place."""
    allowed = sorted(methods | {"HEAD"} if "GET" in methods else methods)

    async def refuse(request: web.Request) -> web.StreamResponse:
        raise web.HTTPMethodNotAllowed(request.method, allowed)

    return refuse


def handler_of(route: Route, server: Server) -> AiohttpHandler:
    """The aiohttp handler of one declared route."""
    query = route.query if isinstance(route.query, Schema) else None

    async def handle(request: web.Request) -> web.StreamResponse:
        principal = None
        if route.access.audience != "public":
            principal = request[PRINCIPAL] = await server.authenticate(server.services, request)
        check(route.access, principal, writes=route.writes)
        ctx = Context(
            server.services,
            principal,
            request_id=request[REQUEST_ID],
            network_address=network_address(request, server.proxies),
            is_disconnected=partial(is_disconnected, request),
        )
        arguments: dict[str, Any] = dict(path_identifiers(route, request))
        if query is not None:
            arguments["query"] = read_query(query, request)
        raw = None
        if route.body is not None:
            raw = await read_json(request, route.body_limit or server.body_limit, optional=route.body_optional)
            arguments["body"] = validate_body(route.body, raw)
        if route.form is not None:
            return await _with_upload(route, route.form, request, ctx, arguments, server)
        async with server.lane(route.lane):
            result: Stream | web.StreamResponse = await _answer(route, request, ctx, arguments, raw)
        if isinstance(result, Stream):
            return await send(request, in_turns(result, server.stream_gate), {"X-Request-Id": ctx.request_id})
        return result

    return handle


async def _with_upload(
    route: Route, form: Form, request: web.Request, ctx: Context, arguments: dict[str, Any], server: Server
) -> web.StreamResponse:
    """Bytes first, then the record that names them, which keeps them in its own transaction."""
    limit = server.limits.bytes_of(form)
    with closing(await read_upload(request, form.file, form.texts, limit)) as upload:
        arguments["body"] = validate_body(form.schema, upload.texts)
        async with stored(ctx, upload, form, arguments["customer_id"], server.limits.photo_pixels) as file:
            arguments["file"] = file
            async with server.lane(route.lane):
                kept = replace(route, handler=keeping(route.handler, file))
                answer: web.StreamResponse = await _answer(kept, request, ctx, arguments, upload.sent)
    return answer


async def _answer(route: Route, request: web.Request, ctx: Context, arguments: dict[str, Any], raw: Any) -> Any:
    key = request.headers.get("Idempotency-Key") if route.idempotent else None
    if key is None:
        result = await route.handler(ctx, **arguments, **({"claim": None} if route.stepwise else {}))
        return _response(route, result)
    identifiers = [str(arguments[name]) for _, name in route.path_parameters]
    claim = Claim.of(ctx, key, route.method, "/".join([route.path, *identifiers]), raw)
    if route.stepwise:
        arguments["claim"] = claim

    async def work(tx: Context) -> tuple[StoredResponse, ObjectId | None]:
        result = await route.handler(tx, **arguments)
        about = result.get("_id") if isinstance(result, dict) else None
        return StoredResponse(route.status, to_json(result)), about

    body = arguments.get("body")
    named = arguments.get("customer_id") or (body.get("customerId") if isinstance(body, dict) else None)
    kept = await (in_steps(ctx, claim, work) if route.stepwise else once(ctx, claim, named, work))
    headers = {"Idempotent-Replayed": "true"} if kept.replayed else {}
    return web.Response(body=kept.body, status=kept.status, headers={"Content-Type": _JSON, **headers})


def _response(route: Route, result: Any) -> Any:
    if isinstance(result, Stream):
        return result
    if route.status == 204:
        return web.Response(status=204)
    return web.Response(body=to_json(result), status=route.status, headers={"Content-Type": _JSON})
