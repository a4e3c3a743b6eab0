"""Clients in the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, Documents, Filter, now
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import totals
from coaching_service.people.customers.search import found_page, search_fields

ARCHIVED = "customerRoleData.isArchived"
GROUPS = "customerRoleData.groups"
TRAINER = "customerRoleData.assignedTo"
ORDER = ("sortName", "sortSurname", "_id")

_page = Index((ARCHIVED, *ORDER))
_suffix = Index((ARCHIVED, "suf"))
_group = Index((ARCHIVED, GROUPS, *ORDER))
_trainer = Index((ARCHIVED, TRAINER, *ORDER))

customers = Documents[Document](
    "customers",
    (_page, _suffix, _group, _trainer, Index((GROUPS,)), Index(("_id",))),
    private=("sortName", "sortSurname", "search", "suf", "firstAccessHash", "scheduleChanges", "figuresUntil"),
    client_field="_id",
    global_indexes=(
        Index(("firstAccessHash",), unique=True, partial_filter=(("firstAccessHash", {"$exists": True}),)),
        Index((ARCHIVED, "figuresUntil")),
    ),
    cross_company_reason="first-access tokens are found by hash, and outdated figures by their time, in any company",
)
# The collection has prefixed its indexes with the company: these are their names.
BY_ORDER, BY_SUFFIX, BY_GROUP, BY_TRAINER = (index.name for index in customers.indexes[:4])
BY_ID = customers.indexes[5].name


async def page(
    ctx: Context, where: Filter, *, contains: str, skip: int, limit: int, whole: bool
) -> tuple[list[Document], int]:
    """One page of clients in the list's order, and how many there are. `whole`: `where` names only archived or not."""
    if contains:
        return await found_page(
            ctx,
            customers,
            where,
            contains,
            listed={ARCHIVED: where[ARCHIVED]},
            order=ORDER,
            by_suffix=BY_SUFFIX,
            by_order=BY_ORDER,
            skip=skip,
            limit=limit,
        )
    hint = BY_GROUP if GROUPS in where else BY_TRAINER if TRAINER in where else BY_ORDER
    total = totals.of(ctx, archived=where[ARCHIVED]) if whole else customers.count(ctx, where, hint=hint)
    docs, counted = await gather_reads(
        ctx, customers.find(ctx, where, sort=ORDER, skip=skip, limit=limit, hint=hint), total
    )
    return docs, counted


async def add(ctx: Context, customer: Document) -> Document:
    """Store a new client, counted."""
    stored = await customers.insert(ctx, customer)
    await totals.add(ctx, archived=customer["customerRoleData"]["isArchived"], count=1)
    return stored


async def add_many(ctx: Context, new: Sequence[Document]) -> None:
    """Store new clients, counted, in the caller's transaction."""
    await customers.insert_many(ctx, new)
    archived = sum(customer["customerRoleData"]["isArchived"] for customer in new)
    await totals.add(ctx, archived=True, count=archived)
    await totals.add(ctx, archived=False, count=len(new) - archived)


async def one(ctx: Context, customer_id: ObjectId, fields: tuple[str, ...] | None = None) -> Document | None:
    """The client, or None."""
    return await customers.find_one(ctx, {"_id": customer_id}, fields)


def beside(customer_id: ObjectId, fields: Sequence[str]) -> Document:
    """The stage that puts fields of a client of the document's company beside it, as `client`."""
    return {
        "$lookup": {
            "from": customers.name,
            "localField": "companyId",
            "foreignField": "companyId",
            "pipeline": [{"$match": {"_id": customer_id}}, {"$project": customers.projection(fields)}],
            "as": "client",
        }
    }


async def some(ctx: Context, ids: Sequence[ObjectId]) -> list[Document]:
    """`_id` and trainer of those of `ids` that are the company's clients."""
    return await customers.find(ctx, {"_id": {"$in": list(ids)}}, fields=(TRAINER,))


async def named(ctx: Context, where: Filter, limit: int) -> list[Document]:
    """Name and surname of the first few of the clients that `where` names by their identifiers, in the list's order."""
    return await customers.find(ctx, where, sort=ORDER, limit=limit, fields=("name", "surname"), hint=BY_ID)


