"""Companies in the database. A company's document has its own identifier as `companyId`, like all its other data."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import cast

from coaching_service.core.auth.principal import Company
from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, Documents, now
from coaching_service.core.database.portable import NotExported
from coaching_service.core.database.sharding import Unsharded
from coaching_service.core.database.transactions import reading_snapshot
from coaching_service.core.fields import names_of, private_of
from coaching_service.core.ids import ObjectId
from coaching_service.people.account.models import (
    DEFAULT_ATTENTION,
    Account,
    ClientRights,
    LoadConversion,
    Suspension,
)

companies = Documents[Account](
    "companies",
    (Index(()),),
    private=private_of(Account),
    global_indexes=(
        Index(("createdAt", "_id")),
        Index(("suspension.at",), partial_filter=(("suspension.at", {"$exists": True}),)),
    ),
    cross_company_reason="the operator lists companies, and background work leaves out the suspended ones",
    is_cached=True,
    placement=Unsharded("joined to keys, sessions and grants, on the shard of these"),
    transfer=NotExported("exported as account.json"),
)


async def create(ctx: Context, company: Company) -> Account:
    """Store the caller's new company."""
    fields = {"companyName": company.name, "timezone": company.timezone, "loadUnit": company.load_unit}
    rights = dict.fromkeys(names_of(ClientRights), True)
    settings = {"notifications": {"messages": True}, "attention": DEFAULT_ATTENTION, **rights}
    sandbox = {"sandboxOf": company.sandbox_of} if company.is_sandbox else {}
    held = {"holdsMail": True} if company.holds_mail else {}
    private = {"keepsLoads": False, "hasOverrides": False, **sandbox, **held}
    return await companies.insert(ctx, {"_id": company.id, **fields, **settings, **private})


async def find_own(ctx: Context) -> Account | None:
    """Return the caller's company; None if it has been deleted."""
    return await companies.find_one(ctx, {})


async def update(ctx: Context, fields: Mapping[str, object], version: int | None) -> Account | None:
    """Set fields of the company; None if it has been deleted. Raises Conflict if it is no longer at `version`."""
    return await companies.update(ctx, {}, {"$set": dict(fields)}, version=version)


async def release_mail(ctx: Context) -> bool:
    """Record that the owner's e-mail address is confirmed; returns whether mail was held until now."""
    return await companies.update(ctx, {"holdsMail": True}, {"$unset": {"holdsMail": ""}}) is not None


async def holds_mail(services: Services, company_id: ObjectId) -> bool:
    """Return whether mail of the company to others is held."""
    where = {"companyId": company_id, "_id": company_id, "holdsMail": True}
    return await companies.across_companies(services).find_one(where, {"_id": 1}) is not None


async def has_stored_loads(ctx: Context) -> bool:
    """Return whether loads are stored in the company's unit, also if that has just changed."""
    company = await companies.find_one(ctx, {}, ("keepsLoads",))
    return company is not None and company["keepsLoads"]


async def lock_load_unit(ctx: Context, load_unit: str) -> bool:
    """Record that loads are stored in `load_unit`; returns whether it is still the company's unit.

    Transactions that lock, change or convert the unit at the same time conflict.
    """
    # A process that has cached the previous value records it once more; see `has_stored_loads`.
    change = {"$set": {"keepsLoads": True}, "$inc": {"loadLocks": 1}}
    where = {"loadUnit": load_unit, "loadConversion": {"$exists": False}}
    return await companies.set_derived(ctx, where, change, may_be_stale=True) == 1


async def begin_conversion(ctx: Context, conversion: LoadConversion) -> bool:
    """Store that loads are being converted; returns False if they are already, or the company has this unit."""
    where = {"loadUnit": {"$ne": conversion["loadUnit"]}, "loadConversion": {"$exists": False}}
    return await companies.set_derived(ctx, where, {"$set": {"loadConversion": conversion}}) == 1


async def end_conversion(ctx: Context, conversion: LoadConversion) -> None:
    """Store that all loads are in the other unit."""
    change = {
        "$set": {"loadUnit": conversion["loadUnit"], "loadsConvertedAt": now(), "keepsLoads": True},
        "$unset": {"loadConversion": ""},
    }
    await companies.update(ctx, {"loadConversion.jobId": conversion["jobId"]}, change)


async def find_sandbox_id(ctx: Context) -> ObjectId | None:
    """Return the sandbox of the caller's company, or None."""
    company = await companies.find_one(ctx, {}, ("sandboxId",))
    return company.get("sandboxId") if company else None


async def set_sandbox_id(ctx: Context, sandbox_id: ObjectId) -> bool:
    """Store the sandbox of the caller's company; returns whether the company exists."""
    change = {"$set": {"sandboxId": sandbox_id}}  # which is not part of a principal
    return await companies.set_derived(ctx, {}, change, may_be_stale=True) == 1


async def record_overrides(ctx: Context) -> None:
    """Record that the company has changed shared exercises."""
    await companies.set_derived(ctx, {}, {"$set": {"hasOverrides": True}})


async def list_lost_sandboxes(services: Services) -> list[ObjectId]:
    """Return the sandboxes that are not the sandbox of an existing company."""
    stages: list[Document] = [
        {"$match": {"sandboxOf": {"$exists": True}}},
        {"$lookup": {"from": companies.name, "localField": "sandboxOf", "foreignField": "_id", "as": "owners"}},
        {"$match": {"$expr": {"$not": [{"$in": ["$_id", "$owners.sandboxId"]}]}}},
        {"$project": {"_id": 1}},
    ]
    async with reading_snapshot(services) as session:
        cursor = companies.across_companies(services).aggregate(stages, session=session)
        return [company["_id"] async for company in cursor]


# --- suspension, and the operator's list -----------------------------------------------------------------------------


async def set_suspension(ctx: Context, suspension: Suspension | None) -> bool:
    """Suspend the company, or resume it (None); returns whether it exists."""
    change = {"$unset": {"suspension": ""}} if suspension is None else {"$set": {"suspension": suspension}}
    return await companies.set_derived(ctx, {}, change) == 1


async def is_suspended(services: Services, company_id: ObjectId) -> bool:
    """Return whether the company is suspended; a deleted one is not."""
    company = await companies.across_companies(services).find_one({"_id": company_id}, {"suspension": 1})
    return company is not None and "suspension" in company


async def find_paused_work(services: Services, company_id: ObjectId) -> tuple[bool, bool]:
    """Return whether the company is suspended, and whether its loads are being converted."""
    fields = {"suspension": 1, "loadConversion": 1}
    company = await companies.across_companies(services).find_one({"_id": company_id}, fields) or {}
    return "suspension" in company, "loadConversion" in company


async def list_suspended(services: Services) -> set[ObjectId]:
    """Return the companies that are suspended."""
    where = {"suspension.at": {"$exists": True}}
    cursor = companies.across_companies(services).find(where, {"_id": 1}, hint="suspension_at")
    return {company["_id"] async for company in cursor}


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


async def delete(ctx: Context) -> bool:
    """Delete the company's document, which locks out all its users; returns whether it existed."""
    return await companies.delete(ctx, {}) is not None
