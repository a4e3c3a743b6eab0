"""The bare handlers that the service is compared with: the three requests and nothing else.

The same driver, database and indexes, uvloop and orjson; the same look-ups (the key and its company, the client, the
exercises named), those that are independent at the same time; the same write with the same write concern. No validation,
no permissions, no log, and nothing derived.
Started by the benchmark: `python -m benchmarks.bare`, configured by MONGODB_URI, MONGODB_DATABASE, SECRET_KEYS and PORT.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import orjson
import uvloop
from aiohttp import web
from bson import ObjectId
from motor.motor_asyncio import AsyncIOMotorClient, AsyncIOMotorClientSession
from pymongo import UpdateOne
from pymongo.errors import BulkWriteError, PyMongoError
from pymongo.write_concern import WriteConcern

from coaching_service.core.auth.secrets import Vault, parse_master_key

T = TypeVar("T")
_PAGE_HIDES = dict.fromkeys(("sortName", "sortSurname", "search", "suf", "firstAccessHash"), 0)
_PAGE_ORDER = [("sortName", 1), ("sortSurname", 1), ("_id", 1)]
_BLOCK_HIDES = {"companyId": 0, "position": 0, "done": 0}
_EXERCISE = {"name": 1, "defaultInstructions": 1}
_BLOCK_ORDER = [("date", 1), ("position", 1), ("_id", 1)]
_NOT_DONE = dict.fromkeys(("exerciseId", "round", "seconds", "meters", "rpe", "rir"))
_UNSET = {
    **dict.fromkeys(("rest", "rpe", "rir", "tempo", "loadPercent")),
    **dict.fromkeys(("isWarmup", "isAmrap", "perSide"), False),
    "setKind": "normal",
}
_OPTIONS = orjson.OPT_NAIVE_UTC | orjson.OPT_UTC_Z


class Bare:
    """The three handlers on one database."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        client = AsyncIOMotorClient(environment["MONGODB_URI"])
        self.db = client[environment["MONGODB_DATABASE"]]
        # Counts of uses may be lost: as in the service, nothing waits for a majority or a disk.
        self.uses = self.db["bareUses"].with_options(write_concern=WriteConcern(w=1, j=False))
        self.vault = Vault([parse_master_key(environment["SECRET_KEYS"])])

    async def key(self, request: web.Request) -> dict[str, Any]:
        """The record of the request's key."""
        api_key = await self.db.apiKeys.find_one({"hash": self.vault.keyed_hash(request.headers["X-API-Key"])})
        if api_key is None:
            raise web.HTTPUnauthorized
        return api_key

    async def customers(self, request: web.Request) -> web.Response:
        """A page of clients and their exact number."""
        company = (await self.key(request))["companyId"]
        where = {"companyId": company, "customerRoleData.isArchived": request.query["archived"] == "true"}
        size, page = int(request.query["pageSize"]), int(request.query["pageNum"])
        cursor = self.db.customers.find(where, _PAGE_HIDES, sort=_PAGE_ORDER, skip=(page - 1) * size, limit=size)
        docs, total = await asyncio.gather(cursor.to_list(None), self.db.customers.count_documents(where))
        return _json({"docs": docs, "totalDocs": total})

    def company(self, company: ObjectId) -> Awaitable[dict[str, Any] | None]:
        """The company, or None."""
        return self.db.companies.find_one({"_id": company})

    def customer(self, company: ObjectId, customer: ObjectId) -> Awaitable[dict[str, Any] | None]:
        """The client, or None."""
        return self.db.customers.find_one({"companyId": company, "_id": customer}, {"customerRoleData.assignedTo": 1})

    def exercises(self, company: ObjectId, ids: Iterable[ObjectId]) -> Awaitable[list[dict[str, Any]]]:
        """The exercises that the company has, with their names."""
        where = {"companyId": {"$in": [None, company]}, "_id": {"$in": list(ids)}}
        names: Awaitable[list[dict[str, Any]]] = self.db.exercises.find(where, _EXERCISE, hint="_id_").to_list(None)
        return names

    async def calendar(self, request: web.Request) -> web.Response:
        """The blocks of a client's week, with the names of their exercises."""
        company = (await self.key(request))["companyId"]
        customer = ObjectId(request.match_info["customerId"])
        where = {
            "companyId": company,
            "customerId": customer,
            "date": {"$gte": request.query["startDate"], "$lte": request.query["endDate"]},
        }
        *records, blocks = await asyncio.gather(
            self.company(company),
            self.customer(company, customer),
            self.db.workoutBlocks.find(where, _BLOCK_HIDES, sort=_BLOCK_ORDER).to_list(None),
        )
        if None in records:
            raise web.HTTPNotFound
        items = [item for block in blocks for item in block["items"] if "exerciseId" in item]
        exercises = {
            exercise["_id"]: exercise
            for exercise in await self.exercises(company, {item["exerciseId"] for item in items})
        }
        for item in items:
            item["exercise"] = exercises[item["exerciseId"]]
        return _json(blocks)

    async def add_item(self, request: web.Request) -> web.Response:
        """Add an item to a block, if its client and its exercise exist."""
        company = (await self.key(request))["companyId"]
        customer = ObjectId(request.match_info["customerId"])
        body = orjson.loads(await request.read())
        exercise = ObjectId(body["exerciseId"])
        *records, exercises = await asyncio.gather(
            self.company(company), self.customer(company, customer), self.exercises(company, [exercise])
        )
        if None in records or not exercises:
            raise web.HTTPNotFound
        item = _stored(body, exercise)
        at = item["updatedAt"]
        where = {"companyId": company, "customerId": customer, "_id": ObjectId(request.match_info["wblockId"])}
        change = {"$push": {"items": item}, "$set": {"updatedAt": at}, "$inc": {"version": 1}}
        if not (await self.db.workoutBlocks.update_one(where, change)).modified_count:
            raise web.HTTPNotFound
        return _json(item | {"exercise": exercises[0]}, status=201)

    async def add_item_in_transaction(self, request: web.Request) -> web.Response:
        """Add an item and store the change, with the same writes as the service, in one transaction."""
        api_key = await self.key(request)
        company = api_key["companyId"]
        customer, block = (ObjectId(request.match_info[name]) for name in ("customerId", "wblockId"))
        body = orjson.loads(await request.read())
        exercise = ObjectId(body["exerciseId"])
        *records, exercises = await asyncio.gather(
            self.company(company), self.customer(company, customer), self.exercises(company, [exercise])
        )
        if None in records or not exercises:
            raise web.HTTPNotFound
        item, at = _stored(body, exercise), _now()
        of_block = {"companyId": company, "customerId": customer, "_id": block}
        push = {"$push": {"items": item}, "$set": {"updatedAt": at}, "$inc": {"version": 1}}
        entry = _change(api_key, customer, block, "createWorkoutItem", [], [item])

        async def write(session: AsyncIOMotorClientSession) -> None:
            await self.db.workoutBlocks.update_one(of_block, push, session=session)
            await self._mark_client(company, customer, at, session)
            await self.db.bareChanges.insert_one(entry, session=session)

        await self._in_transaction(write)
        uses = {"companyId": company, "exerciseId": exercise}
        await self.uses.update_one(uses, {"$inc": {"count": 1}}, upsert=True)
        return _json(item | {"exercise": exercises[0]}, status=201)

    async def log_item_in_transaction(self, request: web.Request) -> web.Response:
        """Store what was done for an item and the change, with the same reads and writes as the service.

        The write to the client comes first, so that two logs of one client wait for each other. The logs that are
        measured beat no personal record: those of the exercise are read, and none is written.
        """
        api_key = await self.key(request)
        company, item_id = api_key["companyId"], ObjectId(request.match_info["itemId"])
        customer, block = (ObjectId(request.match_info[name]) for name in ("customerId", "wblockId"))
        body = orjson.loads(await request.read())
        if None in await asyncio.gather(self.company(company), self.customer(company, customer)):
            raise web.HTTPNotFound
        of_block = {"companyId": company, "customerId": customer, "_id": block}

        async def write(session: AsyncIOMotorClientSession) -> dict[str, Any]:
            at = _now()
            await self._mark_client(company, customer, at, session)
            stored = await self.db.workoutBlocks.find_one(of_block, _BLOCK_HIDES, session=session)
            [item] = [each for each in stored["items"] if each["_id"] == item_id] if stored else [None]
            if stored is None or item is None:
                raise web.HTTPNotFound
            before = dict(item)
            sets = [_NOT_DONE | done | {"isCompleted": True} for done in body["customerSets"]]
            item |= {"customerSets": sets, "isCompleted": True, "updatedAt": at}
            changed = {"$set": {"items": stored["items"], "updatedAt": at}, "$inc": {"version": 1}}
            await self.db.workoutBlocks.update_one(of_block, changed, session=session)
            of_exercise = {"companyId": company, "customerId": customer, "exerciseId": item["exerciseId"]}
            records = self.db.personalRecords.find({**of_exercise, "source": "log"}, session=session)
            best, [exercise] = await asyncio.gather(
                records.to_list(None), self.exercises(company, [item["exerciseId"]])
            )
            if not best:
                raise web.HTTPConflict
            entry = _change(api_key, customer, block, "logWorkoutItem", [before], [item])
            data = {"wblockId": block, "blockName": stored["name"], "day": stored["date"], "witemId": item_id}
            feed = {"_id": ObjectId(), "type": "item.logged", "sourceId": item_id, "hiddenBy": None}
            described = {**data, "itemType": item["type"], "itemName": exercise["name"]}
            entry |= {"feed": [{**feed, "data": described}], "feedCount": 1}
            earlier = {"companyId": company, "customerId": customer, "feedCount": {"$gt": 0}, "feed.sourceId": item_id}
            hidden = {"$set": {"feed.$[].hiddenBy": entry["_id"], "feedCount": 0}}
            await self.db.bareChanges.update_many(earlier, hidden, session=session)
            await self.db.bareChanges.insert_one(entry, session=session)
            return item | {"exercise": exercise}

        return _json(await self._in_transaction(write))

    async def _mark_client(
        self, company: ObjectId, customer: ObjectId, at: datetime, session: AsyncIOMotorClientSession
    ) -> None:
        """Write the two fields of a client that show that the calendar has changed."""
        of_client = {"$inc": {"scheduleChanges": 1}, "$set": {"figuresUntil": at}}
        await self.db.customers.update_one({"companyId": company, "_id": customer}, of_client, session=session)

    async def _in_transaction(self, write: Callable[[AsyncIOMotorClientSession], Awaitable[T]]) -> T:
        while True:
            try:
                async with await self.db.client.start_session() as session, session.start_transaction():
                    result = await write(session)
            except PyMongoError as error:
                if not error.has_error_label("TransientTransactionError"):
                    raise
            else:
                return result

    async def insert_blocks(self, request: web.Request) -> web.Response:
        """Insert blocks with items, and store the change, in one transaction."""
        api_key = await self.key(request)
        company = api_key["companyId"]
        customer = ObjectId(request.match_info["customerId"])
        body = orjson.loads(await request.read())
        sent = [item for block in body for item in block["items"]]
        ids = {ObjectId(item["exerciseId"]) for item in sent if "exerciseId" in item}
        *records, exercises = await asyncio.gather(
            self.company(company), self.customer(company, customer), self.exercises(company, ids)
        )
        if None in records or len(exercises) < len(ids):
            raise web.HTTPNotFound
        at = _now()
        common = {"companyId": company, "customerId": customer, "createdAt": at, "updatedAt": at, "version": 0}
        blocks = [
            {**block, **common, "_id": ObjectId(), "items": [_stored_item(item) for item in block["items"]]}
            for block in body
        ]
        entry = _change(api_key, customer, None, "copySchedule", [], blocks)

        async def write(session: AsyncIOMotorClientSession) -> None:
            await self.db.workoutBlocks.insert_many(blocks, session=session)
            await self._mark_client(company, customer, at, session)
            await self.db.bareChanges.insert_one(entry, session=session)

        await self._in_transaction(write)
        return _json(blocks, status=201)

    async def add_item_embedded(self, request: web.Request) -> web.Response:
        """Store a value and its change in one update of the block, without a transaction; `move_changes` moves it out."""
        company, customer, block = await self._block_of(request)
        at, item = _now(), orjson.loads(await request.read())
        entry = {"_id": ObjectId(), "createdAt": at, "patch": [item]}
        where = {"companyId": company, "customerId": customer, "_id": block}
        update = {"$set": {"bare": item, "updatedAt": at}, "$push": {"newChanges": entry}, "$inc": {"version": 1}}
        await self.db.workoutBlocks.update_one(where, update)
        return _json(item, status=201)

    async def add_item_separate(self, request: web.Request) -> web.Response:
        """Store the same value and its change in a transaction of two writes."""
        company, customer, block = await self._block_of(request)
        at, item = _now(), orjson.loads(await request.read())
        entry = {"companyId": company, "customerId": customer, "createdAt": at, "pending": True, "patch": [item]}
        where = {"companyId": company, "customerId": customer, "_id": block}
        update = {"$set": {"bare": item, "updatedAt": at}, "$inc": {"version": 1}}
        async with await self.db.client.start_session() as session, session.start_transaction():
            await self.db.workoutBlocks.update_one(where, update, session=session)
            await self.db.bareChanges.insert_one(entry, session=session)
        return _json(item, status=201)

    async def _block_of(self, request: web.Request) -> tuple[ObjectId, ObjectId, ObjectId]:
        company = (await self.key(request))["companyId"]
        return company, ObjectId(request.match_info["customerId"]), ObjectId(request.match_info["wblockId"])

    async def move_changes(self) -> None:
        """Follow the blocks, and move the changes in them to a collection of their own, as a sequencer would."""
        pipeline = [
            {"$match": {"updateDescription.updatedFields.bare": {"$exists": True}}},
            {"$project": {"documentKey": 1}},
        ]
        async with self.db.workoutBlocks.watch(pipeline, batch_size=500) as stream:
            while True:
                blocks = {(await stream.next())["documentKey"]["_id"]}
                while len(blocks) < 500 and (event := await stream.try_next()) is not None:
                    blocks.add(event["documentKey"]["_id"])
                where = {"_id": {"$in": list(blocks)}, "newChanges.0": {"$exists": True}}
                entries, emptied = [], []
                async for block in self.db.workoutBlocks.find(
                    where, {"companyId": 1, "customerId": 1, "newChanges": 1}
                ):
                    common = {"companyId": block["companyId"], "customerId": block["customerId"]}
                    entries += [{**common, **entry} for entry in block["newChanges"]]
                    ids = [entry["_id"] for entry in block["newChanges"]]
                    emptied.append(UpdateOne({"_id": block["_id"]}, {"$pull": {"newChanges": {"_id": {"$in": ids}}}}))
                if entries:
                    with suppress(BulkWriteError):  # moved already
                        await self.db.bareChanges.insert_many(entries, ordered=False)
                    await self.db.workoutBlocks.bulk_write(emptied, ordered=False)


