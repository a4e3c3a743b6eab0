"""Exercises in the database: shared ones belong to no company. A deleted one stays, for the blocks that name it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pymongo import UpdateOne

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, Documents, Filter, Ownership, now
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import keyword_filter, normalize, search_fields_of

exercises = Documents[Document](
    "exercises",
    (
        Index(("deletedAt", "sortName", "_id")),
        Index(("deletedAt", "suf")),
        Index(("deletedAt", "type", "sortName", "_id")),
    ),
    private=("sortName", "search", "suf", "deletedAt", "digest"),
    shared=True,
    cross_company_reason="the shared library belongs to no company and is published by the operator",
)
_BY_SUFFIX = exercises.indexes[1].name
_ORDER = ("sortName", "_id")


def search_fields(exercise: Document) -> Document:
    """The private fields an exercise is sorted and found by."""
    muscles = [muscle["name"] for muscle in exercise["muscleGroups"]]
    texts = [exercise["name"], *exercise["aliases"], *exercise["tags"], *muscles, exercise["equipment"] or ""]
    return {"sortName": normalize(exercise["name"]), **search_fields_of(*texts)}


async def page(
    ctx: Context, where: Filter, *, ownership: Ownership, keywords: str, skip: int, limit: int
) -> tuple[list[Document], int]:
    """One page of exercises and how many there are: by name, or by how well the name fits the keywords."""
    where = {"deletedAt": None, **where}
    if not keywords:
        docs, total = await gather_reads(
            ctx,
            exercises.find(ctx, where, sort=_ORDER, skip=skip, limit=limit, ownership=ownership),
            exercises.count(ctx, where, ownership=ownership),
        )
        return docs, total
    if "\0" in keywords:
        return [], 0
    where |= keyword_filter(keywords)
    at: Document = {"$indexOfCP": ["$sortName", {"$literal": keywords}]}
    rank = {
        "$switch": {
            "branches": [{"case": {"$eq": [at, 0]}, "then": 0}, {"case": {"$gt": [at, 0]}, "then": 1}],
            "default": 2,
        }
    }
    stages: list[Document] = [
        {"$addFields": {"rank": rank}},
        {"$sort": {"rank": 1, "sortName": 1, "_id": 1}},
        {"$skip": skip},
        {"$limit": limit},
        {"$project": {"rank": 0, **dict.fromkeys(exercises.private, 0)}},
    ]
    docs, total = await gather_reads(
        ctx,
        exercises.aggregate(ctx, where, *stages, hint=_BY_SUFFIX, ownership=ownership),
        exercises.count(ctx, where, hint=_BY_SUFFIX, ownership=ownership),
    )
    return docs, total


async def one(ctx: Context, exercise_id: ObjectId, fields: tuple[str, ...] | None = None) -> Document | None:
    """The exercise, shared or own and not deleted, or None."""
    return await exercises.find_one(ctx, {"_id": exercise_id, "deletedAt": None}, fields)


async def usable(ctx: Context, ids: Sequence[ObjectId]) -> list[Document]:
    """`{_id, name, defaultInstructions}` of those that are not deleted."""
    where = {"_id": {"$in": list(ids)}, "deletedAt": None}
    return await exercises.find(ctx, where, fields=("name", "defaultInstructions"), hint="_id_")


async def names(ctx: Context, ids: Sequence[ObjectId]) -> list[Document]:
    """`{_id, name, defaultInstructions}` of the exercises, deleted ones included."""
    return await exercises.find(ctx, {"_id": {"$in": list(ids)}}, fields=("name", "defaultInstructions"), hint="_id_")


async def muscles(ctx: Context, ids: Sequence[ObjectId]) -> list[Document]:
    """The muscles of the exercises, deleted ones included."""
    return await exercises.find(ctx, {"_id": {"$in": list(ids)}}, fields=("muscleGroups",), hint="_id_")


async def add(ctx: Context, exercise: Document) -> Document:
    """Store a new exercise of the company's own."""
    return await exercises.insert(ctx, exercise | search_fields(exercise) | {"deletedAt": None})


async def rewrite(
    ctx: Context, exercise_id: ObjectId, mutate: Callable[[Document], Document], version: int | None
) -> Document | None:
    """Change one of the company's own by a function of what is stored; None when there is no such exercise."""

    def with_search(stored: Document) -> Document:
        fields = mutate(stored)
        return fields | search_fields(stored | fields) if fields else fields

    return await exercises.rewrite(ctx, {"_id": exercise_id, "deletedAt": None}, with_search, version=version)


async def bury(ctx: Context, exercise_id: ObjectId) -> bool:
    """Delete one of the company's own for all but the blocks that name it; whether there was one."""
    where = {"_id": exercise_id, "deletedAt": None}
    return await exercises.update(ctx, where, {"$set": {"deletedAt": now()}}) is not None


async def publish(services: Services, shared: Sequence[Document]) -> int:
    """Make the shared library what `shared` says (each with `_id` and `digest`); gives how many were written.

    What it no longer names is deleted as a company's own are: for all but the blocks that name it.
    """
    collection, at = exercises.across_companies(services), now()
    cursor = collection.find({"companyId": None}, {"digest": 1})
    there: dict[Any, Any] = {entry["_id"]: entry.get("digest") async for entry in cursor}
    dropped = [each for each in there.keys() - {entry["_id"] for entry in shared} if there[each] is not None]
    # Without its digest it is written anew should it ever come back.
    gone = {"$set": {"deletedAt": at, "updatedAt": at}, "$unset": {"digest": ""}, "$inc": {"version": 1}}
    writes: list[Any] = [UpdateOne({"_id": each}, gone) for each in dropped]
    for entry in shared:
        fields = entry | search_fields(entry) | {"companyId": None, "deletedAt": None, "updatedAt": at}
        if entry["_id"] not in there:  # an upsert: another process may be publishing at the same time
            first = {**fields, "createdAt": at, "version": 0}
            writes.append(UpdateOne({"_id": first.pop("_id")}, {"$setOnInsert": first}, upsert=True))
        elif there[entry["_id"]] != entry["digest"]:
            writes.append(UpdateOne({"_id": entry["_id"]}, {"$set": fields, "$inc": {"version": 1}}))
    if writes:
        await collection.bulk_write(writes, ordered=False)
    return len(writes)