async def ids_after(ctx: Context, where: Filter, last: ObjectId | None, limit: int) -> list[ObjectId]:
    """The next identifiers of the clients of `where`, in their own order."""
    beyond = where | ({"_id": {"$gt": last}} if last is not None else {})
    found = await customers.find(ctx, beyond, sort=("_id",), limit=limit, fields=("_id",), hint=BY_ID)
    return [customer["_id"] for customer in found]


async def set_many_archived(ctx: Context, ids: Sequence[ObjectId], *, archived: bool) -> None:
    """Archive or restore those that are not so already, counted."""
    where = {"_id": {"$in": list(ids)}, ARCHIVED: not archived}
    changed = await customers.update_many(ctx, where, {"$set": {ARCHIVED: archived}})
    await totals.add(ctx, archived=not archived, count=-changed)
    await totals.add(ctx, archived=archived, count=changed)


async def add_groups(ctx: Context, ids: Sequence[ObjectId], groups: list[str]) -> None:
    """Put those that are not in all the groups into them."""
    where = {"_id": {"$in": list(ids)}, GROUPS: {"$not": {"$all": groups}}}
    await customers.update_many(ctx, where, {"$addToSet": {GROUPS: {"$each": groups}}})


async def overfull(ctx: Context, ids: Sequence[ObjectId], groups: list[str], maximum: int) -> list[ObjectId]:
    """Those who with the groups would be in more than `most`."""
    gather_reads = {"$size": {"$setUnion": [f"${GROUPS}", {"$literal": groups}]}}
    found = await customers.find(
        ctx, {"_id": {"$in": list(ids)}, "$expr": {"$gt": [gather_reads, maximum]}}, fields=("_id",)
    )
    return [customer["_id"] for customer in found]


async def remove_groups(ctx: Context, ids: Sequence[ObjectId], groups: list[str]) -> None:
    """Take those that are in any of the groups out of them."""
    where = {"_id": {"$in": list(ids)}, GROUPS: {"$in": groups}}
    await customers.update_many(ctx, where, {"$pullAll": {GROUPS: groups}})


async def assign_many(ctx: Context, ids: Sequence[ObjectId], coach_id: ObjectId | None) -> None:
    """Assign those that are somebody else's to a coach, or to nobody."""
    where = {"_id": {"$in": list(ids)}, TRAINER: {"$ne": coach_id}}
    await customers.update_many(ctx, where, {"$set": {TRAINER: coach_id}})


async def remove_many(ctx: Context, ids: Sequence[ObjectId]) -> list[ObjectId]:
    """Remove clients, counted; gives those that were there."""
    found = await customers.find(ctx, {"_id": {"$in": list(ids)}}, fields=(ARCHIVED,))
    gone = [customer["_id"] for customer in found]
    await customers.delete_many(ctx, {"_id": {"$in": gone}})
    archived = sum(customer["customerRoleData"]["isArchived"] for customer in found)
    await totals.add(ctx, archived=True, count=-archived)
    await totals.add(ctx, archived=False, count=archived - len(gone))
    return gone


async def rewrite(
    ctx: Context, customer_id: ObjectId, mutate: Callable[[Document], Document], version: int | None
) -> Document | None:
    """Change a client by a function of what is stored; None when there is no such client."""
    return await customers.rewrite(ctx, {"_id": customer_id}, mutate, version=version)


async def set_archived(ctx: Context, customer_id: ObjectId, *, archived: bool) -> Document | None:
    """Archive or restore a client and count it; None when it already is so (or does not exist)."""
    changed = await customers.update(ctx, {"_id": customer_id, ARCHIVED: not archived}, {"$set": {ARCHIVED: archived}})
    if changed is not None:
        await totals.add(ctx, archived=not archived, count=-1)
        await totals.add(ctx, archived=archived, count=1)
    return changed


async def remove(ctx: Context, customer_id: ObjectId) -> bool:
    """Remove a client, counted; whether there was one."""
    removed = await customers.delete(ctx, {"_id": customer_id})
    if removed is None:
        return False
    await totals.add(ctx, archived=removed["customerRoleData"]["isArchived"], count=-1)
    return True


async def group_counts(ctx: Context, where: Filter) -> list[Document]:
    """The groups in use among the clients of `where`, each with how many of them are in it, by name."""
    stages: list[dict[str, Any]] = [
        {"$project": {"group": f"${GROUPS}", "_id": 0}},
        {"$unwind": "$group"},
        {"$group": {"_id": "$group", "count": {"$sum": 1}}},
        {"$sort": {"_id": 1}},
        {"$project": {"_id": 0, "name": "$_id", "count": 1}},
    ]
    return await customers.aggregate(ctx, where, *stages)


