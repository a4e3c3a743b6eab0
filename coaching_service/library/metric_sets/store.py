"""Metric sets in the database. A deleted one stays, for the history and the items that name it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Documents, now
from coaching_service.core.ids import ObjectId

sets = Documents[Document](
    "metricSets",
    (Index(("deletedAt", "sortName", "_id")), Index(("deletedAt", "assignAutomatically")), Index(("_id",))),
    private=("companyId", "sortName", "deletedAt"),
)


async def everything(ctx: Context) -> list[Document]:
    """The company's metric sets by name."""
    return await sets.find(ctx, {"deletedAt": None}, sort=("sortName", "_id"))


async def automatic(ctx: Context) -> list[Document]:
    """The sets every new client is assigned."""
    return await sets.find(ctx, {"deletedAt": None, "assignAutomatically": True})


async def one(ctx: Context, set_id: ObjectId) -> Document | None:
    """The metric set, not deleted, or None."""
    return await sets.find_one(ctx, {"_id": set_id, "deletedAt": None})


async def some(ctx: Context, ids: Sequence[ObjectId], *, deleted_too: bool = True) -> list[Document]:
    """The metric sets, deleted ones included unless the caller says otherwise."""
    return await sets.find(ctx, {"_id": {"$in": list(ids)}} | ({} if deleted_too else {"deletedAt": None}))


async def add(ctx: Context, metric_set: Document) -> Document:
    """Store a new metric set."""
    return await sets.insert(ctx, metric_set | {"deletedAt": None})


async def rewrite(
    ctx: Context, set_id: ObjectId, mutate: Callable[[Document], Document], version: int | None
) -> Document | None:
    """Change a metric set by a function of what is stored; None when there is no such set."""
    return await sets.rewrite(ctx, {"_id": set_id, "deletedAt": None}, mutate, version=version)


async def bury(ctx: Context, set_id: ObjectId) -> bool:
    """Delete a metric set for all but what names it; whether there was one."""
    return await sets.update(ctx, {"_id": set_id, "deletedAt": None}, {"$set": {"deletedAt": now()}}) is not None
