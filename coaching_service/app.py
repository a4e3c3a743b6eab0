"""The aiohttp application: middlewares, the features' routes, the operator endpoints and the background worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from aiohttp import web

from coaching_service import features
from coaching_service import web as coach_application
from coaching_service.authentication import authenticate, authenticate_assistant
from coaching_service.core.database.context import Services
from coaching_service.core.http.handlers import HandlerDependencies, UploadLimits, mount
from coaching_service.core.http.middleware import HttpMetrics, request_middleware
from coaching_service.core.http.operator_endpoints import OperatorEndpoints
from coaching_service.core.http.routes import routes_of
from coaching_service.core.jobs import mail, queue
from coaching_service.core.mcp.tools import tools_of
from coaching_service.mcp.endpoint import McpEndpoint
from coaching_service.mcp.server import make_server
from coaching_service.oauth.endpoints import Endpoints
from coaching_service.settings import Settings

SERVICES = web.AppKey("services", Services)
_BULK_CONCURRENCY = 2
_DOWNLOAD_CONCURRENCY = 4
HTTP_METRICS = web.AppKey("metrics", HttpMetrics)


def create_app(settings: Settings, services: Services) -> web.Application:
    """The application on `services`; the background worker runs while it does."""
    metrics = HttpMetrics()
    app = web.Application(middlewares=[request_middleware(metrics)])
    app[SERVICES] = services
    app[HTTP_METRICS] = metrics
    dependencies = HandlerDependencies(
        services,
        authenticate,
        asyncio.Semaphore(settings.database_concurrency),
        asyncio.Semaphore(_BULK_CONCURRENCY),
        asyncio.Semaphore(_DOWNLOAD_CONCURRENCY),
        settings.max_body_bytes,
        settings.trusted_proxies,
        UploadLimits(settings.max_photo_bytes, settings.max_plan_bytes, settings.max_photo_pixels),
    )
    routes = routes_of(features.ROUTES)
    mount(app, routes, dependencies)
    operator_endpoints = OperatorEndpoints(services, routes, features.TAGS)
    app.add_routes(operator_endpoints.routes(metrics, with_metrics=settings.metrics_port is None))
    app.add_routes(_mcp_endpoint(settings, services, dependencies).routes())
    app.add_routes(Endpoints(services, settings.trusted_proxies).routes())
    coach_application.mount(app, dependencies)
    app.cleanup_ctx.append(_background(services))
    return app


def _mcp_endpoint(settings: Settings, services: Services, dependencies: HandlerDependencies) -> McpEndpoint:
    return McpEndpoint(
        make_server(tools_of(features.TOOLS), dependencies.database_semaphore),
        services,
        authenticate_assistant,
        settings.max_body_bytes,
        settings.trusted_proxies,
        frozenset(settings.mcp_origins),
    )


def _background(services: Services) -> Callable[[web.Application], AsyncIterator[None]]:
    async def run(_: web.Application) -> AsyncIterator[None]:
        async with queue.working(services, features.STEPS, features.STANDING, {mail.SEND: mail.CONNECTIONS}):
            yield

    return run
