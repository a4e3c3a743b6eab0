"""The bare handlers that the service is compared with: `benchmarks.operations` behind aiohttp, and nothing else.

Started by the benchmark: `python -m benchmarks.bare`, configured by MONGODB_URI, MONGODB_DATABASE, LOOKUP_KEY, PORT and
DRIVER, `motor` (also without it) or `pymongo` for PyMongo's own asynchronous API.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress

import orjson
import uvloop
from aiohttp import web
from bson import ObjectId
from pymongo import UpdateOne
from pymongo.errors import BulkWriteError

from benchmarks.drivers import DRIVERS
from benchmarks.lookups import Call, Operation, Refused, block_of, to_json
from benchmarks.operations import Operations
from benchmarks.stored_documents import Document, now

Handler = Callable[[web.Request], Awaitable[web.Response]]


class Embedded:
    """A change stored inside the document and moved out of it afterwards, and the same change in a transaction."""

    def __init__(self, operations: Operations) -> None:
        self._operations, self._db = operations, operations.db

    async def add(self, call: Call) -> Document:
        """Store a value and its change in one update of the block; `move_changes` moves it out."""
        where, item = block_of((await self._operations.key(call))["companyId"], call), call.body
        at = now()
        entry = {"_id": ObjectId(), "createdAt": at, "patch": [item]}
        update = {"$set": {"bare": item, "updatedAt": at}, "$push": {"newChanges": entry}, "$inc": {"version": 1}}
        await self._db.workoutBlocks.update_one(where, update)
        return item

    async def add_separate(self, call: Call) -> Document:
        """Store the same value and its change in a transaction of two writes."""
        where, item = block_of((await self._operations.key(call))["companyId"], call), call.body
        at = now()
        of_client = {name: where[name] for name in ("companyId", "customerId")}
        entry = {**of_client, "createdAt": at, "pending": True, "patch": [item]}
        update = {"$set": {"bare": item, "updatedAt": at}, "$inc": {"version": 1}}
        async with self._operations.driver.transaction() as session:
            await self._db.workoutBlocks.update_one(where, update, session=session)
            await self._db.bareChanges.insert_one(entry, session=session)
        return item

    async def move_changes(self) -> None:
        """Follow the blocks, and move the changes in them to a collection of their own, as a sequencer would."""
        pipeline = [
            {"$match": {"updateDescription.updatedFields.bare": {"$exists": True}}},
            {"$project": {"documentKey": 1}},
        ]
        async with self._db.workoutBlocks.watch(pipeline, batch_size=500) as stream:
            while True:
                blocks = {(await stream.next())["documentKey"]["_id"]}
                while len(blocks) < 500 and (event := await stream.try_next()) is not None:
                    blocks.add(event["documentKey"]["_id"])
                where = {"_id": {"$in": list(blocks)}, "newChanges.0": {"$exists": True}}
                entries, emptied = [], []
                async for block in self._db.workoutBlocks.find(
                    where, {"companyId": 1, "customerId": 1, "newChanges": 1}
                ):
                    common = {"companyId": block["companyId"], "customerId": block["customerId"]}
                    entries += [{**common, **entry} for entry in block["newChanges"]]
                    ids = [entry["_id"] for entry in block["newChanges"]]
                    emptied.append(UpdateOne({"_id": block["_id"]}, {"$pull": {"newChanges": {"_id": {"$in": ids}}}}))
                if entries:
                    with suppress(BulkWriteError):  # moved already
                        await self._db.bareChanges.insert_many(entries, ordered=False)
                    await self._db.workoutBlocks.bulk_write(emptied, ordered=False)


async def _moving(app: web.Application) -> AsyncIterator[None]:
    task = asyncio.create_task(app[EMBEDDED].move_changes())
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


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


EMBEDDED = web.AppKey("embedded", Embedded)


def _routes(operations: Operations, embedded: Embedded) -> list[tuple[str, str, Operation, int]]:
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
        ("POST", f"/inserted{client}/schedule/copy", operations.insert_blocks, 201),
        ("POST", f"/embedded{block}/witems", embedded.add, 201),
        ("POST", f"/separate{block}/witems", embedded.add_separate, 201),
    ]


async def app(environment: Mapping[str, str] = os.environ) -> web.Application:
    """The bare handlers on the paths of the service."""
    driver = DRIVERS[environment.get("DRIVER", "motor")]
    database = driver(environment["MONGODB_URI"], environment["MONGODB_DATABASE"])
    operations = Operations(database, bytes.fromhex(environment["LOOKUP_KEY"]))
    app = web.Application()
    app[EMBEDDED] = Embedded(operations)
    for method, path, operation, status in _routes(operations, app[EMBEDDED]):
        app.router.add_route(method, path, _handler(operation, status))
    if "MOVE_CHANGES" in environment:
        app.cleanup_ctx.append(_moving)
    return app


def serve(application: Awaitable[web.Application]) -> None:
    """Serve on PORT until SIGTERM."""
    port, loop = int(os.environ["PORT"]), uvloop.new_event_loop()
    web.run_app(application, host="127.0.0.1", port=port, access_log=None, print=lambda _: None, loop=loop)


if __name__ == "__main__":
    serve(app())
