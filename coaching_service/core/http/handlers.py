"""Turns a declared route into an aiohttp handler: authenticate, validate, call the service, send the response."""

from __future__ import annotations

import re
import time
from collections.abc import Hashable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, closing, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler as AiohttpHandler
from marshmallow import Schema

from coaching_service.core.accepted import Accepted
from coaching_service.core.auth.access import check_access
from coaching_service.core.auth.principal import Principal
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.request_slot import RequestSlot, schedule_key
from coaching_service.core.database.worker_thread import on_worker_thread
from coaching_service.core.external_identity import Upserted
from coaching_service.core.http.deprecation import deprecation_headers, mark_deprecated
from coaching_service.core.http.downloads import (
    Download,
    read_while_allowed,
    read_with_limit,
    send_download,
)
from coaching_service.core.http.dry_runs import (
    is_dry_run,
    reject_dry_run,
    reject_in_body,
    rolling_back,
    without_dry_run,
)
from coaching_service.core.http.interruption import interruptible
from coaching_service.core.http.middleware import PRINCIPAL, REQUEST_ID
from coaching_service.core.http.preconditions import add_version_tag, find_version_read, with_conditions
from coaching_service.core.http.request_limits import Authenticate, RequestLimits
from coaching_service.core.http.request_parsing import (
    is_disconnected,
    network_address,
    path_identifiers,
    read_json,
    read_query,
    validate_body,
)
from coaching_service.core.http.responses import format_datetime, to_json
from coaching_service.core.http.routes import Handler, MultipartBody, RequestClass, Route
from coaching_service.core.http.strictness import (
    IS_STRICT,
    PREFERS_JOB,
    STRICT,
    prefers_job,
    prefers_strict,
    reject_unknown_fields,
    reject_unknown_names,
    reject_unknown_parameters,
)
from coaching_service.core.http.uploads import attach_files, read_upload, store_upload
from coaching_service.core.idempotency import Claim, KeyNotSupported, StoredResponse, run_in_steps, run_once
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import AS_OF_HEADER, as_of
from coaching_service.core.media import UploadLimits
from coaching_service.core.slots import RequestSlots

_JSON = "application/json; charset=utf-8"
_IDEMPOTENCY_KEY = "Idempotency-Key"


@dataclass(frozen=True)
class HandlerDependencies:
    """Dependencies shared by all handlers.

    The slots, which companies share, limit how many requests use the database at once (`database_slots`), how many
    long-running ones run at once (`bulk_slots`), and how many downloads read at once (`download_slots`). `proxies`:
    number of our own reverse proxies in front of the service. `request_limits` counts the requests of each session of
    the web application; `authenticate` counts requests of REST.
    """

    services: Services
    authenticate: Authenticate
    database_slots: RequestSlots
    bulk_slots: RequestSlots
    download_slots: RequestSlots
    body_limit: int
    proxies: int = 0
    limits: UploadLimits = field(default_factory=UploadLimits)
    request_limits: RequestLimits | None = None

    def limiter(
        self, request_class: RequestClass, ctx: Context, waited: float = 0.0, *, schedule: Hashable | None = None
    ) -> AbstractAsyncContextManager[None]:
        """Return the context to run a request of this class in, which has waited for `waited` seconds before.

        `schedule`: see RequestSlot.
        """
        if request_class in ("held", "unlimited"):
            return nullcontext()
        slots = self.bulk_slots if request_class == "bulk" else self.database_slots
        return RequestSlot(slots, ctx, waited, schedule=schedule)

    async def send(
        self, request: web.Request, ctx: Context, download: Download, headers: dict[str, str]
    ) -> web.StreamResponse:
        """Send a download. Of exports, each company may receive a few at once, one piece after another."""
        company, work_slots = ctx.slot_holder, self.services.work_slots
        download = read_while_allowed(download, ctx.load_caller)
        if not download.is_export:
            limited = read_with_limit(download, partial(self.download_slots.holding, company))
            return await send_download(request, limited, headers)
        async with work_slots.exports.holding(company):
            limited = read_with_limit(download, partial(work_slots.pieces.paced, company))
            return await send_download(request, limited, headers)


def mount(app: web.Application, routes: Iterable[Route], dependencies: HandlerDependencies) -> None:
    """Add `routes` to `app`."""
    declared = list(routes)
    by_path: dict[str, list[Route]] = {}
    for route in declared:
        by_path.setdefault(route.path, []).append(route)
    for path in sorted(by_path, key=_parameter_positions):
        pattern = re.sub(r"{(\w+)}", r"{\1:[^/]+}", path)  # aiohttp's own pattern does not match braces
        for route in by_path[path]:
            handler = interruptible(
                dependencies.services, make_handler(route, dependencies, find_version_read(route, declared))
            )
            if route.method == "GET":
                app.router.add_get(pattern, handler)  # also answers HEAD
            else:
                app.router.add_route(route.method, pattern, handler)
        app.router.add_route("*", pattern, _method_not_allowed({route.method for route in by_path[path]}))


