"""Companies in the database. A company's document has its own identifier as `companyId`, like all its other data."""

from __future__ import annotations

from collections.abc import Mapping

from coaching_service.core.auth.principal import Company
from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import NotExported
from coaching_service.core.ids import ObjectId
from coaching_service.people.account.models import DEFAULT_ATTENTION, Account

companies = Documents[Account](
    "companies",
    (Index(()),),
    private=("companyId", "keepsLoads", "hasOverrides", "sandboxId", "sandboxOf"),
    transfer=NotExported("exported as account.json"),
)


async def insert(ctx: Context, company: Company) -> Account:
    """Store the caller's new company."""
    fields = {"companyName": company.name, "timezone": company.timezone, "loadUnit": company.load_unit}
    settings = {"notifications": {"messages": True}, "attention": DEFAULT_ATTENTION}
    sandbox = {"sandboxOf": company.sandbox_of} if company.is_sandbox else {}
    private = {"keepsLoads": False, "hasOverrides": False, **sandbox}
    return await companies.insert(ctx, {"_id": company.id, **fields, **settings, **private})


async def find_own(ctx: Context) -> Account | None:
    """Return the caller's company; None if it has been deleted."""
    return await companies.find_one(ctx, {})


async def update(
    ctx: Context, fields: Mapping[str, object], version: int | None, *, only_without_loads: bool
) -> Account | None:
    """Set fields of the company; None if it has been deleted, or stores loads although it must not.

    Raises Conflict if the company is no longer at `version`.
    """
    where = {"keepsLoads": False} if only_without_loads else {}
    return await companies.update(ctx, where, {"$set": dict(fields)}, version=version)


async def lock_load_unit(ctx: Context, load_unit: str) -> bool:
    """Record that loads are stored in `load_unit`; returns whether it is still the company's unit."""
    return await companies.set_derived(ctx, {"loadUnit": load_unit}, {"$set": {"keepsLoads": True}}) == 1


async def find_sandbox_id(ctx: Context) -> ObjectId | None:
    """Return the sandbox of the caller's company, or None."""
    company = await companies.find_one(ctx, {}, ("sandboxId",))
    return company.get("sandboxId") if company else None


async def set_sandbox_id(ctx: Context, sandbox_id: ObjectId) -> bool:
    """Store the sandbox of the caller's company; returns whether the company exists."""
    return await companies.set_derived(ctx, {}, {"$set": {"sandboxId": sandbox_id}}) == 1


async def record_overrides(ctx: Context) -> None:
    """Record that the company has changed shared exercises."""
    await companies.set_derived(ctx, {}, {"$set": {"hasOverrides": True}})


async def delete(ctx: Context) -> bool:
    """Delete the company's document, which locks out all its users; returns whether it existed."""
    return await companies.delete(ctx, {}) is not None
