"""The number of clients of each company, and of each of its groups, updated in the transaction that changes it.

Each is spread over a few documents, so that concurrent transactions rarely write to the same one.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple, NotRequired, TypedDict

from coaching_service.core.database.checks import Check, CountRead, Finding, Occurrences
from coaching_service.core.database.connection import allow_seconds
from coaching_service.core.database.context import Context, Services, in_transaction, reading_snapshot
from coaching_service.core.database.declared import Index, NotExported
from coaching_service.core.database.documents import Document, Documents, PipelineStage
from coaching_service.core.ids import ObjectId, stable_id
from coaching_service.core.jobs import queue
from coaching_service.people.customers.models import Customer, CustomerGroup, CustomerRoleData, NewCustomerDocument

SLOTS = 8
# The job that counts the clients of a database that older code has used; the migration `group_totals` stores it.
COUNT_GROUPS = "count_groups"
_JOB_ID = stable_id("job", COUNT_GROUPS)
_COUNTING_SECONDS = 55.0  # MongoDB aborts a transaction after 60
_CLIENTS = "customers"
_FIELDS = ("active", "archived")


class CustomerCount(TypedDict):
    """One of several documents whose sums are the numbers of active and archived clients of a company."""

    _id: ObjectId
    companyId: ObjectId
    slot: int
    active: NotRequired[int]
    archived: NotRequired[int]


class GroupTotal(CustomerCount):
    """One of several documents whose sums are the numbers of active and archived clients in a group of a company."""

    group: str


_counts = Documents[CustomerCount](
    "customerTotals",
    (Index(("slot",), unique=True),),
    cross_company_reason="numbers of all companies are listed and checked",
    transfer=NotExported("counted again as clients are imported"),
)
_totals = Documents[GroupTotal](
    "groupTotals",
    (Index(("group", "slot"), unique=True),),
    cross_company_reason="numbers of all companies are checked",
    transfer=NotExported("counted again as clients are imported"),
)
_BY_GROUP = _totals.index_name("group", "slot")


async def count(ctx: Context, customers: Sequence[Customer | NewCustomerDocument], sign: int) -> None:
    """Count clients who have been created (`sign` 1) or deleted (-1), in the caller's transaction."""
    clients = [customer["customerRoleData"] for customer in customers]
    await (count_changed(ctx, (), clients) if sign > 0 else count_changed(ctx, clients, ()))


async def count_changed(ctx: Context, before: Sequence[CustomerRoleData], after: Sequence[CustomerRoleData]) -> None:
    """Count clients who were archived or restored, or have joined or left groups, in the caller's transaction.

    All numbers of one call are in documents of the same slot: clients of many groups collide no more than others.
    """
    slot, clients, members = secrets.randbelow(SLOTS), Counter[str](), Counter[tuple[str, str]]()
    for sign, roles in ((1, after), (-1, before)):
        for each in roles:
            field = _FIELDS[each["isArchived"]]
            clients[field] += sign
            members.update(dict.fromkeys(((group, field) for group in each["groups"]), sign))
    if any(clients.values()):
        change = {field: clients[field] for field in _FIELDS}
        await _counts.increment_each(ctx, [({"slot": slot}, change)])
    changes: dict[str, Document] = {}
    for (group, field), number in members.items():
        if number:
            changes.setdefault(group, {})[field] = number
    await _totals.increment_each(ctx, [({"group": group, "slot": slot}, each) for group, each in changes.items()])


# --- Reading ---------------------------------------------------------------------------------------------------------


async def read_of_companies(services: Services, company_ids: Sequence[ObjectId]) -> dict[ObjectId, tuple[int, int]]:
    """Return the numbers of active and of archived clients of each company that has had any."""
    stages: list[Document] = [
        {"$match": {"companyId": {"$in": list(company_ids)}}},
        {"$group": {"_id": "$companyId", **_SUMS}},
    ]
    cursor = _counts.across_companies(services).aggregate(stages)
    return {each["_id"]: (each["active"], each["archived"]) async for each in cursor}


async def read(ctx: Context, *, archived: bool, group: str | None = None) -> int:
    """Return the number of archived or of active clients, of the company or in a group."""
    if group is None:
        stored: Sequence[CustomerCount] = await _counts.find(ctx, {}, fields=_FIELDS)
    else:
        stored = await _totals.find(ctx, {"group": group}, fields=_FIELDS, hint=_BY_GROUP)
    return sum(each.get("archived", 0) if archived else each.get("active", 0) for each in stored)


def add_total(ctx: Context, *, archived: bool) -> Document:
    """Return the stage that adds the company's number of archived or of active clients to a list of clients.

    It is a document without an identifier, and with `total`; there is none if the company has never had a client.
    """
    number = {"$sum": "$archived" if archived else "$active"}
    stages = [{"$match": _counts.read_filter(ctx, {})}, {"$group": {"_id": None, "total": number}}]
    return {"$unionWith": {"coll": _counts.name, "pipeline": stages}}


async def are_complete(ctx: Context) -> bool:
    """Return whether the numbers of groups can be used: not before the clients of older code are counted."""
    complete = ctx.services.complete_counts
    if COUNT_GROUPS not in complete and not await queue.is_queued(ctx, _JOB_ID):
        complete.add(COUNT_GROUPS)
    return COUNT_GROUPS in complete


