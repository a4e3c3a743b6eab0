"""The aiohttp application: middlewares, the features' routes, the operators' doors, and what runs beside them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from aiohttp import web

from coaching_service import features
from coaching_service import web as coach_application
from coaching_service.authentication import authenticate, authenticate_assistant
from coaching_service.core.database.context import Services
from coaching_service.core.http.handlers import Server, UploadLimits, mount
from coaching_service.core.http.middleware import HttpMetrics, request_middleware
from coaching_service.core.http.operator_endpoints import OperatorEndpoints
from coaching_service.core.http.routes import routes_of
from coaching_service.core.jobs import queue
from coaching_service.core.mcp.tools import tools_of
from coaching_service.mcp.door import McpEndpoint
from coaching_service.mcp.server import make_server
from coaching_service.oauth.endpoints import Endpoints
from coaching_service.settings import Settings

SERVICES = web.AppKey("services", Services)
_SLOW_AT_ONCE = 2
_PIECES_AT_ONCE = 4
MEASURES = web.AppKey("measures", HttpMetrics)


def create_app(settings: Settings, services: Services) -> web.Application:
    """The application on `services`; it does background work while it runs."""
    measures = HttpMetrics()
    app = web.Application(middlewares=[request_middleware(measures)])
    app[SERVICES] = services
    app[MEASURES] = measures
    server = Server(
        services,
        authenticate,
        asyncio.Semaphore(settings.database_concurrency),
        asyncio.Semaphore(_SLOW_AT_ONCE),
        asyncio.Semaphore(_PIECES_AT_ONCE),
        settings.max_body_bytes,
        settings.trusted_proxies,
        UploadLimits(settings.max_photo_bytes, settings.max_plan_bytes, settings.max_photo_pixels),
    )
    routes = routes_of(features.ROUTES)
    mount(app, routes, server)
    doors = OperatorEndpoints(services, routes, features.TAGS)
    app.add_routes(doors.routes(measures, with_metrics=settings.metrics_port is None))
    app.add_routes(_assistants_door(settings, services, server).routes())
    app.add_routes(Endpoints(services, settings.trusted_proxies).routes())
    coach_application.mount(app, server)
    app.cleanup_ctx.append(_background(services))
    return app


def _assistants_door(settings: Settings, services: Services, server: Server) -> McpEndpoint:
    return McpEndpoint(
        make_server(tools_of(features.TOOLS), server.gate),
        services,
        authenticate_assistant,
        settings.max_body_bytes,
        settings.trusted_proxies,
        frozenset(settings.mcp_origins),
    )


def _background(services: Services) -> Callable[[web.Application], AsyncIterator[None]]:
    async def run(_: web.Application) -> AsyncIterator[None]:
        async with queue.working(services, features.STEPS, features.STANDING):
            yield

    return run
