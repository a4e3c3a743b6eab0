"""The company: created, read, changed and erased."""

from __future__ import annotations

from dataclasses import replace

from coaching_service.core.auth.principal import Company
from coaching_service.core.database import file_totals
from coaching_service.core.database.conflicts import version_conflict
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.database.file_totals import StorageUsage
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import CompanySuspended, Conflict, Forbidden, NotFound
from coaching_service.core.fields import names_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.people.account import store
from coaching_service.people.account.events import CompanyDeleted, FigureSettingsChanged, LoadUnitChanged
from coaching_service.people.account.models import (
    DEFAULT_ATTENTION,
    Account,
    AccountChange,
    ClientRights,
    LoadConversion,
)
from coaching_service.people.account.store import companies
from coaching_service.people.identities import service as identities

ERASE = "erase_company"
_FIGURE_SETTINGS = ("timezone", "attention")


async def create(ctx: Context) -> Account:
    """Store the caller's company; the caller is its owner."""
    company = ctx.caller.company
    fields = {"companyName": company.name, "timezone": company.timezone, "loadUnit": company.load_unit}
    rights = dict.fromkeys(names_of(ClientRights), True)
    settings = {"notifications": {"messages": True}, "attention": DEFAULT_ATTENTION, **rights}
    sandbox = {"sandboxOf": company.sandbox_of} if company.is_sandbox else {}
    held = {"holdsMail": True} if company.holds_mail else {}
    private = {"keepsLoads": False, "hasOverrides": False, **sandbox, **held}
    return await companies.insert(ctx, {"_id": company.id, **fields, **settings, **private})


def to_company(account: Account, *, even_suspended: bool = False) -> Company:
    """Return a stored company as principals carry it.

    Every principal of a request is made with it, whatever the credential, so this is where suspension is decided:
    raises CompanySuspended, unless `even_suspended`, for background work and the operator.
    """
    is_suspended = "suspension" in account
    if is_suspended and not even_suspended:
        raise CompanySuspended()
    return Company(
        account["_id"],
        account["companyName"],
        account["timezone"],
        account["loadUnit"],
        account["keepsLoads"],
        account.get("hasOverrides", True),
        account.get("sandboxOf"),
        is_suspended,
        account.get("holdsMail", False),
        "loadConversion" in account,
        account.get("loadsConvertedAt"),
    )


async def release_mail(ctx: Context) -> bool:
    """Send the mail of the company that was held, in the caller's transaction; returns whether it was held."""
    if await companies.update(ctx, {"holdsMail": True}, {"$unset": {"holdsMail": ""}}) is None:
        return False
    await queue.continue_paused(ctx)
    return True


async def get(ctx: Context) -> Account:
    """Return the caller's company. Raises NotFound if it has been deleted."""
    if (account := await store.find_own(ctx)) is None:
        raise NotFound("company")
    return account


async def get_storage(ctx: Context) -> StorageUsage:
    """Return the number and the bytes of the company's files, and how much it may store."""
    return (await file_totals.read_usage(ctx.services, [ctx.company_id]))[ctx.company_id]


@transactional
async def update(ctx: Context, change: AccountChange) -> Account:
    """Change the company and return it.

    Raises Conflict if it has changed since `change["version"]`, or if `loadUnit` changes while any load is stored.
    """
    settings = {"attention": change.get("attention", {}), "notifications": change.get("notifications", {})}
    fields: dict[str, object] = {name: value for name, value in change.items() if name not in ("version", *settings)}
    for group, chosen in settings.items():
        fields |= {f"{group}.{name}": value for name, value in chosen.items()}
    version = change.get("version")
    current = await get(ctx)
    if not fields:
        if version not in (None, current["version"]):
            raise version_conflict()
        return current
    unit = change.get("loadUnit", current["loadUnit"])
    if unit != current["loadUnit"] and await store.has_stored_loads(ctx):
        await ctx.publish(LoadUnitChanged(unit))
        fields["keepsLoads"] = False
    account = await companies.update(ctx, {}, {"$set": fields}, version=version)
    if account is None:
        raise NotFound("company")
    if any(name.partition(".")[0] in _FIGURE_SETTINGS for name in fields):
        await ctx.publish(FigureSettingsChanged())
    return account


def load_unit_locked() -> Conflict:
    """Return the error for a change of the unit of load while loads are stored in it."""
    message = "loadUnit cannot change while loads are stored in it; POST /coach/account/load-unit converts them"
    return Conflict(message, code="LOAD_UNIT_LOCKED")


