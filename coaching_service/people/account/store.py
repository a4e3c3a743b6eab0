"""Companies in the database. A company's document has its own identifier as `companyId`, like all its other data."""

from __future__ import annotations

from coaching_service.core.database.collections import Unsharded
from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import NotExported
from coaching_service.core.fields import private_of
from coaching_service.people.account.models import Account

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


async def find_own(ctx: Context) -> Account | None:
    """Return the caller's company; None if it has been deleted."""
    return await companies.find_one(ctx, {})


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
