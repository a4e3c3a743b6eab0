"""The number of clients in each group of each company, updated in the transaction that changes it.

Each is spread over a few documents, like the numbers of clients in `counters`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.declared import Index, NotExported
from coaching_service.core.database.documents import Document, Documents, PipelineStage
from coaching_service.core.ids import ObjectId, stable_id
from coaching_service.core.jobs import queue
from coaching_service.people.customers.models import CustomerGroup, CustomerRoleData, GroupTotal

# The job that counts the clients of a database that older code has used; the migration `group_totals` stores it.
COUNT = "count_groups"
_JOB_ID = stable_id("job", COUNT)
_CLIENTS = "customers"
_FIELDS = ("active", "archived")

_totals = Documents[GroupTotal](
    "groupTotals",
    (Index(("group", "slot"), unique=True),),
    cross_company_reason="numbers of all companies are checked",
    transfer=NotExported("counted again as clients are imported"),
)
_BY_GROUP = _totals.index_name("group", "slot")


def count_members(clients: Iterable[CustomerRoleData]) -> Counter[tuple[str, str]]:
    """Return how many of the clients are in each group, by group and `active` or `archived`."""
    return Counter((group, _FIELDS[each["isArchived"]]) for each in clients for group in set(each["groups"]))


async def add(ctx: Context, slot: int, members: Mapping[tuple[str, str], int]) -> None:
    """Add to the numbers of clients in groups, in the caller's transaction; negative numbers subtract."""
    changes: dict[str, Document] = {}
    for (group, field), number in members.items():
        if number:
            changes.setdefault(group, {})[field] = number
    await _totals.increment_each(ctx, [({"group": group, "slot": slot}, each) for group, each in changes.items()])


# --- Reading ---------------------------------------------------------------------------------------------------------


async def are_complete(ctx: Context) -> bool:
    """Return whether the numbers can be used: not before the clients that older code has stored are counted."""
    complete = ctx.services.complete_counts
    if COUNT not in complete and not await queue.is_queued(ctx, _JOB_ID):
        complete.add(COUNT)
    return COUNT in complete


async def list_all(ctx: Context) -> list[CustomerGroup]:
    """Return the groups of the company with the number of clients in each, by name."""
    stages: list[PipelineStage] = [
        {"$group": {"_id": "$group", "count": {"$sum": {"$add": [_number("active"), _number("archived")]}}}},
        {"$match": {"count": {"$gt": 0}}},
        {"$sort": {"_id": 1}},
        {"$project": {"_id": 0, "name": "$_id", "count": 1}},
    ]
    return await _totals.aggregate(ctx, {}, *stages, hint=_BY_GROUP)


async def read(ctx: Context, group: str, *, archived: bool) -> int:
    """Return the number of archived or of active clients in a group."""
    totals = await _totals.find(ctx, {"group": group}, fields=_FIELDS, hint=_BY_GROUP)
    return sum(total.get("archived", 0) if archived else total.get("active", 0) for total in totals)


def _number(field: str) -> Document:
    return {"$ifNull": [f"${field}", 0]}


# --- Checks ----------------------------------------------------------------------------------------------------------


_KEY: Document = {"company": "$companyId", "group": "$group"}
_SUMS: Document = {field: {"$sum": f"${field}"} for field in _FIELDS}
_IS_ARCHIVED = "$customerRoleData.isArchived"
# The numbers that are stored and, negative, the numbers of the clients that there are.
_STORED: list[Document] = [{"$group": {"_id": _KEY, **_SUMS}}]
_COUNTED: list[Document] = [
    {
        "$project": {
            "companyId": 1,
            "group": {"$setUnion": ["$customerRoleData.groups", []]},
            "active": {"$cond": [_IS_ARCHIVED, 0, -1]},
            "archived": {"$cond": [_IS_ARCHIVED, -1, 0]},
        }
    },
    {"$unwind": "$group"},
    {"$group": {"_id": _KEY, **_SUMS}},
]


async def list_suspects(services: Services) -> list[ObjectId]:
    """Return the companies where stored numbers are wrong; none before they are used.

    The numbers and the clients are not read at the same moment.
    """
    if not await are_complete(Context(services)):
        return []
    stages: list[Document] = [
        *_STORED,
        {"$unionWith": {"coll": _CLIENTS, "pipeline": _COUNTED}},
        {"$group": {"_id": "$_id", **_SUMS}},
        {"$match": {"$or": [{field: {"$ne": 0}} for field in _FIELDS]}},
        {"$group": {"_id": "$_id.company"}},
    ]
    cursor = _totals.across_companies(services).aggregate(stages, allowDiskUse=True)
    return [each["_id"] async for each in cursor]


async def find_differences(services: Services, company_id: ObjectId, session: Any) -> dict[str, Document]:
    """Return how much the stored numbers of a company are too high, by group, at the moment that the session reads."""
    differences: dict[str, Document] = {}
    for name, stages in ((_totals.name, _STORED), (_CLIENTS, _COUNTED)):
        within = [{"$match": {"companyId": company_id}}, *stages]
        async for sums in services.collection(name).aggregate(within, session=session):
            difference = differences.setdefault(sums["_id"]["group"], dict.fromkeys(_FIELDS, 0))
            for field in _FIELDS:
                difference[field] += sums[field]
    return {group: each for group, each in differences.items() if any(each.values())}


async def correct(ctx: Context, company_id: ObjectId, slot: int) -> None:
    """Subtract the differences of a company's numbers, in the transaction of `ctx` that also measures them.

    So it does not matter what others count meanwhile.
    """
    for group, difference in (await find_differences(ctx.services, company_id, ctx.session)).items():
        where = {"companyId": company_id, "group": group, "slot": slot}
        change = {"$inc": {field: -number for field, number in difference.items()}}
        await _totals.across_companies(ctx.services).update_one(where, change, upsert=True, session=ctx.session)


async def find_company_after(services: Services, last: ObjectId | None) -> ObjectId | None:
    """Return the next company with clients, or with stored numbers, by identifier; None: there is none."""
    where = {} if last is None else {"companyId": {"$gt": last}}
    following = [
        await services.collection(name).find_one(where, {"companyId": 1}, sort=[("companyId", 1)])
        for name in (_CLIENTS, _totals.name)
    ]
    return min((each["companyId"] for each in following if each is not None), default=None)