async def _moving(app: web.Application) -> AsyncIterator[None]:
    task = asyncio.create_task(app[BARE].move_changes())
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def _change(
    api_key: dict[str, Any],
    customer: ObjectId,
    block: ObjectId | None,
    operation: str,
    before: list[dict[str, Any]],
    after: list[dict[str, Any]],
) -> dict[str, Any]:
    """A change with the fields of a stored change of the service, so that the same bytes and indexes are written.

    It has the items before and after. The name of the coach, which the service loads with the key, is left out.
    """
    at = _now()
    stamps = {"_id": ObjectId(), "companyId": api_key["companyId"], "createdAt": at, "updatedAt": at, "version": 0}
    document = {"collection": "workoutBlocks", "kind": "workout", "_id": block, "action": "changed"}
    event = {"type": "workout.updated", "customerId": customer, "data": {"wblockId": block}}
    return stamps | {
        "actor": {"type": "key", "_id": api_key["coachId"]},
        "via": "apiKey",
        "credentialId": api_key["_id"],
        "operation": operation,
        "customerId": customer,
        "documents": [{**document, "fromVersion": 0, "toVersion": 1}],
        "undoable": True,
        "events": [event],
        "eventCount": 1,
        "feed": [],
        "feedCount": 0,
        "feedAt": at,
        "pending": True,
        "undoneBy": None,
        "undoOf": None,
        "patch": [{"_id": block, "fields": [{"path": "items", "elements": True, "before": before, "after": after}]}],
        "patchUntil": at + timedelta(days=30),
    }