def load_unit_changed() -> Conflict:
    """Return the error for a request that began before the company's unit of load changed."""
    return Conflict("The company's unit of load has just been changed; try again", code="LOAD_UNIT_CHANGED")


async def lock_load_unit(ctx: Context, *, again: bool = False) -> None:
    """Fix the company's unit of load, before loads are stored in it, in the caller's transaction.

    `again`: also if loads are stored already, where no client is locked who has the unit too. Raises Conflict if the
    unit has changed since the request began.
    """
    company = ctx.caller.company
    if (again or not company.has_stored_loads) and not await store.lock_load_unit(ctx, company.load_unit):
        raise load_unit_changed()


@transactional
async def begin_conversion(ctx: Context, conversion: LoadConversion) -> None:
    """Store that loads are being converted: until they are, the company's operations are refused for a while.

    Raises Conflict if they are being converted already, or are in that unit.
    """
    where = {"loadUnit": {"$ne": conversion["loadUnit"]}, "loadConversion": {"$exists": False}}
    if not await companies.set_derived(ctx, where, {"$set": {"loadConversion": conversion}}):
        raise Conflict(f"The loads are in {conversion['loadUnit']} already", code="LOAD_UNIT_UNCHANGED")


async def end_conversion(ctx: Context, conversion: LoadConversion) -> None:
    """Store that all loads are in the other unit, in the caller's transaction; paused jobs of the company continue."""
    change = {
        "$set": {"loadUnit": conversion["loadUnit"], "loadsConvertedAt": now(), "keepsLoads": True},
        "$unset": {"loadConversion": ""},
    }
    await companies.update(ctx, {"loadConversion.jobId": conversion["jobId"]}, change)
    await queue.continue_paused(ctx)


has_stored_loads = store.has_stored_loads


async def lock_stored_unit(ctx: Context) -> None:
    """Fix the company's unit of load as it is stored now, in the caller's transaction."""
    await store.lock_load_unit(ctx, (await get(ctx))["loadUnit"])


async def record_overrides(ctx: Context) -> None:
    """Record that the company changes shared exercises, before the first change is stored."""
    if not ctx.caller.company.has_overrides:
        await companies.set_derived(ctx, {}, {"$set": {"hasOverrides": True}})


async def erase(ctx: Context, password: str) -> None:
    """Delete the company: its users are locked out at once, its data is erased in the background.

    Raises Forbidden if `password` is not the caller's; TooManyRequests after too many wrong ones.
    """
    if not await identities.check_password(ctx, ctx.caller.id, password):
        raise Forbidden("The password is wrong", code="WRONG_PASSWORD")
    await delete(ctx)


@transactional
async def delete(ctx: Context) -> None:
    """Delete the caller's company, and queue the erasure of its data. Raises NotFound if it has been deleted."""
    await delete_sandbox(ctx)
    if await companies.delete(ctx, {}) is None:
        raise NotFound("company")
    await _queue_erasure(ctx)


async def _queue_erasure(ctx: Context) -> None:
    await queue.enqueue(ctx, ERASE, {"companyId": ctx.company_id})
    await ctx.publish(CompanyDeleted())


async def set_sandbox(ctx: Context, sandbox_id: ObjectId) -> None:
    """Store which company is the sandbox of the caller's, in the caller's transaction. Raises NotFound."""
    change = {"$set": {"sandboxId": sandbox_id}}  # which is not part of a principal
    if not await companies.set_derived(ctx, {}, change, may_be_stale=True):
        raise NotFound("company")


async def delete_sandbox(ctx: Context) -> None:
    """Delete the sandbox of the caller's company, if there is one, in the caller's transaction.

    Its keys fail at once, and its data is erased in the background.
    """
    in_sandbox = await enter_sandbox(ctx)
    if in_sandbox is not None and await companies.delete(in_sandbox, {}) is not None:
        await _queue_erasure(in_sandbox)


async def enter_sandbox(ctx: Context) -> Context | None:
    """Return `ctx` in the sandbox of the caller's company, which may have been deleted; None if it has had none."""
    stored = await companies.find_one(ctx, {}, ("sandboxId",))
    if stored is None or (sandbox_id := stored.get("sandboxId")) is None:
        return None
    company = Company(sandbox_id, "Sandbox", "UTC", "kg", sandbox_of=ctx.company_id)
    return replace(ctx, principal=replace(ctx.caller, company=company))