def _parameter_positions(path: str) -> list[bool]:
    """Return the sort key with which a literal path precedes one that has a parameter in the same place."""
    return [segment.startswith("{") for segment in path.split("/")]


def _method_not_allowed(methods: set[str]) -> AiohttpHandler:
    """Return a handler that rejects other methods, also where a path with a parameter would match."""
    allowed = sorted(methods | {"HEAD"} if "GET" in methods else methods)

    async def handle(request: web.Request) -> web.StreamResponse:
        raise web.HTTPMethodNotAllowed(request.method, allowed)

    return handle


def make_handler(route: Route, dependencies: HandlerDependencies, version_read: Route | None = None) -> AiohttpHandler:
    """Return the aiohttp handler of one declared route. `version_read`: see `find_version_read`."""
    query = route.query if isinstance(route.query, Schema) else None

    async def handle(request: web.Request) -> web.StreamResponse:
        principal, started = None, time.monotonic()
        mark_deprecated(request, route.deprecated)
        if route.access.audience != "public":
            principal = request[PRINCIPAL] = await dependencies.authenticate(dependencies.services, request)
        waited = time.monotonic() - started
        _check(route, request, principal, dependencies.services)
        ctx = _make_context(route, request, principal, dependencies)
        arguments: dict[str, Any] = dict(path_identifiers(route, request))
        is_strict = request[IS_STRICT] = prefers_strict(request)
        if is_strict:
            reject_unknown_parameters(query, request)
        if query is not None:
            arguments["query"] = read_query(query, request)
        await reject_dry_run(route, request, dependencies.body_limit)
        limit, optional = dependencies.body_limit, route.body_optional
        json_body = None if route.body is None else await read_json(ctx, request, limit, optional=optional)
        reject_in_body(route, json_body)
        conditional = with_conditions(route, version_read, request, {} if json_body is None else json_body)
        if route.body is not None:
            arguments["body"] = validate_body(route.body, json_body)
            if is_strict or route.rejects_unknown_fields:
                reject_unknown_fields(route.body, json_body, arguments["body"])
        if route.multipart is not None:
            async with dependencies.services.work_slots.uploads.holding(ctx.slot_holder):
                uploaded = await _handle_upload(
                    route, version_read, route.multipart, request, ctx, arguments, dependencies
                )
            return _with_headers(uploaded, ctx)
        read_as_of = as_of()
        async with dependencies.limiter(route.request_class, ctx, waited, schedule=_schedule(route, ctx, arguments)):
            response: Download | web.StreamResponse = await _call(
                conditional, request, await ctx.after_waiting(), arguments, json_body
            )
        if isinstance(response, Download):
            headers = {"X-Request-Id": ctx.request_id} | ({"Preference-Applied": STRICT} if is_strict else {})
            return await dependencies.send(request, ctx, response, headers | deprecation_headers(request))
        return _with_headers(response, ctx, read_as_of if route.reports_as_of else None)

    return handle


def _make_context(
    route: Route, request: web.Request, principal: Principal | None, dependencies: HandlerDependencies
) -> Context:
    request[PREFERS_JOB] = route.may_be_job and prefers_job(request)
    ctx = Context(
        dependencies.services,
        principal,
        request_id=request[REQUEST_ID],
        network_address=network_address(request, dependencies.proxies),
        is_disconnected=partial(is_disconnected, request),
        operation=route.operation_id,
        prefers_job=request[PREFERS_JOB],
    )
    if route.access.audience != "public":
        ctx = replace(ctx, load_caller=partial(_load_caller, route, request, dependencies))
    if route.request_class == "held":
        return replace(ctx, turn=partial(dependencies.database_slots.holding, ctx.slot_holder))
    return ctx


async def _load_caller(route: Route, request: web.Request, dependencies: HandlerDependencies) -> Principal:
    principal = request[PRINCIPAL] = await dependencies.authenticate(dependencies.services, request)
    check_access(route.access, principal, writes=route.writes)
    return principal


def _check(route: Route, request: web.Request, principal: Principal | None, services: Services) -> None:
    """Raise the error of a request that may not be served, whatever its body: of `check_access`, StorageFull, and
    KeyNotSupported if it has an `Idempotency-Key` that the operation refuses."""
    check_access(route.access, principal, writes=route.writes)
    if route.stores:
        services.disk_space.require()
    if route.refuses_key and _IDEMPOTENCY_KEY in request.headers:
        raise KeyNotSupported


def _with_headers(response: web.StreamResponse, ctx: Context, read_as_of: datetime | None = None) -> web.StreamResponse:
    """Adds the headers that name the change, or the batch, with which the request changed coaching data, and the time
    (UTC) since which the changes have to be read next time."""
    if read_as_of is not None:
        response.headers[AS_OF_HEADER] = format_datetime(read_as_of)
    if ctx.change_ids:
        response.headers["X-Change-Id"] = str(ctx.change_ids[0])
    return response


