"""What the bare handlers do, without a web framework: each operation gets a request and returns what is answered.

The same database and indexes as the service; the same look-ups (the key and its company, the client, the exercises
named), those that are independent at the same time; the same write with the same write concern. No validation, no
permissions, no log, and nothing derived, except for the second form of the week, which has the fields of the service's
response. A write exists twice: alone, and with all that the service writes with it, in one transaction.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeVar

import orjson
from bson import ObjectId
from pymongo.errors import PyMongoError
from pymongo.write_concern import WriteConcern

from benchmarks.drivers import Driver
from benchmarks.presented_week import present_week
from coaching_service.core.text import normalize, suffixes

T = TypeVar("T")
Document = dict[str, Any]
_PRIVATE = (
    *("sortName", "sortSurname", "search", "suf", "firstAccessHash", "scheduleChanges", "figuresUntil", "attention"),
    *("notifications", "language", "erasureRequestedAt"),
)
_PAGE_HIDES = dict.fromkeys(_PRIVATE, 0)
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
_ATTENTION_FIELDS = dict.fromkeys(("name", "surname", "profilePhoto", "customerRoleData", "attention"), 1)
_COUNTER_SLOTS = 8
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


class Operations:
    """The operations on one database. `lookup_key` is the key of the hashes by which API keys are stored."""

    def __init__(self, driver: Driver, lookup_key: bytes) -> None:
        self.driver, self.db, self._lookup_key = driver, driver.db, lookup_key
        # Counts of uses may be lost: as in the service, nothing waits for a majority or a disk.
        self._uses = self.db["bareUses"].with_options(write_concern=WriteConcern(w=1, j=False))

    # --- look-ups ----------------------------------------------------------------------------------------------------

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

    def exercises(self, company: ObjectId, ids: Iterable[ObjectId]) -> Awaitable[list[Document]]:
        """The exercises that the company has, with their names."""
        where = {"companyId": {"$in": [None, company]}, "_id": {"$in": list(ids)}}
        names: Awaitable[list[Document]] = self.db.exercises.find(where, _EXERCISE, hint="_id_").to_list(None)
        return names

    async def _with_exercises(self, company: ObjectId, blocks: list[Document]) -> list[Document]:
        """Blocks whose items have their exercises."""
        items = [item for block in blocks for item in block["items"] if "exerciseId" in item]
        ids = {item["exerciseId"] for item in items}
        exercises = {exercise["_id"]: exercise for exercise in await self.exercises(company, ids)}
        for item in items:
            item["exercise"] = exercises[item["exerciseId"]]
        return blocks

    # --- reads -------------------------------------------------------------------------------------------------------

    async def customers(self, call: Call) -> Document:
        """A page of clients and their exact number."""
        company = (await self.key(call))["companyId"]
        where = {"companyId": company, "customerRoleData.isArchived": call.query["archived"] == "true"}
        size, page = int(call.query["pageSize"]), int(call.query["pageNum"])
        cursor = self.db.customers.find(where, _PAGE_HIDES, sort=_PAGE_ORDER, skip=(page - 1) * size, limit=size)
        docs, total = await asyncio.gather(cursor.to_list(None), self.db.customers.count_documents(where))
        return {"docs": docs, "totalDocs": total}

    async def calendar(self, call: Call) -> list[Document]:
        """The blocks of a client's week as they are stored, with the names of their exercises."""
        _, blocks = await self._week(call)
        return blocks

    async def presented_calendar(self, call: Call) -> list[Document]:
        """The same blocks with the fields that the service derives from them."""
        company, blocks = await self._week(call)
        return present_week(blocks, company["loadUnit"])

    async def _week(self, call: Call) -> tuple[Document, list[Document]]:
        """The company, and the blocks of a client's week with the names of their exercises."""
        company = (await self.key(call))["companyId"]
        customer = ObjectId(call.path["customerId"])
        days = {"$gte": call.query["startDate"], "$lte": call.query["endDate"]}
        where = {"companyId": company, "customerId": customer, "date": days}
        found_company, found_customer, blocks = await asyncio.gather(
            self.company(company),
            self.customer(company, customer),
            self.db.workoutBlocks.find(where, _BLOCK_HIDES, sort=_BLOCK_ORDER).to_list(None),
        )
        if found_company is None or found_customer is None:
            raise Refused(404)
        return found_company, await self._with_exercises(company, blocks)

    async def attention(self, call: Call) -> Document:
        """The clients who need attention, highest score first."""
        company, limit = (await self.key(call))["companyId"], int(call.query["limit"])
        where = {"companyId": company, "customerRoleData.isArchived": False, "attention.score": {"$gt": 0}}
        order = [("attention.score", -1), ("_id", 1)]
        clients = await self.db.customers.find(where, _ATTENTION_FIELDS, sort=order, limit=limit + 1).to_list(None)
        return {"docs": [_attention_entry(client) for client in clients[:limit]], "hasMore": len(clients) > limit}

    async def events(self, call: Call) -> Document:
        """The events after a number, oldest first."""
        company, limit, after = (await self.key(call))["companyId"], int(call.query["limit"]), int(call.query["after"])
        stages: list[Document] = [
            {"$match": {"companyId": company, "last": {"$gt": after}}},
            {"$sort": {"last": 1}},
            {"$limit": limit + 1},
            {"$unwind": "$changes"},
            {"$match": {"changes.lastSeq": {"$gt": after}}},
            {"$limit": limit + 1},
            {"$replaceWith": "$changes"},
        ]
        numbered = await self.driver.aggregate("changeNumbers", stages)
        where = {"_id": {"$in": [change["_id"] for change in numbered]}, "companyId": company}
        fields = {"seq": 1, "createdAt": 1, "actor": 1, "events": 1}
        changes = await self.db.changes.find(where, fields, hint="_id_").to_list(None)
        changes.sort(key=lambda change: change["seq"])
        events = [event for change in changes for event in _events_of(change) if event["seq"] > after]
        return {"docs": events[:limit], "hasMore": len(events) > limit}

    # --- a new client ------------------------------------------------------------------------------------------------

    async def create_customer(self, call: Call) -> Document:
        """Insert a client."""
        company = (await self.key(call))["companyId"]
        token, document = new_customer(company, call.body)
        await self.db.customers.insert_one(document)
        return _shown_customer(document) | {"firstAccessToken": token}

    async def create_customer_in_transaction(self, call: Call) -> Document:
        """Insert a client with the entries of the search, count it, and store the change, in one transaction.

        Like the service it reads which metric sets are assigned to new clients; there are none.
        """
        api_key = await self.key(call)
        company = api_key["companyId"]
        token, document = new_customer(company, call.body)
        document |= _search_fields(document)
        entry = customer_change(api_key, document)
        slot = {"companyId": company, "slot": secrets.randbelow(_COUNTER_SLOTS)}
        counted = {"$inc": {"active": 1, "archived": 0}}
        automatic = {"companyId": company, "deletedAt": None, "assignAutomatically": True}

        async def write(session: Any) -> None:
            await self.db.customers.insert_one(document, session=session)
            await self.db.customerTotals.update_one(slot, counted, upsert=True, session=session)
            await self.db.metricSets.find(automatic, session=session).to_list(None)
            await self.db.bareChanges.insert_one(entry, session=session)

        await self.in_transaction(write)
        return _shown_customer(document) | {"firstAccessToken": token}

    # --- an item -----------------------------------------------------------------------------------------------------

    async def add_item(self, call: Call) -> Document:
        """Add an item to a block, if its client and its exercise exist."""
        company = (await self.key(call))["companyId"]
        item, exercise = await self._new_item(company, call)
        where, push = _push(company, call, item)
        if not (await self.db.workoutBlocks.update_one(where, push)).modified_count:
            raise Refused(404)
        return item | {"exercise": exercise}

    async def add_item_in_transaction(self, call: Call) -> Document:
        """Add an item and store the change, with the same writes as the service, in one transaction."""
        api_key = await self.key(call)
        company = api_key["companyId"]
        customer, block = (ObjectId(call.path[name]) for name in ("customerId", "wblockId"))
        item, exercise = await self._new_item(company, call)
        where, push = _push(company, call, item)
        entry = block_change(api_key, customer, block, "createWorkoutItem", [], [item])

        async def write(session: Any) -> None:
            await self.db.workoutBlocks.update_one(where, push, session=session)
            await self._mark_client(company, customer, item["updatedAt"], session)
            await self.db.bareChanges.insert_one(entry, session=session)

        await self.in_transaction(write)
        uses = {"companyId": company, "exerciseId": item["exerciseId"]}
        await self._uses.update_one(uses, {"$inc": {"count": 1}}, upsert=True)
        return item | {"exercise": exercise}

    async def _new_item(self, company: ObjectId, call: Call) -> tuple[Document, Document]:
        """The item as it is stored, and its exercise. Raises Refused if the client or the exercise does not exist."""
        exercise, customer = ObjectId(call.body["exerciseId"]), ObjectId(call.path["customerId"])
        *records, exercises = await asyncio.gather(
            self.company(company), self.customer(company, customer), self.exercises(company, [exercise])
        )
        if None in records or not exercises:
            raise Refused(404)
        return _stored(call.body, exercise), exercises[0]

    # --- a log -------------------------------------------------------------------------------------------------------

    async def log_item(self, call: Call) -> Document:
        """Store what was done for an item."""
        company, item_id = (await self.key(call))["companyId"], ObjectId(call.path["itemId"])
        of_block = await self._known_block(company, call)
        stored = await self.db.workoutBlocks.find_one(of_block, {"items": 1})
        item = _logged(stored, item_id, call.body, now())
        [exercise] = await self.exercises(company, [item["exerciseId"]])
        changed = {"$set": {"items.$": item, "updatedAt": item["updatedAt"]}, "$inc": {"version": 1}}
        await self.db.workoutBlocks.update_one({**of_block, "items._id": item_id}, changed)
        return item | {"exercise": exercise}

    async def log_item_in_transaction(self, call: Call) -> Document:
        """Store what was done for an item and the change, with the same reads and writes as the service.

        The write to the client comes first, so that two logs of one client wait for each other. The logs that are
        measured beat no personal record: those of the exercise are read, and none is written.
        """
        api_key = await self.key(call)
        company, item_id = api_key["companyId"], ObjectId(call.path["itemId"])
        of_block = await self._known_block(company, call)
        customer, block = of_block["customerId"], of_block["_id"]

        async def write(session: Any) -> Document:
            at = now()
            await self._mark_client(company, customer, at, session)
            stored = await self.db.workoutBlocks.find_one(of_block, _BLOCK_HIDES, session=session)
            before = _item_of(stored, item_id)
            item = _logged(stored, item_id, call.body, at)
            changed = {"$set": {"items.$": item, "updatedAt": at}, "$inc": {"version": 1}}
            await self.db.workoutBlocks.update_one({**of_block, "items._id": item_id}, changed, session=session)
            of_exercise = {"companyId": company, "customerId": customer, "exerciseId": item["exerciseId"]}
            records = self.db.personalRecords.find({**of_exercise, "source": "log"}, session=session)
            best, [exercise] = await asyncio.gather(
                records.to_list(None), self.exercises(company, [item["exerciseId"]])
            )
            if not best:
                raise Refused(409)
            entry = block_change(api_key, customer, block, "logWorkoutItem", [before], [item])
            data = {"wblockId": block, "blockName": stored["name"], "day": stored["date"], "witemId": item_id}
            feed = {"_id": ObjectId(), "type": "item.logged", "sourceId": item_id, "hiddenBy": None}
            described = {**data, "itemType": item["type"], "itemName": exercise["name"]}
            entry |= {"feed": [{**feed, "data": described}], "feedCount": 1}
            earlier = {"companyId": company, "customerId": customer, "feedCount": {"$gt": 0}, "feed.sourceId": item_id}
            hidden = {"$set": {"feed.$[].hiddenBy": entry["_id"], "feedCount": 0}}
            await self.db.bareChanges.update_many(earlier, hidden, session=session)
            await self.db.bareChanges.insert_one(entry, session=session)
            return item | {"exercise": exercise}

        return await self.in_transaction(write)

    async def _known_block(self, company: ObjectId, call: Call) -> Document:
        """The filter of the block in the path. Raises Refused if its client does not exist."""
        customer, block = (ObjectId(call.path[name]) for name in ("customerId", "wblockId"))
        if None in await asyncio.gather(self.company(company), self.customer(company, customer)):
            raise Refused(404)
        return {"companyId": company, "customerId": customer, "_id": block}

    # --- a week ------------------------------------------------------------------------------------------------------

    async def insert_blocks(self, call: Call) -> list[Document]:
        """Insert blocks with items, and store the change, in one transaction."""
        api_key = await self.key(call)
        company, customer = api_key["companyId"], ObjectId(call.path["customerId"])
        sent = [item for block in call.body for item in block["items"]]
        ids = {ObjectId(item["exerciseId"]) for item in sent if "exerciseId" in item}
        *records, exercises = await asyncio.gather(
            self.company(company), self.customer(company, customer), self.exercises(company, ids)
        )
        if None in records or len(exercises) < len(ids):
            raise Refused(404)
        at = now()
        common = {"companyId": company, "customerId": customer, "createdAt": at, "updatedAt": at, "version": 0}
        blocks = [
            {**block, **common, "_id": ObjectId(), "items": [_stored_item(item) for item in block["items"]]}
            for block in call.body
        ]
        await self._insert_with_change(api_key, customer, blocks)
        return blocks

    async def copy_week(self, call: Call) -> Document:
        """Copy the blocks of some days to others, heavier."""
        company, customer = (await self.key(call))["companyId"], ObjectId(call.path["customerId"])
        copies = await self._copies(company, customer, call.body)
        await self.db.workoutBlocks.insert_many(copies)
        return await self._shown_copies(company, copies)

    async def copy_week_in_transaction(self, call: Call) -> Document:
        """Copy the blocks of some days to others, heavier, and store the change, in one transaction."""
        api_key = await self.key(call)
        company, customer = api_key["companyId"], ObjectId(call.path["customerId"])
        copies = await self._copies(company, customer, call.body)
        await self._insert_with_change(api_key, customer, copies)
        return await self._shown_copies(company, copies)

    async def _copies(self, company: ObjectId, customer: ObjectId, body: Document) -> list[Document]:
        if None in await asyncio.gather(self.company(company), self.customer(company, customer)):
            raise Refused(404)
        days = {"$gte": body["startDate"], "$lte": body["endDate"]}
        where = {"companyId": company, "customerId": customer, "date": days}
        blocks = await self.db.workoutBlocks.find(where, sort=_BLOCK_ORDER).to_list(None)
        later = date.fromisoformat(body["targetDate"]) - date.fromisoformat(body["startDate"])
        return [_copied(block, later, body["progression"]["load"]["add"]) for block in blocks]

    async def _shown_copies(self, company: ObjectId, copies: list[Document]) -> Document:
        shown = [
            {name: value for name, value in block.items() if name not in _BLOCK_HIDES}
            | {"items": [dict(item) for item in block["items"]]}
            for block in copies
        ]
        return {"created": await self._with_exercises(company, shown)}

    async def _insert_with_change(self, api_key: Document, customer: ObjectId, blocks: list[Document]) -> None:
        company, at = api_key["companyId"], now()
        entry = block_change(api_key, customer, None, "copySchedule", [], blocks)

        async def write(session: Any) -> None:
            await self.db.workoutBlocks.insert_many(blocks, session=session)
            last = max(block["date"] for block in blocks)
            await self._mark_client(company, customer, at, session, last_workout=last)
            await self.db.bareChanges.insert_one(entry, session=session)

        await self.in_transaction(write)

    # --- transactions ------------------------------------------------------------------------------------------------

    async def _mark_client(
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


# --- documents -------------------------------------------------------------------------------------------------------


def new_customer(company: ObjectId, body: Document) -> tuple[str, Document]:
    """The token for the first access of a new client, and the document as the service stores it, without its search."""
    token, at = str(uuid.uuid4()), now()
    given = {name: body.get(name) for name in ("name", "surname", "email", "phone", "birthday", "timezone")}
    rates = ("complianceRate7d", "complianceRate30d", "complianceRate90d", "complianceDate")
    return token, {
        "_id": ObjectId(),
        "companyId": company,
        **given,
        "role": "CUSTOMER",
        "profilePhoto": None,
        "lastActivityDate": None,
        "customerRoleData": {
            "isArchived": False,
            "groups": [],
            "assignedTo": None,
            "customerType": "REAL",
            **dict.fromkeys((*rates, "lastWorkoutDate", "lastTrainedDate", "firstLoginDate")),
        },
        "firstAccessHash": hashlib.sha256(token.encode()).hexdigest(),
        "figuresUntil": at,
        "sortName": normalize(body["name"]),
        "sortSurname": normalize(body.get("surname") or ""),
        "createdAt": at,
        "updatedAt": at,
        "version": 0,
    }


def _search_fields(customer: Document) -> Document:
    full_name = normalize(f"{customer['name']} {customer['surname'] or ''}")
    email = normalize(customer["email"] or "")
    return {"search": f"{full_name}\n{email}", "suf": suffixes(full_name, email)}


def _shown_customer(customer: Document) -> Document:
    shown = {name: value for name, value in customer.items() if name not in _PAGE_HIDES and name != "profilePhoto"}
    return shown | {"profilePhotoUrl": None}


def _attention_entry(client: Document) -> Document:
    role, attention = client["customerRoleData"], client["attention"]
    shown = {name: role[name] for name in ("groups", "assignedTo", "lastTrainedDate", "complianceRate7d")}
    names = {name: client[name] for name in ("_id", "name", "surname")}
    customer = {**names, "profilePhotoUrl": None, **shown}
    return {"customer": customer, "score": attention["score"], "reasons": attention["reasons"]}


def _events_of(change: Document) -> list[Document]:
    actor = {"type": change["actor"]["type"], "_id": change["actor"]["_id"]}
    return [
        {
            "id": f"{change['_id']}.{number}",
            "seq": change["seq"] + number,
            "type": event["type"],
            "createdAt": change["createdAt"],
            "customerId": event["customerId"],
            "actor": actor,
            "data": event["data"],
        }
        for number, event in enumerate(change["events"])
    ]


def _entry(api_key: Document, customer: ObjectId, operation: str, document: Document, event: str) -> Document:
    """A change with the fields of a stored change of the service, so that the same bytes and indexes are written.

    The name of the coach, which the service loads with the key, is left out.
    """
    at = now()
    data = {"wblockId": document["_id"]} if document["kind"] == "workout" else {"customerId": customer}
    return {
        "_id": ObjectId(),
        "companyId": api_key["companyId"],
        "createdAt": at,
        "updatedAt": at,
        "version": 0,
        "actor": {"type": "key", "_id": api_key["coachId"]},
        "via": "apiKey",
        "credentialId": api_key["_id"],
        "operation": operation,
        "customerId": customer,
        "documents": [document],
        "undoable": False,
        "events": [{"type": event, "customerId": customer, "data": data}],
        "eventCount": 1,
        "feed": [],
        "feedCount": 0,
        "feedAt": at,
        "pending": True,
        "undoneBy": None,
        "undoOf": None,
    }


def customer_change(api_key: Document, customer: Document) -> Document:
    """The change of creating a client, which cannot be undone and so has no values."""
    document = {"collection": "customers", "kind": "customer", "_id": customer["_id"], "action": "created"}
    versions = {"fromVersion": 0, "toVersion": 0}
    return _entry(api_key, customer["_id"], "createCustomer", {**document, **versions}, "customer.created")


def block_change(
    api_key: Document,
    customer: ObjectId,
    block: ObjectId | None,
    operation: str,
    before: list[Document],
    after: list[Document],
) -> Document:
    """The change of blocks, with the items or blocks before and after."""
    document = {"collection": "workoutBlocks", "kind": "workout", "_id": block, "action": "changed"}
    entry = _entry(api_key, customer, operation, {**document, "fromVersion": 0, "toVersion": 1}, "workout.updated")
    fields = [{"path": "items", "elements": True, "before": before, "after": after}]
    undo = {"patch": [{"_id": block, "fields": fields}], "patchUntil": entry["createdAt"] + timedelta(days=30)}
    return entry | {"undoable": True} | undo


def _item_of(block: Document | None, item_id: ObjectId) -> Document:
    for item in block["items"] if block else []:
        if item["_id"] == item_id:
            return dict(item)
    raise Refused(404)


def _logged(block: Document | None, item_id: ObjectId, body: Document, at: datetime) -> Document:
    sets = [_NOT_DONE | done | {"isCompleted": True} for done in body["customerSets"]]
    for each in sets:
        del each["type"]
    return _item_of(block, item_id) | {"customerSets": sets, "isCompleted": True, "updatedAt": at}


def _push(company: ObjectId, call: Call, item: Document) -> tuple[Document, Document]:
    """The filter of a block, and the update that adds an item to it."""
    customer, block = (ObjectId(call.path[name]) for name in ("customerId", "wblockId"))
    where = {"companyId": company, "customerId": customer, "_id": block}
    return where, {"$push": {"items": item}, "$set": {"updatedAt": item["updatedAt"]}, "$inc": {"version": 1}}


def _copied(block: Document, later: timedelta, added: float) -> Document:
    """A copy of a block on a later day, with nothing done and heavier sets."""
    at = now()
    day = str(date.fromisoformat(block["date"]) + later)
    stamps = {"_id": ObjectId(), "createdAt": at, "updatedAt": at, "version": 0}
    return block | stamps | {"date": day, "items": [_copied_item(item, at, added) for item in block["items"]]}


def _copied_item(item: Document, at: datetime, added: float) -> Document:
    copy = {**item, "_id": ObjectId(), "createdAt": at, "updatedAt": at, "isCompleted": False, "customerSets": []}
    if "exerciseSets" in item:
        copy["exerciseSets"] = [
            planned | {"load": planned["load"] + added} if planned.get("load") else planned
            for planned in item["exerciseSets"]
        ]
    return copy


def _stored_item(item: Document) -> Document:
    exercise = ObjectId(item["exerciseId"]) if "exerciseId" in item else None
    return _stored(item, exercise) if exercise else {**item, "_id": ObjectId(), "exerciseIds": []}


def _stored(body: Document, exercise: ObjectId) -> Document:
    """The item as the service stores it, field by field: the same bytes are written and the same indexes updated."""
    at = now()
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


def now() -> datetime:
    """The time as it is stored: UTC, without a time zone, in milliseconds."""
    at = datetime.now(UTC).replace(tzinfo=None)
    return at.replace(microsecond=at.microsecond // 1000 * 1000)
