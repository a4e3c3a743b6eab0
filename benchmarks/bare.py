"""The bare handlers that the service is compared with: `benchmarks.operations` behind aiohttp, and nothing else.

Started by the benchmark: `python -m benchmarks.bare`, configured by MONGODB_URI, MONGODB_DATABASE, LOOKUP_KEY, PORT and
DRIVER, `motor` (also without it) or `pymongo` for PyMongo's own asynchronous API.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping

import orjson
import uvloop
from aiohttp import web

from benchmarks.drivers import DRIVERS
from benchmarks.lookups import Call, Operation, Refused, to_json
from benchmarks.operations import Operations

Handler = Callable[[web.Request], Awaitable[web.Response]]


def _handler(operation: Operation, status: int) -> Handler:
    """Serve an operation: its arguments from the request, its result as JSON."""

    async def handle(request: web.Request) -> web.Response:
        body = orjson.loads(await request.read()) if request.can_read_body else None
        call = Call(request.headers.get("X-API-Key", ""), request.match_info, request.query, body)
        try:
            result = await operation(call)
        except Refused as refused:
            return web.Response(status=refused.status)
        return web.Response(body=to_json(result), status=status, content_type="application/json")

    return handle


def _routes(operations: Operations) -> list[tuple[str, str, Operation, int]]:
    """The paths of the service below /coach.

    Below /logged with all its writes in one transaction, below /presented with the same response as the service's.
    """
    client = "/customers/{customerId}"
    block = f"{client}/wblocks/{{wblockId}}"
    return [
        ("GET", "/coach/customers", operations.customers, 200),
        ("GET", f"/coach{client}/wblock", operations.calendar, 200),
        ("GET", f"/presented{client}/wblock", operations.presented_calendar, 200),
        ("GET", "/coach/attention", operations.attention, 200),
        ("GET", "/coach/events", operations.events, 200),
        ("POST", "/coach/customers", operations.create_customer, 201),
        ("POST", "/logged/customers", operations.create_customer_in_transaction, 201),
        ("POST", f"/coach{block}/witems", operations.add_item, 201),
        ("POST", f"/logged{block}/witems", operations.add_item_in_transaction, 201),
        ("PUT", f"/coach{block}/witems/{{itemId}}/log", operations.log_item, 200),
        ("PUT", f"/logged{block}/witems/{{itemId}}/log", operations.log_item_in_transaction, 200),
        ("POST", f"/coach{client}/schedule/copy", operations.copy_week, 201),
        ("POST", f"/logged{client}/schedule/copy", operations.copy_week_in_transaction, 201),
    ]


async def app(environment: Mapping[str, str] = os.environ) -> web.Application:
    """The bare handlers on the paths of the service."""
    driver = DRIVERS[environment.get("DRIVER", "motor")]
    database = driver(environment["MONGODB_URI"], environment["MONGODB_DATABASE"])
    operations = Operations(database, bytes.fromhex(environment["LOOKUP_KEY"]))
    app = web.Application()
    for method, path, operation, status in _routes(operations):
        app.router.add_route(method, path, _handler(operation, status))
    return app


def serve(application: Awaitable[web.Application]) -> None:
    """Serve on PORT until SIGTERM."""
    port, loop = int(os.environ["PORT"]), uvloop.new_event_loop()
    web.run_app(application, host="127.0.0.1", port=port, access_log=None, print=lambda _: None, loop=loop)


if __name__ == "__main__":
    serve(app())
