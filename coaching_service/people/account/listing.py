"""All companies, for the operator of the service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import cast

from coaching_service.core.database.context import Services
from coaching_service.core.ids import ObjectId
from coaching_service.people.account.models import Account
from coaching_service.people.account.store import companies


async def iterate(services: Services, *, batch: int) -> AsyncIterator[list[Account]]:
    """Yield all companies but sandboxes, oldest first, in lists of at most `batch`."""
    cursor = companies.across_companies(services).find(
        {"sandboxOf": {"$exists": False}}, sort=[("createdAt", 1), ("_id", 1)], batch_size=batch
    )
    while companies_of_batch := await cursor.to_list(batch):
        yield cast("list[Account]", companies_of_batch)


async def find(services: Services, company_id: ObjectId) -> Account | None:
    """Return a company with its private fields, or None."""
    company = await companies.across_companies(services).find_one({"_id": company_id})
    return cast("Account | None", company)


async def find_existing(services: Services, company_ids: Sequence[ObjectId]) -> list[ObjectId]:
    """Return which of the companies have not been deleted."""
    cursor = companies.across_companies(services).find({"_id": {"$in": list(company_ids)}}, {"_id": 1})
    return [company["_id"] async for company in cursor]
