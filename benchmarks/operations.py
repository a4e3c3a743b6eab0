"""What the bare handlers do, without a web framework: each operation gets a request and returns what is answered.

The same database and indexes as the service; the same look-ups (the key and its company, the client, the exercises
named), those that are independent at the same time; the same write with the same write concern. No validation, no
permissions, no log, and nothing derived, except for the second form of the week, which has the fields of the service's
response. A write exists twice: alone, and with all that the service writes with it, in one transaction.
"""

from __future__ import annotations

import asyncio
import secrets
from datetime import date, datetime
from typing import Any

from bson import ObjectId
from pymongo.write_concern import WriteConcern

from benchmarks.drivers import Driver
from benchmarks.lookups import Call, Lookups, Refused, block_of
from benchmarks.presented_week import present_week
from benchmarks.stored_documents import (
    BLOCK_HIDES,
    NOT_DONE,
    PAGE_HIDES,
    Document,
    attention_entry,
    block_change,
    copied_block,
    customer_change,
    events_of,
    new_customer,
    now,
    search_fields,
    shown_customer,
    stored_exercise,
)

_PAGE_ORDER = [("sortName", 1), ("sortSurname", 1), ("_id", 1)]
_BLOCK_ORDER = [("date", 1), ("position", 1), ("_id", 1)]
_ATTENTION_FIELDS = dict.fromkeys(("name", "surname", "profilePhoto", "customerRoleData", "attention"), 1)
_COUNTER_SLOTS = 8


