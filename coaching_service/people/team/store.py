"""Coaches of a company."""

from __future__ import annotations

from coaching_service.kernel.storage.context import Context, Services
from coaching_service.kernel.storage.documents import Document, Documents
from coaching_service.kernel.storage.ids import ObjectId
from coaching_service.kernel.storage.mongo import Index

coaches = Documents(
    "coaches",
    (Index(("_id",)),),
    why_global="a session or the command line knows a coach before it knows the company",
)


async def add(ctx: Context, coach: Document) -> Document:
    """Store a new coach."""
    return await coaches.insert(ctx, coach)


async def one(ctx: Context, coach_id: ObjectId) -> Document | None:
    """The coach, or None."""
    return await coaches.find_one(ctx, {"_id": coach_id})


async def resolve(services: Services, coach_id: ObjectId) -> Document | None:
    """The coach with the `company`, in one round trip; None when either is gone."""
    found = coaches.globally(services).aggregate(
        [
            {"$match": {"_id": coach_id}},
            {"$lookup": {"from": "companies", "localField": "companyId", "foreignField": "_id", "as": "company"}},
            {"$unwind": "$company"},
        ]
    )
    return next(iter(await found.to_list(1)), None)
