"""Coaches of a company."""

from __future__ import annotations

from collections.abc import Callable

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, Documents
from coaching_service.core.ids import ObjectId

coaches = Documents[Document](
    "coaches",
    (Index(("_id",)), Index(("role", "createdAt"))),
    cross_company_reason="a session or the command line knows a coach before it knows the company",
)


async def add(ctx: Context, coach: Document) -> Document:
    """Store a new coach."""
    return await coaches.insert(ctx, coach)


async def one(ctx: Context, coach_id: ObjectId) -> Document | None:
    """The coach, or None."""
    return await coaches.find_one(ctx, {"_id": coach_id})


async def everybody(ctx: Context) -> list[Document]:
    """Every coach of the company, the owner first."""
    return await coaches.find(ctx, {"role": {"$in": ["OWNER", "EMPLOYEE"]}}, sort=("-role", "createdAt"))


async def employees(ctx: Context) -> list[Document]:
    """The employees, the longest there first."""
    return await coaches.find(ctx, {"role": "EMPLOYEE"}, sort=("createdAt",))


async def employee(ctx: Context, coach_id: ObjectId) -> Document | None:
    """The employee, or None."""
    return await coaches.find_one(ctx, {"_id": coach_id, "role": "EMPLOYEE"})


async def rewrite(
    ctx: Context, coach_id: ObjectId, mutate: Callable[[Document], Document], version: int | None
) -> Document | None:
    """Change an employee by a function of what is stored; None when there is no such employee."""
    return await coaches.rewrite(ctx, {"_id": coach_id, "role": "EMPLOYEE"}, mutate, version=version)


async def remove(ctx: Context, coach_id: ObjectId) -> bool:
    """Remove an employee; whether there was one."""
    return await coaches.delete(ctx, {"_id": coach_id, "role": "EMPLOYEE"}) is not None


async def resolve(services: Services, coach_id: ObjectId) -> Document | None:
    """The coach with the `company`, in one round trip; None when either is gone."""
    return await _with_company(services, {"_id": coach_id})


async def owner(services: Services, company_id: ObjectId) -> Document | None:
    """The company's owner with the `company`; None when either is gone."""
    return await _with_company(services, {"companyId": company_id, "role": "OWNER"})


async def _with_company(services: Services, where: Document) -> Document | None:
    found = coaches.across_companies(services).aggregate(
        [
            {"$match": where},
            {"$lookup": {"from": "companies", "localField": "companyId", "foreignField": "_id", "as": "company"}},
            {"$unwind": "$company"},
        ]
    )
    return next(iter(await found.to_list(1)), None)