async def _handle_upload(
    route: Route,
    version_read: Route | None,
    multipart: MultipartBody,
    request: web.Request,
    ctx: Context,
    arguments: dict[str, Any],
    dependencies: HandlerDependencies,
) -> web.StreamResponse:
    """Store the file first, then call the handler, whose transaction attaches the file to its record."""
    limits = dependencies.limits
    with closing(await read_upload(ctx, request, multipart, limits.max_bytes(multipart.size_limit))) as upload:
        reject_in_body(route, upload.other_names)
        if request[IS_STRICT]:
            reject_unknown_names(upload.other_names)
        if multipart.text_fields:
            arguments["body"] = validate_body(multipart.schema, upload.texts)
        route = with_conditions(route, version_read, request, arguments.get("body", {}))
        customer_id = _customer_id(route, ctx, arguments)
        async with store_upload(ctx, upload, multipart, customer_id, limits.photo_pixels) as file:
            arguments["file"] = file
            async with dependencies.limiter(route.request_class, ctx, schedule=_schedule(route, ctx, arguments)):
                ctx = await ctx.with_current_caller()  # sending the file may have taken long
                attaching = replace(route, handler=attach_files(route.handler, file))
                response: web.StreamResponse = await _call(attaching, request, ctx, arguments, upload.fingerprint)
    return response


async def _call(route: Route, request: web.Request, ctx: Context, arguments: dict[str, Any], body: Any) -> Any:
    """Call the handler, at most once per `Idempotency-Key`. `body` identifies the request body."""
    key = request.headers.get(_IDEMPOTENCY_KEY) if route.idempotent else None
    dry = is_dry_run(route, arguments)
    if route.rolls_back:
        arguments = {**arguments, "body": without_dry_run(arguments["body"])}
    if dry:
        handler = rolling_back(route.handler, arguments) if route.rolls_back else route.handler
        route, key = replace(route, status=200 if route.status == 201 else route.status, handler=handler), None
    if key is None and route.on_worker_thread:
        return _json_response(route.status, await _call_on_worker_thread(ctx, route.handler, arguments))
    if key is None:
        result = await route.handler(ctx, **arguments, **({"claim": None} if route.resumable else {}))
        return _response(route, result)
    return await _call_once(route, ctx, arguments, body, key)


async def _call_once(route: Route, ctx: Context, arguments: dict[str, Any], body: Any, key: str) -> web.Response:
    """Call the handler unless a request with the same key has; the response to a repetition has the same headers."""
    identifiers = [str(arguments[name]) for _, name in route.path_parameters]
    if route.access.audience == "customer":  # the path is the same for all clients
        identifiers.append(str(ctx.caller.id))
    claim = Claim.of(ctx, key, route.method, "/".join([route.path, *identifiers]), body)
    if route.resumable:
        arguments["claim"] = claim

    async def work(tx: Context) -> tuple[StoredResponse, ObjectId | None]:
        result = await route.handler(tx, **arguments)
        created_id = result.get("_id") if isinstance(result, dict) else None
        if isinstance(result, Accepted):
            return StoredResponse(202, to_json(result.to_response())), None
        return StoredResponse(route.status, to_json(result)), created_id

    customer_id = _customer_id(route, ctx, arguments)
    response = await (run_in_steps(ctx, claim, work) if route.resumable else run_once(ctx, claim, customer_id, work))
    headers = {"Idempotent-Replayed": "true"} if response.replayed else {}
    if response.replayed and response.change_id is not None:
        ctx.change_ids.append(response.change_id)
    answer = _json_response(response.status, response.body, headers)
    if route.is_versioned:
        add_version_tag(answer, orjson.loads(response.body)["version"])
    return answer


def _customer_id(route: Route, ctx: Context, arguments: dict[str, Any]) -> ObjectId | None:
    """Return the client that a request is about: in the path, in the body, or the caller."""
    if route.access.audience == "customer":
        return ctx.caller.id
    body = arguments.get("body")
    in_body = body.get("customerId") if isinstance(body, dict) else None
    return arguments.get("customer_id") or in_body


def _schedule(route: Route, ctx: Context, arguments: Mapping[str, Any]) -> Hashable | None:
    """Return the key of the schedule that a request changes, if it changes one."""
    if not route.writes:
        return None
    body = arguments.get("body")
    return schedule_key(ctx, arguments, body if isinstance(body, dict) else {})


def _response(route: Route, result: Any) -> Any:
    if isinstance(result, Download):
        return result
    status = route.status
    if isinstance(result, Accepted):
        status, result = 202, result.to_response()
    if isinstance(result, Upserted):
        status, result = 201 if result.created else 200, result.record
    if status == 204:
        return web.Response(status=204)
    response = _json_response(status, to_json(result))
    if route.is_versioned and isinstance(result, Mapping) and result.get("_id") is not None:
        add_version_tag(response, result["version"])
    return response


@on_worker_thread
async def _call_on_worker_thread(ctx: Context, handler: Handler, arguments: dict[str, Any]) -> bytes:
    """Call a handler that awaits nothing but the database, and return its result as JSON.

    One thread reads, encodes and frees the documents, which takes less time than encoding them on the event loop.
    """
    return to_json(await handler(ctx, **arguments))


def _json_response(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(body=body, status=status, headers={"Content-Type": _JSON, **(headers or {})})
