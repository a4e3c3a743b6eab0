"""What ends a request: a database that does not respond (see DatabaseMonitor), and its budget of processor time."""

from __future__ import annotations

from aiohttp import web
from aiohttp.typedefs import Handler

from coaching_service.core.budgets import Budget
from coaching_service.core.database.context import Services
from coaching_service.core.database.monitor import Interruption

BUDGET = web.RequestKey("budget", Budget)
_INTERRUPTION = web.RequestKey("interruption", Interruption)


def interrupting(services: Services, request: web.Request) -> Interruption:
    """Return a context that raises Unavailable when the database is lost, unless the response has begun by then."""
    interruption = request[_INTERRUPTION] = services.monitor.interrupting()
    return interruption


def interruptible(services: Services, handler: Handler) -> Handler:
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