async def list_groups(ctx: Context) -> list[CustomerGroup]:
    """Return the groups of the company with the number of clients in each, by name."""
    numbers = [{"$ifNull": [f"${field}", 0]} for field in _FIELDS]
    stages: list[PipelineStage] = [
        {"$group": {"_id": "$group", "count": {"$sum": {"$add": numbers}}}},
        {"$match": {"count": {"$gt": 0}}},
        {"$sort": {"_id": 1}},
        {"$project": {"_id": 0, "name": "$_id", "count": 1}},
    ]
    return await _totals.aggregate(ctx, {}, *stages, hint=_BY_GROUP)


# --- Checks, and counting again --------------------------------------------------------------------------------------


_SUMS: Document = {field: {"$sum": f"${field}"} for field in _FIELDS}
_IS_ARCHIVED = "$customerRoleData.isArchived"
# Of each client there is, negative: the sums are how much the stored numbers are too high.
_COUNTED: Document = {"active": {"$cond": [_IS_ARCHIVED, 0, -1]}, "archived": {"$cond": [_IS_ARCHIVED, -1, 0]}}


class Numbers(NamedTuple):
    """Stored numbers of clients: of what in a company, and the stages that count the clients there are."""

    collection: Documents[Any]
    key: Document
    counted: list[Document]

    async def list_suspects(self, services: Services) -> list[ObjectId]:
        """Return the companies where numbers are wrong; they and the clients are not read at the same moment."""
        stages: list[Document] = [
            {"$group": {"_id": self.key, **_SUMS}},
            {"$unionWith": {"coll": _CLIENTS, "pipeline": [*self.counted, {"$group": {"_id": self.key, **_SUMS}}]}},
            {"$group": {"_id": "$_id", **_SUMS}},
            {"$match": {"$or": [{field: {"$ne": 0}} for field in _FIELDS]}},
            {"$group": {"_id": "$_id.companyId"}},
        ]
        cursor = self.collection.across_companies(services).aggregate(stages, allowDiskUse=True)
        return [each["_id"] async for each in cursor]

    async def find_differences(self, services: Services, company_id: ObjectId, session: Any) -> list[Document]:
        """Return how much numbers of a company are too high, at the moment that the session reads; `_id`: of what."""
        differences: dict[str | None, Document] = {}
        for name, counted in ((self.collection.name, []), (_CLIENTS, self.counted)):
            within = [{"$match": {"companyId": company_id}}, *counted, {"$group": {"_id": self.key, **_SUMS}}]
            async for sums in services.collection(name).aggregate(within, session=session):
                earlier = differences.get(sums["_id"].get("group"), dict.fromkeys(_FIELDS, 0))
                differences[sums["_id"].get("group")] = sums | {each: earlier[each] + sums[each] for each in _FIELDS}
        return [each for each in differences.values() if any(each[field] for field in _FIELDS)]

    async def correct(self, services: Services, company_id: ObjectId) -> None:
        """Correct the numbers of a company.

        The differences are subtracted in the transaction that measures them, so that it does not matter what others
        count meanwhile.
        """
        stored, slot = self.collection.across_companies(services), secrets.randbelow(SLOTS)

        async def subtract(tx: Context) -> None:
            for each in await self.find_differences(services, company_id, tx.session):
                change = {"$inc": {field: -each[field] for field in _FIELDS}}
                await stored.update_one({**each["_id"], "slot": slot}, change, upsert=True, session=tx.session)

        with allow_seconds(_COUNTING_SECONDS):
            await in_transaction(Context(services), subtract)

    async def find_wrong(self, services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
        """Find the companies whose numbers are wrong; those of groups are not used before they are complete."""
        occurrences = Occurrences()
        is_used = self is NUMBERS or await are_complete(Context(services))
        for company_id in await self.list_suspects(services) if is_used else ():
            async with reading_snapshot(services) as session:
                if await self.find_differences(services, company_id, session):
                    occurrences.add(company_id)
            count_read(1)
        of_group = "" if self is NUMBERS else " in a group"
        yield occurrences.finding(f"Companies with a wrong number of clients{of_group}", "Run doctor --repair")

    async def correct_all(self, services: Services) -> None:
        """Correct the numbers of all companies."""
        if self is NUMBERS or await are_complete(Context(services)):
            for company_id in await self.list_suspects(services):
                await self.correct(services, company_id)


NUMBERS = Numbers(_counts, {"companyId": "$companyId"}, [{"$project": {"companyId": 1, **_COUNTED}}])
GROUP_NUMBERS = Numbers(
    _totals,
    {"companyId": "$companyId", "group": "$group"},
    [
        {"$project": {"companyId": 1, "group": {"$setUnion": ["$customerRoleData.groups", []]}, **_COUNTED}},
        {"$unwind": "$group"},
    ],
)
CHECKS = (
    Check("client-numbers", "The numbers of clients are right", NUMBERS.find_wrong, NUMBERS.correct_all),
    Check(
        "group-numbers",
        "The numbers of clients in groups are right",
        GROUP_NUMBERS.find_wrong,
        GROUP_NUMBERS.correct_all,
    ),
)


async def find_company_after(services: Services, last: ObjectId | None) -> ObjectId | None:
    """Return the next company with clients, or with stored numbers of groups, by identifier; None: there is none."""
    where = {} if last is None else {"companyId": {"$gt": last}}
    following = [
        await services.collection(name).find_one(where, {"companyId": 1}, sort=[("companyId", 1)])
        for name in (_CLIENTS, _totals.name)
    ]
    return min((each["companyId"] for each in following if each is not None), default=None)