async def principal_facts(services: Services, company_id: ObjectId, customer_id: ObjectId) -> Document | None:
    """The client with the `company`, for a sign-in; None when either is gone."""
    found = customers.across_companies(services).aggregate(
        [
            {"$match": {"companyId": company_id, "_id": customer_id}},
            {"$project": {"name": 1, "email": 1, "companyId": 1, ARCHIVED: 1}},
            {"$lookup": {"from": "companies", "localField": "companyId", "foreignField": "_id", "as": "company"}},
            {"$unwind": "$company"},
        ]
    )
    return next(iter(await found.to_list(1)), None)


async def by_first_access(services: Services, token_hash: str) -> Document | None:
    """The client whom this first-access token lets in, or None."""
    return await customers.across_companies(services).find_one(
        {"firstAccessHash": token_hash}, {"companyId": 1, "email": 1, "name": 1}
    )


async def set_first_access(ctx: Context, customer_id: ObjectId, token_hash: str) -> None:
    """Give a client another first-access token; the one before ends."""
    await customers.set_derived(ctx, {"_id": customer_id}, {"$set": {"firstAccessHash": token_hash}})


async def use_first_access(ctx: Context, customer_id: ObjectId, token_hash: str, email: str) -> bool:
    """Use a first-access token up; whether it was still there. A client without an address gets `email`."""
    where = {"_id": customer_id, "firstAccessHash": token_hash}
    if not await customers.set_derived(ctx, where, {"$unset": {"firstAccessHash": ""}}):
        return False

    def mutate(stored: Document) -> Document:
        if stored["email"] is not None:
            return {}
        return {"email": email, **search_fields(stored["name"], stored["surname"], email)}

    await customers.rewrite(ctx, {"_id": customer_id}, mutate)
    return True


async def set_signed_in(ctx: Context, customer_id: ObjectId) -> None:
    """Remember a client's sign-in: the first one, and that they were active."""
    at = now()
    first = {"_id": customer_id, "customerRoleData.firstLoginDate": None}
    await customers.set_derived(ctx, first, {"$set": {"customerRoleData.firstLoginDate": at}})
    await customers.set_derived(ctx, {"_id": customer_id}, {"$set": {"lastActivityDate": at}})


async def exists(services: Services, company_id: ObjectId, customer_id: ObjectId) -> bool:
    """Whether a company has this client."""
    where = {"companyId": company_id, "_id": customer_id}
    return await customers.across_companies(services).find_one(where, {"_id": 1}) is not None


async def set_profile_photo(ctx: Context, customer_id: ObjectId, photo: Document) -> Document | None:
    """Point the client at another profile photo; None when the client is gone."""
    return await customers.update(ctx, {"_id": customer_id}, {"$set": {"profilePhoto": photo}})


async def set_active(ctx: Context, customer_id: ObjectId) -> None:
    """Remember that a client was active just now."""
    await customers.set_derived(ctx, {"_id": customer_id}, {"$set": {"lastActivityDate": now()}})


async def unassign(ctx: Context, coach_id: ObjectId) -> None:
    """A removed coach's clients are nobody's."""
    for archived in (False, True):
        where = {ARCHIVED: archived, TRAINER: coach_id}
        await customers.update_many(ctx, where, {"$set": {TRAINER: None}})


async def touch(ctx: Context, customer_id: ObjectId) -> bool:
    """Write to the client, so that two transactions that do collide and the second runs again; whether it is there."""
    return await customers.set_derived(ctx, {"_id": customer_id}, {"$inc": {"scheduleChanges": 1}}) == 1


async def set_last_workout(ctx: Context, customer_id: ObjectId, day: str | None) -> bool:
    """Remember the last day anything is scheduled on: a derived field. Whether there is such a client.

    It always writes, so that two transactions that change one client's schedule collide and the second runs again.
    """
    change = {"$set": {"customerRoleData.lastWorkoutDate": day}, "$inc": {"scheduleChanges": 1}}
    return await customers.set_derived(ctx, {"_id": customer_id}, change) == 1