def _stored_item(item: dict[str, Any]) -> dict[str, Any]:
    exercise = ObjectId(item["exerciseId"]) if "exerciseId" in item else None
    return _stored(item, exercise) if exercise else {**item, "_id": ObjectId(), "exerciseIds": []}


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


def _stored(body: dict[str, Any], exercise: ObjectId) -> dict[str, Any]:
    """The item as the service stores it, field by field: the same bytes are written and the same indexes updated."""
    at = datetime.now(UTC).replace(tzinfo=None)
    none_done = {"sets": 0, "reps": 0, "volumeLoad": 0, "exercises": []}
    return {
        "_id": ObjectId(),
        **body,
        "exerciseId": exercise,
        "exerciseSets": [_UNSET | planned for planned in body["exerciseSets"]],
        "supersetId": None,
        "isCompleted": False,
        "completedAt": None,
        "comment": None,
        "pain": None,
        "customerSets": [],
        "createdAt": at,
        "updatedAt": at,
        "exerciseIds": [exercise],
        "doneExerciseIds": [],
        "tally": none_done,
    }


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(
        body=orjson.dumps(value, default=str, option=_OPTIONS), status=status, content_type="application/json"
    )


BARE = web.AppKey("bare", Bare)


async def app() -> web.Application:
    """The bare handlers on the paths of the service."""
    bare = Bare(os.environ)
    app = web.Application()
    app.router.add_get("/coach/customers", bare.customers)
    app.router.add_get("/coach/customers/{customerId}/wblock", bare.calendar)
    block = "/customers/{customerId}/wblocks/{wblockId}"
    app.router.add_post(f"/coach{block}/witems", bare.add_item)
    app.router.add_post(f"/logged{block}/witems", bare.add_item_in_transaction)
    app.router.add_post("/logged/customers/{customerId}/schedule/copy", bare.insert_blocks)
    app.router.add_put(f"/logged{block}/witems/{{itemId}}/log", bare.log_item_in_transaction)
    app.router.add_post(f"/embedded{block}/witems", bare.add_item_embedded)
    app.router.add_post(f"/separate{block}/witems", bare.add_item_separate)
    app[BARE] = bare
    if "MOVE_CHANGES" in os.environ:
        app.cleanup_ctx.append(_moving)
    return app


def serve(application: Awaitable[web.Application]) -> None:
    """Serve on PORT until SIGTERM."""
    port, loop = int(os.environ["PORT"]), uvloop.new_event_loop()
    web.run_app(application, host="127.0.0.1", port=port, access_log=None, print=lambda _: None, loop=loop)


if __name__ == "__main__":
    serve(app())