class Operations(Lookups):
    """The operations on one database. `lookup_key` is the key of the hashes by which API keys are stored."""

    def __init__(self, driver: Driver, lookup_key: bytes) -> None:
        super().__init__(driver, lookup_key)
        # Counts of uses may be lost: as in the service, nothing waits for a majority or a disk.
        self._uses = self.db["bareUses"].with_options(write_concern=WriteConcern(w=1, j=False))

    # --- reads -------------------------------------------------------------------------------------------------------

    async def customers(self, call: Call) -> Document:
        """A page of clients and their exact number."""
        company = (await self.key(call))["companyId"]
        where = {"companyId": company, "customerRoleData.isArchived": call.query["archived"] == "true"}
        size, page = int(call.query["pageSize"]), int(call.query["pageNum"])
        cursor = self.db.customers.find(where, PAGE_HIDES, sort=_PAGE_ORDER, skip=(page - 1) * size, limit=size)
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
        stored = self.db.workoutBlocks.find(where, BLOCK_HIDES, sort=_BLOCK_ORDER).to_list(None)
        found_company, blocks = await self.of_client(company, call, stored)
        return found_company, await self.with_exercises(company, blocks)

    async def attention(self, call: Call) -> Document:
        """The clients who need attention, highest score first."""
        company, limit = (await self.key(call))["companyId"], int(call.query["limit"])
        where = {"companyId": company, "customerRoleData.isArchived": False, "attention.score": {"$gt": 0}}
        order = [("attention.score", -1), ("_id", 1)]
        clients = await self.db.customers.find(where, _ATTENTION_FIELDS, sort=order, limit=limit + 1).to_list(None)
        return {"docs": [attention_entry(client) for client in clients[:limit]], "hasMore": len(clients) > limit}

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
        events = [event for change in changes for event in events_of(change) if event["seq"] > after]
        return {"docs": events[:limit], "hasMore": len(events) > limit}

    # --- a new client ------------------------------------------------------------------------------------------------

    async def create_customer(self, call: Call) -> Document:
        """Insert a client."""
        company = (await self.key(call))["companyId"]
        token, document = new_customer(company, call.body)
        await self.db.customers.insert_one(document)
        return shown_customer(document) | {"firstAccessToken": token}

    async def create_customer_in_transaction(self, call: Call) -> Document:
        """Insert a client with the entries of the search, count it, and store the change, in one transaction.

        Like the service it reads which metric sets are assigned to new clients; there are none.
        """
        api_key = await self.key(call)
        company = api_key["companyId"]
        token, document = new_customer(company, call.body)
        document |= search_fields(document)
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
        return shown_customer(document) | {"firstAccessToken": token}

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
        item, exercise = await self._new_item(company, call)
        where, push = _push(company, call, item)
        customer = where["customerId"]
        entry = block_change(api_key, customer, where["_id"], "createWorkoutItem", [], [item])

        async def write(session: Any) -> None:
            await self.db.workoutBlocks.update_one(where, push, session=session)
            await self.mark_client(company, customer, item["updatedAt"], session)
            await self.db.bareChanges.insert_one(entry, session=session)

        await self.in_transaction(write)
        uses = {"companyId": company, "exerciseId": item["exerciseId"]}
        await self._uses.update_one(uses, {"$inc": {"count": 1}}, upsert=True)
        return item | {"exercise": exercise}

    async def _new_item(self, company: ObjectId, call: Call) -> tuple[Document, Document]:
        """The item as it is stored, and its exercise. Raises Refused if the client or the exercise does not exist."""
        exercise = ObjectId(call.body["exerciseId"])
        _, exercises = await self.of_client(company, call, self.exercises(company, [exercise]))
        if not exercises:
            raise Refused(404)
        return stored_exercise(call.body, exercise), exercises[0]

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
            await self.mark_client(company, customer, at, session)
            stored = await self.db.workoutBlocks.find_one(of_block, BLOCK_HIDES, session=session)
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
        await self.require_client(company, call)
        return block_of(company, call)

    # --- a week ------------------------------------------------------------------------------------------------------

    async def copy_week(self, call: Call) -> Document:
        """Copy the blocks of some days to others, heavier."""
        company = (await self.key(call))["companyId"]
        copies = await self._copies(company, call)
        await self.db.workoutBlocks.insert_many(copies)
        return await self._shown_copies(company, copies)

    async def copy_week_in_transaction(self, call: Call) -> Document:
        """Copy the blocks of some days to others, heavier, and store the change, in one transaction."""
        api_key = await self.key(call)
        company, customer = api_key["companyId"], ObjectId(call.path["customerId"])
        copies = await self._copies(company, call)
        await self._insert_with_change(api_key, customer, copies)
        return await self._shown_copies(company, copies)

    async def _copies(self, company: ObjectId, call: Call) -> list[Document]:
        await self.require_client(company, call)
        body, customer = call.body, ObjectId(call.path["customerId"])
        days = {"$gte": body["startDate"], "$lte": body["endDate"]}
        where = {"companyId": company, "customerId": customer, "date": days}
        blocks = await self.db.workoutBlocks.find(where, sort=_BLOCK_ORDER).to_list(None)
        later = date.fromisoformat(body["targetDate"]) - date.fromisoformat(body["startDate"])
        return [copied_block(block, later, body["progression"]["load"]["add"]) for block in blocks]

    async def _shown_copies(self, company: ObjectId, copies: list[Document]) -> Document:
        shown = [
            {name: value for name, value in block.items() if name not in BLOCK_HIDES}
            | {"items": [dict(item) for item in block["items"]]}
            for block in copies
        ]
        return {"created": await self.with_exercises(company, shown)}

    async def _insert_with_change(self, api_key: Document, customer: ObjectId, blocks: list[Document]) -> None:
        company, at = api_key["companyId"], now()
        entry = block_change(api_key, customer, None, "copySchedule", [], blocks)

        async def write(session: Any) -> None:
            await self.db.workoutBlocks.insert_many(blocks, session=session)
            last = max(block["date"] for block in blocks)
            await self.mark_client(company, customer, at, session, last_workout=last)
            await self.db.bareChanges.insert_one(entry, session=session)

        await self.in_transaction(write)


def _item_of(block: Document | None, item_id: ObjectId) -> Document:
    for item in block["items"] if block else []:
        if item["_id"] == item_id:
            return dict(item)
    raise Refused(404)


def _logged(block: Document | None, item_id: ObjectId, body: Document, at: datetime) -> Document:
    sets = [NOT_DONE | done | {"isCompleted": True} for done in body["customerSets"]]
    for each in sets:
        del each["type"]
    return _item_of(block, item_id) | {"customerSets": sets, "isCompleted": True, "updatedAt": at}


def _push(company: ObjectId, call: Call, item: Document) -> tuple[Document, Document]:
    """The filter of a block, and the update that adds an item to it."""
    where = block_of(company, call)
    return where, {"$push": {"items": item}, "$set": {"updatedAt": item["updatedAt"]}, "$inc": {"version": 1}}
