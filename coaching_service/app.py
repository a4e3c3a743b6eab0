"""The aiohttp application: middlewares, the routes of all interfaces, and background work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING

from aiohttp import web

from coaching_service import features, http_server
from coaching_service import web as coach_application
from coaching_service.core.auth import API_KEY_PREFIXES, APPLICATION_PREFIX, Principal
from coaching_service.core.background import running_in_background
from coaching_service.core.changes.numbering import sequencing, signalling
from coaching_service.core.database.across_companies import storing
from coaching_service.core.database.context import Services
from coaching_service.core.errors import KeyMcpOnly, Unauthorized
from coaching_service.core.http.handlers import (
    Authenticate,
    HandlerDependencies,
    RequestLimits,
    end_interruption,
    mount,
)
from coaching_service.core.http.routes import routes_of
from coaching_service.core.jobs import worker
from coaching_service.core.mcp import tools_of
from coaching_service.core.slots import RequestSlots, overloaded
from coaching_service.documentation.operator_endpoints import (
    OperatorEndpoints,
    core_readings,
    metrics_handler,
    only_locally,
)
from coaching_service.http_server import Availability
from coaching_service.installation.abandoned import aborting_abandoned_transactions
from coaching_service.library.exercises import service as exercises
from coaching_service.lifecycle import erasure
from coaching_service.lifecycle.administration import read_metrics as read_backup_metrics
from coaching_service.mcp.endpoint import McpEndpoint
from coaching_service.oauth.endpoints import Endpoints
from coaching_service.people import api_keys, assistants, audit_log, notifications
from coaching_service.people.customers import derived_figures
from coaching_service.people.sessions import service as sessions
from coaching_service.people.webhooks import dispatcher
from coaching_service.progress import check_ins
from coaching_service.settings import Settings
from coaching_service.web import static_files

if TYPE_CHECKING:
    from coaching_service.mcp.transport import Servers

SERVICES = web.AppKey("services", Services)
_BULK_CONCURRENCY, _BULK_PER_COMPANY = 3, 2
_BULK_PATIENCE = 8  # times as long as others: each of those in the queue runs for seconds
_DOWNLOAD_CONCURRENCY = 4
READINGS = (
    *core_readings(features.STEPS),
    dispatcher.read_metrics,
    read_backup_metrics,
    erasure.read_metrics,
    derived_figures.read_metrics,
    check_ins.read_metrics,
    notifications.read_metrics,
    worker.read_metrics,
)


def create_app(settings: Settings, services: Services, availability: Availability | None = None) -> web.Application:
    """Create the application, which also runs background jobs.

    Without `availability` it accepts requests from the start.
    """
    availability = availability or Availability("ready")
    routes = routes_of(features.ROUTES)
    cross_origin = http_server.CrossOrigin(settings.cors_origins, routes)
    app = web.Application(
        middlewares=[
            http_server.request_middleware(services, settings.trusted_proxies),
            cross_origin.answer_preflight,
            availability.check,
        ]
    )
    app[SERVICES] = services
    per_minute = settings.rate_limit_per_minute
    request_limits = RequestLimits(services, per_minute) if per_minute else None
    queue_limits = (settings.request_queue_length, settings.request_queue_seconds)
    bulk_limits = (settings.request_queue_length, settings.request_queue_seconds * _BULK_PATIENCE)
    dependencies = HandlerDependencies(
        services,
        _authentication(authenticate, settings, request_limits),
        RequestSlots(
            settings.database_concurrency,
            *queue_limits,
            services.metrics.queue("database"),
            shared=settings.database_concurrency_per_company,
            sharing=services.work_slots.sharing,
        ),
        RequestSlots(_BULK_CONCURRENCY, *bulk_limits, services.metrics.queue("bulk"), alone=_BULK_PER_COMPANY),
        RequestSlots(_DOWNLOAD_CONCURRENCY),
        settings.max_body_bytes,
        settings.trusted_proxies,
        services.upload_limits,
        request_limits,
    )
    mount(app, routes, dependencies)
    operator_endpoints = OperatorEndpoints(
        services, routes, features.TAGS, dependencies.database_slots, features.WEBHOOKS
    )
    metrics = metrics_handler(services, READINGS) if settings.metrics_port is None else None
    if metrics is not None and settings.metrics_address is None:
        metrics = only_locally(metrics, settings.trusted_proxies)
    app.add_routes(operator_endpoints.routes(metrics))
    app.add_routes(_mcp_endpoint(settings, services, dependencies).routes())
    app.add_routes(Endpoints(services, settings.trusted_proxies).routes())
    coach_application.mount(app, dependencies)
    app.on_response_prepare.append(end_interruption)
    app.on_response_prepare.append(cross_origin.add_headers)
    app.on_response_prepare.append(http_server.adding_security_headers(services.base_url))
    if request_limits is not None:
        app.on_response_prepare.append(request_limits.add_headers)
    app.cleanup_ctx.append(_background(services, availability))

    async def end_waiting(_: web.Application) -> None:
        services.number_signals.end_waiting()  # so that stopping does not wait for requests that wait for events

    app.on_shutdown.append(end_waiting)
    return app


def _mcp_endpoint(settings: Settings, services: Services, dependencies: HandlerDependencies) -> McpEndpoint:
    services.tools.update({tool.name: tool for tool in tools_of((*features.TOOLS, *features.VIEW_TOOLS))})
    icon_url = services.base_url + static_files.url_of("icon.svg")

    def create() -> Servers:
        from coaching_service.mcp.server import make_servers  # not needed before, and large

        return make_servers(
            services.tools.values(), dependencies.database_slots, services.metrics, services.base_url, icon_url
        )

    return McpEndpoint(
        create,
        services,
        _authentication(authenticate_assistant, settings, dependencies.request_limits),
        settings.max_body_bytes,
        settings.trusted_proxies,
        frozenset(settings.mcp_origins),
    )


def _authentication(
    authenticate_request: Authenticate, settings: Settings, request_limits: RequestLimits | None
) -> Authenticate:
    """Authentication with a time limit, in turns, that also counts the request if requests are limited.

    It raises Unavailable when it takes too long: the database is lost, or the service is busy. Credentials share the
    slots as companies share others: whose they are is not known yet.
    """
    if request_limits is not None:
        authenticate_request = request_limits.applied_to(authenticate_request)
    slots = RequestSlots(settings.database_concurrency, shared=settings.database_concurrency_per_company)

    async def authenticate_in_time(services: Services, request: web.Request) -> Principal:
        credential = request.headers.get("Authorization") or request.headers.get("X-API-Key")
        try:
            async with asyncio.timeout(settings.request_queue_seconds), slots.holding(credential):
                return await authenticate_request(services, request)
        except TimeoutError:
            services.monitor.require()
            raise overloaded() from None

    return authenticate_in_time


def _background(services: Services, availability: Availability) -> Callable[[web.Application], AsyncIterator[None]]:
    """Numbers changes, sends webhooks and runs jobs once stored documents have their current shape."""

    async def run(_: web.Application) -> AsyncIterator[None]:
        async with (
            aborting_abandoned_transactions(services),
            sequencing(services, start=availability.ready),
            storing(services, exercises.store_counts, 1, start=availability.ready),
            storing(services, audit_log.store_pending, 5, start=availability.ready),
            signalling(services),
            running_in_background(dispatcher.Dispatcher(services).run, start=availability.ready),
            notifications.sending(services, features.NOTIFICATIONS, features.queue_push, start=availability.ready),
            worker.working(
                services, features.STEPS, features.STANDING_JOBS, features.JOB_PLACES, start=availability.ready
            ),
        ):
            yield

    return run


# --- From the credential of a request to the principal ----------------------------------------------------------------


async def authenticate(services: Services, request: web.Request) -> Principal:
    """Return the principal of a REST request.

    An `Authorization` header alone decides, even next to a valid key; its bearer may be an API key. Raises Unauthorized
    for a missing credential or an invalid bearer, InvalidApiKey for an invalid key, KeyMcpOnly for one of an assistant.
    """
    principal = await _authenticate(services, request, _authenticate_rest)
    if principal.mcp_only:
        raise KeyMcpOnly
    return principal


async def _authenticate_rest(services: Services, token: str) -> Principal:
    if token.startswith(APPLICATION_PREFIX):
        return await assistants.authenticate(services, token, is_application=True)
    return await sessions.authenticate(services, token)


async def authenticate_assistant(services: Services, request: web.Request) -> Principal:
    """Return the principal of a request to /mcp: by API key or OAuth access token, never by session.

    Raises what `authenticate` raises.
    """
    return await _authenticate(services, request, assistants.authenticate)


async def _authenticate(
    services: Services, request: web.Request, authenticate_bearer: Callable[[Services, str], Awaitable[Principal]]
) -> Principal:
    if (authorization := request.headers.get("Authorization")) is not None:
        scheme, _, token = authorization.partition(" ")
        if scheme.casefold() != "bearer" or not token.strip():
            raise Unauthorized()
        if token.strip().startswith(API_KEY_PREFIXES):
            return await api_keys.authenticate(services, token.strip())
        return await authenticate_bearer(services, token.strip())
    if key := request.headers.get("X-API-Key"):
        return await api_keys.authenticate(services, key)
    raise Unauthorized()
