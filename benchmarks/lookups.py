"""A request to the bare handlers, the look-ups that several operations make, and their transactions."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import orjson
from bson import ObjectId
from pymongo.errors import PyMongoError

from benchmarks.drivers import Driver
from benchmarks.stored_documents import Document

T = TypeVar("T")
# As the service, `loadType` only of exercises whose loads are assistance.
_LOAD_TYPE = {"$cond": [{"$eq": ["$loadType", "assistance"]}, "$loadType", "$$REMOVE"]}
_EXERCISE = {"name": 1, "defaultInstructions": 1, "loadType": _LOAD_TYPE}
_OPTIONS = orjson.OPT_NAIVE_UTC | orjson.OPT_UTC_Z


class Refused(Exception):
    """A request without a key of the company, or about something that does not exist; `status` is that of HTTP."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True)
class Call:
    """A request: the key in its header, the values of its path, its query and its JSON body."""

    key: str
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Any = None


Operation = Callable[[Call], Awaitable[Any]]


def to_json(value: Any) -> bytes:
    """The JSON of documents, with identifiers as text and times in UTC."""
    return orjson.dumps(value, default=str, option=_OPTIONS)


class Lookups:
    """The look-ups in one database. `lookup_key` is the key of the hashes by which API keys are stored."""

    def __init__(self, driver: Driver, lookup_key: bytes) -> None:
        self.driver, self.db, self._lookup_key = driver, driver.db, lookup_key

    async def key(self, call: Call) -> Document:
        """The record of the request's key. Raises Refused."""
        hashed = hmac.new(self._lookup_key, call.key.encode(), hashlib.sha256).hexdigest()
        api_key: Document | None = await self.db.apiKeys.find_one({"hash": hashed})
        if api_key is None:
            raise Refused(401)
        return api_key

    def company(self, company: ObjectId) -> Awaitable[Document | None]:
        """The company, or None."""
        company_record: Awaitable[Document | None] = self.db.companies.find_one({"_id": company})
        return company_record

    def customer(self, company: ObjectId, customer: ObjectId) -> Awaitable[Document | None]:
        """The client, or None."""
        where = {"companyId": company, "_id": customer}
        client: Awaitable[Document | None] = self.db.customers.find_one(where, {"customerRoleData.assignedTo": 1})
        return client

    async def of_client(
        self, company: ObjectId, call: Call, read: Awaitable[list[Document]]
    ) -> tuple[Document, list[Document]]:
        """The company, and what is read at the same time. Raises Refused if there is no company or no client."""
        records = self.company(company), self.customer(company, ObjectId(call.path["customerId"]))
        found_company, client, documents = await asyncio.gather(*records, read)
        if found_company is None or client is None:
            raise Refused(404)
        return found_company, documents

    async def require_client(self, company: ObjectId, call: Call) -> None:
        customer = ObjectId(call.path["customerId"])
        if None in await asyncio.gather(self.company(company), self.customer(company, customer)):
            raise Refused(404)

    def exercises(self, company: ObjectId, ids: Iterable[ObjectId]) -> Awaitable[list[Document]]:
        """The exercises that the company has, with their names."""
        where = {"companyId": {"$in": [None, company]}, "_id": {"$in": list(ids)}}
        names: Awaitable[list[Document]] = self.db.exercises.find(where, _EXERCISE, hint="_id_").to_list(None)
        return names

    async def with_exercises(self, company: ObjectId, blocks: list[Document]) -> list[Document]:
        """Blocks whose items have their exercises."""
        items = [item for block in blocks for item in block["items"] if "exerciseId" in item]
        ids = {item["exerciseId"] for item in items}
        exercises = {exercise["_id"]: exercise for exercise in await self.exercises(company, ids)}
        for item in items:
            item["exercise"] = exercises[item["exerciseId"]]
        return blocks

    async def mark_client(
        self, company: ObjectId, customer: ObjectId, at: datetime, session: Any, *, last_workout: str | None = None
    ) -> None:
        """Write the fields of a client that show that the calendar has changed, as the service does.

        `last_workout`: the last date of new blocks, None if there are none.
        """
        of_client: Document = {"$inc": {"scheduleChanges": 1}, "$min": {"figuresUntil": at}}
        if last_workout is not None:
            of_client["$max"] = {"customerRoleData.lastWorkoutDate": last_workout}
        await self.db.customers.update_one({"companyId": company, "_id": customer}, of_client, session=session)

    async def in_transaction(self, write: Callable[[Any], Awaitable[T]]) -> T:
        """Run `write` with a session in a transaction, again as long as it conflicts with others."""
        while True:
            try:
                async with self.driver.transaction() as session:
                    result = await write(session)
            except PyMongoError as error:
                if not error.has_error_label("TransientTransactionError"):
                    raise
            else:
                return result


def block_of(company: ObjectId, call: Call) -> Document:
    """The filter of the block in the path."""
    customer, block = (ObjectId(call.path[name]) for name in ("customerId", "wblockId"))
    return {"companyId": company, "customerId": customer, "_id": block}
