"""Turns a declared route into an aiohttp handler: authenticate, validate, call the service, send the response."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Mapping, MutableMapping, Sequence
from contextlib import AbstractAsyncContextManager, closing, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

import orjson
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler as AiohttpHandler
from marshmallow import Schema

from coaching_service.core import audit, errors, idempotency
from coaching_service.core.auth import Principal, check_access, for_operation
from coaching_service.core.budgets import Budget
from coaching_service.core.database import context, outcome
from coaching_service.core.database.connection import Interruption
from coaching_service.core.database.context import Context
from coaching_service.core.database.worker_thread import on_worker_thread
from coaching_service.core.events import Accepted
from coaching_service.core.external_identity import Upserted
from coaching_service.core.http import request_parsing, responses
from coaching_service.core.http import routes as http_routes
from coaching_service.core.http.request_parsing import attach_files, read_upload, store_upload
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import AS_OF_HEADER, as_of
from coaching_service.core.media import UploadLimits
from coaching_service.core.rate_limits import RateLimitExceeded, TokenBuckets
from coaching_service.core.slots import RequestSlots

REQUEST_ID = web.RequestKey("request_id", str)
PRINCIPAL = web.RequestKey("principal", Principal)
READS = frozenset({"GET", "HEAD", "OPTIONS"})  # what changes nothing


# --- What ends a request: a database that does not respond (see DatabaseMonitor), and its budget of processor time ----


BUDGET = web.RequestKey("budget", Budget)
_INTERRUPTION = web.RequestKey("interruption", Interruption)


def interrupting(services: context.Services, request: web.Request) -> Interruption:
    """Return a context that raises Unavailable when the database is lost, unless the response has begun by then."""
    interruption = request[_INTERRUPTION] = services.monitor.interrupting()
    return interruption


def interruptible(services: context.Services, handler: AiohttpHandler) -> AiohttpHandler:
    """Return the aiohttp handler that runs `handler` in `interrupting`."""

    async def handle(request: web.Request) -> web.StreamResponse:
        async with interrupting(services, request):
            return await handler(request)

    return handle


async def end_interruption(request: web.Request, _: web.StreamResponse) -> None:
    """Handle `on_response_prepare`: a response that has begun cannot become a 503."""
    if (budget := request.get(BUDGET)) is not None:
        budget.end()
    if (interruption := request.get(_INTERRUPTION)) is not None:
        interruption.end()


def reported(request: web.Request, error: errors.ServiceError) -> errors.ServiceError:
    """Return the error to report: OutcomeUnknown if the request may have changed something."""
    return error if request.method in READS else outcome.reported(error)


# --- Request limits ---------------------------------------------------------------------------------------------------
# The limit of requests for each API key, session and grant (RATE_LIMIT_PER_MINUTE), and the headers that report it.
#
# The headers follow draft-ietf-httpapi-ratelimit-headers-10.


Authenticate = Callable[[context.Services, web.Request], Awaitable[Principal]]

_STATE = web.RequestKey("rate_limit", str)


class RequestLimits:
    """Counts the requests of each credential: `per_minute` at once, and as many a minute in the long run."""

    def __init__(self, services: context.Services, per_minute: int) -> None:
        self._buckets = TokenBuckets(services, per_minute)
        self._exceeded = services.metrics.rate_limited.labels("requests")
        self._policy = f'"requests";q={per_minute};w=60'

    def applied_to(self, authenticate: Authenticate) -> Authenticate:
        """Authentication that also counts the request, the first time. It raises RateLimitExceeded as well."""

        async def authenticate_and_count(services: context.Services, request: web.Request) -> Principal:
            principal = request[PRINCIPAL] = await authenticate(services, request)
            if _STATE not in request:
                await self.count(request, principal)
            return principal

        return authenticate_and_count

    async def count(self, request: web.Request, principal: Principal) -> None:
        """Count a request of this credential. Raises RateLimitExceeded."""
        try:
            remaining = await self._buckets.take(principal.credential_id)
        except RateLimitExceeded as error:
            request[_STATE] = f'"requests";r=0;t={error.seconds}'
            self._exceeded.inc()
            raise
        request[_STATE] = f'"requests";r={remaining};t={self._buckets.seconds_per_token}'

    async def add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        """Handle `on_response_prepare`: report the limit to callers whose request was counted."""
        if (state := request.get(_STATE)) is not None:
            response.headers["RateLimit-Policy"] = self._policy
            response.headers["RateLimit"] = state


# --- Dry runs ---------------------------------------------------------------------------------------------------------
# Dry runs: what an operation would do, while nothing is written. Where it is not supported, `dryRun` is an error.


DRY_RUN = "dryRun"


async def reject_dry_run(route: http_routes.Route, request: web.Request, limit: int) -> None:
    """Raise InvalidFields if the query of a write, or a body that it does not read, has `dryRun`.

    `limit`: bytes of the body, which may be of any content type. Bodies that it reads are checked by `reject_in_body`.
    """
    if route.method == "GET":
        return
    if DRY_RUN in request.query:
        raise _not_supported("is a field of the body, where it is supported")
    is_read = route.body is not None or route.multipart is not None
    if not is_read and request.body_exists and DRY_RUN.encode() in await request_parsing.read_bytes(request, limit):
        raise _not_supported("is not supported by this operation")


def reject_in_body(route: http_routes.Route, names: Any) -> None:
    """Raise InvalidFields if a body, or the names of its parts, has `dryRun` and the operation does not support it."""
    if not route.takes_dry_run and isinstance(names, Collection) and DRY_RUN in names:
        raise _not_supported("is not supported by this operation")


def rolling_back(handler: http_routes.Handler, arguments: Mapping[str, Any]) -> http_routes.Handler:
    """Return a handler that does the same in a transaction which is rolled back, and returns its result.

    Records that would be created, and their items, have no identifier.
    """

    async def rehearsed(ctx: Context, **_: object) -> object:
        async def work(tx: Context) -> object:
            result = await handler(tx, **arguments)
            created = {change.id for change in tx.changes.documents.values() if change.action == "created"}
            if isinstance(result, Upserted):
                return replace(result, record=_without_identifiers(result.record, created), created=False)
            return _without_identifiers(result, created)

        return await context.rehearse(ctx, work)

    return rehearsed


def _without_identifiers(value: Any, created: Collection[ObjectId]) -> Any:
    if isinstance(value, list):
        return [_without_identifiers(entry, created) for entry in value]
    if not isinstance(value, Mapping):
        return value
    result = {name: _without_identifiers(entry, created) for name, entry in value.items()}
    if value.get("_id") in created:
        result["_id"] = None
        if "items" in value:
            result["items"] = [{**item, "_id": None} for item in result["items"]]
    return result


def _not_supported(message: str) -> errors.InvalidFields:
    return errors.invalid_field(DRY_RUN, message, code="NOT_SUPPORTED")


# --- Preconditions ----------------------------------------------------------------------------------------------------
# Conditions of writes: `If-Match` with the version a change is based on, and `If-None-Match: *` for new records.


_VERSION_TAG, _WEAK_TAG = re.compile(r'"(0|[1-9]\d{0,8})"'), re.compile(r'W/"[^"]*"')
_ITEM = "/witems/{witemId}"  # has the version of its block


def find_version_read(route: http_routes.Route, routes: Sequence[http_routes.Route]) -> http_routes.Route | None:
    """Return the operation that reads the version of the record that `route` writes, if there is one."""
    path = route.path.removesuffix(_ITEM)
    return next((each for each in routes if each.method == "GET" and each.path == path and each.is_versioned), None)


def takes_if_match(route: http_routes.Route, read: http_routes.Route | None) -> bool:
    """Return whether a write can keep `If-Match`: PUT, PATCH or DELETE of a record whose version is known.

    `read`: see `find_version_read`.
    """
    return route.method in ("PUT", "PATCH", "DELETE") and (route.takes_version or read is not None)


def takes_if_none_match(route: http_routes.Route) -> bool:
    """Return whether a write can keep `If-None-Match: *`: it creates the record that its path names, or changes it."""
    return route.upserts and route.method == "PUT"


def add_version_tag(response: web.Response, version: object) -> None:
    """Add the version of the record in a response as its `ETag`, which stays as it is when the body is compressed."""
    response.headers[hdrs.ETAG] = f'"{version}"'
    response[responses.KEEPS_TAG] = True


def with_conditions(
    route: http_routes.Route, read: http_routes.Route | None, request: web.Request, body: MutableMapping[str, Any]
) -> http_routes.Route:
    """Return the route of a request with a handler that writes only if the conditions in the headers hold.

    `read`: see `find_version_read`. `body` gets the required version, if it can have one. The conditions are compared
    in the transaction of the write. Raises BadRequest (NOT_SUPPORTED) for a condition that the operation cannot keep,
    PreconditionFailed for one that cannot hold.
    """
    if not route.writes:
        return route
    if hdrs.IF_NONE_MATCH in request.headers:
        is_creation = takes_if_none_match(route) and hdrs.IF_MATCH not in request.headers
        if not is_creation or _sent(request, hdrs.IF_NONE_MATCH) != "*":
            raise errors.BadRequest("This operation does not support this If-None-Match", code="NOT_SUPPORTED")
        return _checking_existence(route, must_create=True)
    if hdrs.IF_MATCH not in request.headers:
        return route
    if not takes_if_match(route, read):
        raise errors.BadRequest("This operation does not support If-Match", code="NOT_SUPPORTED")
    if (condition := _sent(request, hdrs.IF_MATCH)) == "*":
        return _checking_existence(route, must_create=False)
    versions = [int(tag) for tag in _VERSION_TAG.findall(_WEAK_TAG.sub("", condition))]  # weak tags match nothing
    if len(versions) > 1:
        raise errors.BadRequest("If-Match takes one version", code="NOT_SUPPORTED")
    if not versions:
        raise errors.PreconditionFailed
    [version] = versions
    if not route.takes_version:
        return _reading_first(route, read, version)
    if body.get("version") not in (None, version):
        raise errors.PreconditionFailed
    body["version"] = version
    return _checking_existence(route, must_create=False)


def _sent(request: web.Request, name: str) -> str:
    return ",".join(request.headers.getall(name)).strip()


def _exists_already() -> errors.PreconditionFailed:
    return errors.PreconditionFailed("A record with this identifier exists already", code="ALREADY_EXISTS")


def _checking_existence(route: http_routes.Route, *, must_create: bool) -> http_routes.Route:
    """Return a route whose handler fails if it creates a record that must exist, or finds one that must not."""

    async def write(tx: Context, **arguments: Any) -> object:
        result = await route.handler(tx, **arguments)
        if isinstance(result, Upserted) and result.created is not must_create:
            raise _exists_already() if must_create else errors.PreconditionFailed()
        return result

    async def handle(ctx: Context, **arguments: Any) -> object:
        try:
            if route.upserts:
                return await context.in_transaction(ctx, lambda tx: write(tx, **arguments))
            return await write(ctx, **arguments)
        except errors.ExternalIdTaken:
            if not must_create:
                raise
            raise _exists_already() from None
        except errors.Conflict as error:
            if error.code != "VERSION_CONFLICT":
                raise
            raise errors.PreconditionFailed from None

    return replace(route, handler=handle)


def _reading_first(route: http_routes.Route, read: http_routes.Route | None, version: int) -> http_routes.Route:
    """Return a route whose handler writes in a transaction that has read the record at `version`."""
    if read is None:
        raise TypeError(f"{route.method} {route.path}: no operation reads the version")

    async def handle(ctx: Context, **arguments: Any) -> object:
        of_record = {name: arguments[name] for _, name in read.path_parameters}
        if isinstance(read.query, Schema) and not read.selects_only:
            of_record["query"] = read.query.load({})

        async def work(tx: Context) -> object:
            if (await read.handler(tx, **of_record))["version"] != version:
                raise errors.PreconditionFailed
            return await route.handler(tx, **arguments)

        return await context.in_transaction(ctx, work)

    return replace(route, handler=handle)


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

    services: context.Services
    authenticate: Authenticate
    database_slots: RequestSlots
    bulk_slots: RequestSlots
    download_slots: RequestSlots
    body_limit: int
    proxies: int = 0
    limits: UploadLimits = field(default_factory=UploadLimits)
    request_limits: RequestLimits | None = None

    def limiter(
        self,
        request_class: http_routes.RequestClass,
        ctx: Context,
        waited: float = 0.0,
        *,
        schedule: Hashable | None = None,
    ) -> AbstractAsyncContextManager[None]:
        """Return the context to run a request of this class in, which has waited for `waited` seconds before.

        `schedule`: see RequestSlot.
        """
        if request_class in ("held", "unlimited"):
            return nullcontext()
        slots = self.bulk_slots if request_class == "bulk" else self.database_slots
        return context.RequestSlot(slots, ctx, waited, schedule=schedule)

    async def send(
        self, request: web.Request, ctx: Context, download: responses.Download, headers: dict[str, str]
    ) -> web.StreamResponse:
        """Send a download. Of exports, each company may receive a few at once, one piece after another."""
        company, work_slots = ctx.slot_holder, self.services.work_slots
        take_turn = work_slots.pieces.paced if download.is_export else self.download_slots.holding
        async with work_slots.exports.holding(company) if download.is_export else nullcontext():
            limited = responses.read_in_turns(download, partial(take_turn, company), ctx.load_caller)
            return await responses.send_download(request, limited, headers)


def mount(app: web.Application, routes: Iterable[http_routes.Route], dependencies: HandlerDependencies) -> None:
    """Add `routes` to `app`."""
    by_path: dict[str, list[http_routes.Route]] = {}
    for route in (declared := list(routes)):
        by_path.setdefault(route.path, []).append(route)
    # A literal path precedes one that has a parameter in the same place.
    for path in sorted(by_path, key=lambda path: [segment.startswith("{") for segment in path.split("/")]):
        pattern = re.sub(r"{(\w+)}", r"{\1:[^/]+}", path)  # aiohttp's own pattern does not match braces
        for route in by_path[path]:
            handle = make_handler(route, dependencies, find_version_read(route, declared))
            handler = interruptible(dependencies.services, handle)
            if route.method == "GET":
                app.router.add_get(pattern, handler)  # also answers HEAD
            else:
                app.router.add_route(route.method, pattern, handler)
        methods = {route.method for route in by_path[path]}
        allowed = sorted(methods | {"HEAD"} if "GET" in methods else methods)

        async def refuse(request: web.Request, allowed: Sequence[str] = allowed) -> web.StreamResponse:
            raise web.HTTPMethodNotAllowed(request.method, allowed)

        app.router.add_route("*", pattern, refuse)  # also where a path with a parameter would match


def make_handler(
    route: http_routes.Route, dependencies: HandlerDependencies, version_read: http_routes.Route | None = None
) -> AiohttpHandler:
    """Return the aiohttp handler of one declared route. `version_read`: see `find_version_read`."""
    query = route.query if isinstance(route.query, Schema) else None

    async def handle(request: web.Request) -> web.StreamResponse:
        started, is_public = time.monotonic(), route.access.audience == "public"
        request[http_routes.ROUTE] = route
        principal = None if is_public else await _load_caller(route, request, dependencies)
        waited = time.monotonic() - started
        if route.stores:
            dependencies.services.disk_space.require()
        if route.refuses_key and _IDEMPOTENCY_KEY in request.headers:
            raise idempotency.KeyNotSupported
        request[request_parsing.PREFERS_JOB] = route.may_be_job and request_parsing.prefers_job(request)
        ctx = Context(
            dependencies.services,
            principal,
            request_id=request[REQUEST_ID],
            network_address=request_parsing.network_address(request, dependencies.proxies),
            device=request_parsing.device_of(request),
            is_disconnected=partial(request_parsing.is_disconnected, request),
            operation=route.operation_id,
            prefers_job=request[request_parsing.PREFERS_JOB],
            load_caller=None if is_public else partial(_load_caller, route, request, dependencies),
        )
        turn = partial(dependencies.database_slots.holding, ctx.slot_holder)
        ctx = replace(ctx, turn=turn) if route.request_class == "held" else ctx
        arguments: dict[str, Any] = dict(request_parsing.path_identifiers(route, request))
        is_strict = request[request_parsing.IS_STRICT] = request_parsing.prefers_strict(request)
        if is_strict:
            request_parsing.reject_unknown_parameters(query, request)
        if query is not None:
            arguments["query"] = request_parsing.read_query(query, request)
        selected: list[str] | None = arguments["query"].pop("fields", None) if route.selects_fields else None
        if route.selects_only:
            del arguments["query"]
        await reject_dry_run(route, request, dependencies.body_limit)
        json_body = None
        if route.body is not None:
            limit, optional = dependencies.body_limit, route.body_optional
            json_body = await request_parsing.read_json(ctx, request, limit, optional=optional)
        reject_in_body(route, json_body)
        conditional = with_conditions(route, version_read, request, {} if json_body is None else json_body)
        if route.body is not None:
            arguments["body"] = request_parsing.validate_body(route.body, json_body)
            if is_strict or route.rejects_unknown_fields:
                request_parsing.reject_unknown_fields(route.body, json_body, arguments["body"])
        if route.multipart is not None:
            async with dependencies.services.work_slots.uploads.holding(ctx.slot_holder):
                uploaded = await _handle_upload(
                    route, version_read, route.multipart, request, ctx, arguments, dependencies
                )
            return _with_headers(uploaded, ctx)
        conditional = _selecting(conditional, selected)
        read_as_of = as_of()
        async with dependencies.limiter(route.request_class, ctx, waited, schedule=_schedule(route, ctx, arguments)):
            ctx_now = await ctx.after_waiting()
            response: responses.Download | web.StreamResponse = await _call(
                conditional, request, ctx_now, arguments, json_body
            )
        audit.record_access(ctx, route.kind)
        if isinstance(response, responses.Download):
            applied = {"Preference-Applied": request_parsing.STRICT} if is_strict else {}
            headers = {"X-Request-Id": ctx.request_id, **applied, **http_routes.deprecation_headers(request)}
            return await dependencies.send(request, ctx, response, headers)
        return _with_headers(response, ctx, read_as_of if route.reports_as_of else None)

    return handle


def _selecting(route: http_routes.Route, names: Sequence[str] | None) -> http_routes.Route:
    """Return a route that returns only some fields of a record, or of each of a list; None: all."""
    if names is None:
        return route

    def select(record: Mapping[str, Any]) -> dict[str, Any]:
        return {name: record[name] for name in names if name in record}

    async def handle(ctx: Context, **arguments: Any) -> object:
        result = await route.handler(ctx, **arguments)
        if isinstance(result, list):
            return list(map(select, result))
        return {**result, "docs": list(map(select, result["docs"]))} if "docs" in result else select(result)

    return replace(route, handler=handle)


async def _load_caller(route: http_routes.Route, request: web.Request, dependencies: HandlerDependencies) -> Principal:
    """Return the caller. Raises what authenticating does, and the error of a caller without access."""
    principal = await dependencies.authenticate(dependencies.services, request)
    principal = request[PRINCIPAL] = for_operation(route.access, principal)
    check_access(route.access, principal, writes=route.writes)
    return principal


def _with_headers(response: web.StreamResponse, ctx: Context, read_as_of: datetime | None = None) -> web.StreamResponse:
    """Adds the headers that name the change, or the batch, with which the request changed coaching data, and the time
    (UTC) since which the changes have to be read next time."""
    if read_as_of is not None:
        response.headers[AS_OF_HEADER] = responses.format_datetime(read_as_of)
    if ctx.change_ids:
        response.headers["X-Change-Id"] = str(ctx.change_ids[0])
    return response


async def _handle_upload(
    route: http_routes.Route,
    version_read: http_routes.Route | None,
    multipart: http_routes.MultipartBody,
    request: web.Request,
    ctx: Context,
    arguments: dict[str, Any],
    dependencies: HandlerDependencies,
) -> web.StreamResponse:
    """Store the file first, then call the handler, whose transaction attaches the file to its record."""
    limits = dependencies.limits
    with closing(await read_upload(ctx, request, multipart, limits.max_bytes(multipart.size_limit))) as upload:
        reject_in_body(route, upload.other_names)
        if request[request_parsing.IS_STRICT]:
            request_parsing.reject_unknown_names(upload.other_names)
        if multipart.text_fields:
            arguments["body"] = request_parsing.validate_body(multipart.schema, upload.texts)
        route = with_conditions(route, version_read, request, arguments.get("body", {}))
        customer_id = _customer_id(route, ctx, arguments)
        async with store_upload(ctx, upload, multipart, customer_id, limits.photo_pixels) as file:
            arguments["file"] = file
            async with dependencies.limiter(route.request_class, ctx, schedule=_schedule(route, ctx, arguments)):
                ctx = await ctx.with_current_caller()  # sending the file may have taken long
                attaching = replace(route, handler=attach_files(route.handler, file))
                response: web.StreamResponse = await _call(attaching, request, ctx, arguments, upload.fingerprint)
    audit.record_access(ctx, route.kind)
    return response


async def _call(
    route: http_routes.Route, request: web.Request, ctx: Context, arguments: dict[str, Any], body: Any
) -> Any:
    """Call the handler, at most once per `Idempotency-Key`. `body` identifies the request body."""
    key = request.headers.get(_IDEMPOTENCY_KEY) if route.idempotent else None
    dry = route.takes_dry_run and bool(arguments["body"].get(DRY_RUN))
    if route.rolls_back:
        body_of_handler = {name: value for name, value in arguments["body"].items() if name != DRY_RUN}
        arguments = {**arguments, "body": body_of_handler}
    if dry:
        handler = rolling_back(route.handler, arguments) if route.rolls_back else route.handler
        route, key = replace(route, status=200 if route.status == 201 else route.status, handler=handler), None
    if key is None and route.on_worker_thread:
        return _json_response(route.status, await _call_on_worker_thread(ctx, route.handler, arguments))
    if key is None:
        result = await route.handler(ctx, **arguments, **({"claim": None} if route.resumable else {}))
        return _response(route, result)
    return await _call_once(route, ctx, arguments, body, key)


async def _call_once(
    route: http_routes.Route, ctx: Context, arguments: dict[str, Any], body: Any, key: str
) -> web.Response:
    """Call the handler unless a request with the same key has; the response to a repetition has the same headers."""
    identifiers = [str(arguments[name]) for _, name in route.path_parameters]
    if route.access.audience == "customer":  # the path is the same for all clients
        identifiers.append(str(ctx.caller.id))
    claim = idempotency.Claim.of(ctx, key, route.method, "/".join([route.path, *identifiers]), body)
    if route.resumable:
        arguments["claim"] = claim

    async def work(tx: Context) -> tuple[idempotency.StoredResponse, ObjectId | None]:
        result = await route.handler(tx, **arguments)
        created_id = result.get("_id") if isinstance(result, dict) else None
        if isinstance(result, Accepted):
            return idempotency.StoredResponse(202, responses.to_json(result.to_response())), None
        return idempotency.StoredResponse(route.status, responses.to_json(result)), created_id

    if route.resumable:
        response = await idempotency.run_in_steps(ctx, claim, work)
    else:
        response = await idempotency.run_once(ctx, claim, _customer_id(route, ctx, arguments), work)
    headers = {"Idempotent-Replayed": "true"} if response.replayed else {}
    if response.replayed and response.change_id is not None:
        ctx.change_ids.append(response.change_id)
    answer = _json_response(response.status, response.body, headers)
    if route.is_versioned:
        add_version_tag(answer, orjson.loads(response.body)["version"])
    return answer


def _customer_id(route: http_routes.Route, ctx: Context, arguments: dict[str, Any]) -> ObjectId | None:
    """Return the client that a request is about: in the path, in the body, or the caller."""
    if route.access.audience == "customer":
        return ctx.caller.id
    body = arguments.get("body")
    return arguments.get("customer_id") or (body.get("customerId") if isinstance(body, dict) else None)


def _schedule(route: http_routes.Route, ctx: Context, arguments: Mapping[str, Any]) -> Hashable | None:
    """Return the key of the schedule that a request changes, if it changes one."""
    if not route.writes:
        return None
    body = arguments.get("body")
    return context.schedule_key(ctx, route.locks, arguments, body if isinstance(body, dict) else {})


def _response(route: http_routes.Route, result: Any) -> Any:
    if isinstance(result, responses.Download):
        return result
    status = route.status
    if isinstance(result, Accepted):
        status, result = 202, result.to_response()
    elif isinstance(result, Upserted):
        status, result = 201 if result.created else 200, result.record
    if status == 204:
        return web.Response(status=204)
    response = _json_response(status, responses.to_json(result))
    if route.is_versioned and isinstance(result, Mapping) and result.get("_id") is not None and "version" in result:
        add_version_tag(response, result["version"])
    return response


@on_worker_thread
async def _call_on_worker_thread(ctx: Context, handler: http_routes.Handler, arguments: dict[str, Any]) -> bytes:
    """Call a handler that awaits nothing but the database, and return its result as JSON.

    One thread reads, encodes and frees the documents, which takes less time than encoding them on the event loop.
    """
    return responses.to_json(await handler(ctx, **arguments))


def _json_response(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(body=body, status=status, headers={"Content-Type": _JSON, **(headers or {})})
