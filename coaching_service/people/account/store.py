"""Companies. A company's own document carries its identifier as `companyId` too, so it is found like all else."""

from __future__ import annotations

from coaching_service.core.auth.principal import Company
from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Documents

companies = Documents[Document]("companies", (Index(()),), private=("companyId", "keepsLoads"))


async def add(ctx: Context, company: Company) -> Document:
    """Store the principal's own, new company."""
    fields = {"companyName": company.name, "timezone": company.timezone, "loadUnit": company.load_unit}
    return await companies.insert(ctx, {"_id": company.id, **fields, "keepsLoads": False})


async def own(ctx: Context) -> Document | None:
    """The principal's company, or None when it is being erased."""
    return await companies.find_one(ctx, {})


async def change(ctx: Context, fields: Document, version: int | None, *, only_without_loads: bool) -> Document | None:
    """Set fields of the company; None when it is gone, or keeps loads where it must not."""
    where = {"keepsLoads": False} if only_without_loads else {}
    return await companies.update(ctx, where, {"$set": fields}, version=version)


async def keep_unit(ctx: Context, load_unit: str) -> bool:
    """Remember that loads are stored in this unit; whether it still is the company's."""
    return await companies.set_derived(ctx, {"loadUnit": load_unit}, {"$set": {"keepsLoads": True}}) == 1


async def remove(ctx: Context) -> bool:
    """Remove the company itself: whatever it has is locked from now on. Whether it was there."""
    return await companies.delete(ctx, {}) is not None
