"""The company: created, read, changed and erased."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import wraps
from typing import Annotated, Literal, NamedTuple, NotRequired, TypeAlias, TypedDict, cast

from marshmallow import fields

from coaching_service.core import audit
from coaching_service.core import fields as core_fields
from coaching_service.core.auth import Company, coach, owner, owner_session
from coaching_service.core.database.checks import check_of
from coaching_service.core.database.context import Context, Services, reading_snapshot, transactional, version_conflict
from coaching_service.core.database.declared import Index, NotExported, Stored, Unsharded
from coaching_service.core.database.documents import Document, Documents, now
from coaching_service.core.errors import CompanySuspended, Conflict, Forbidden, NotFound, TooManyRequests
from coaching_service.core.events import DomainEvent
from coaching_service.core.fields import input_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import mail, queue
from coaching_service.core.jobs.queue import Job, RunAgain, Step, Steps
from coaching_service.core.validation import Integer, Text, Timezone, patch_of
from coaching_service.people import second_factor
from coaching_service.people.identities import service as identities

# --- Companies as they are sent, stored and returned ------------------------------------------------------------------


LoadUnit = Literal["kg", "lb"]


class AccountNotifications(TypedDict):
    """Which mails the company sends to its coaches; `notifications` of GET /me are the settings of one coach."""

    messages: Annotated[
        bool,
        core_fields.Description(
            "Whether coaches get mail about unread messages of clients. false: no coach does; true: each as chosen in "
            "PATCH /me. Notifications on devices depend on PATCH /me alone."
        ),
    ]


class AttentionSettings(TypedDict):
    """When clients need attention."""

    inactiveDays: Annotated[
        int,
        Integer(minimum=1, maximum=365),
        core_fields.Description("A client is inactive after so many days without a session. A new company has 7."),
    ]
    complianceBelow: Annotated[
        int,
        Integer(minimum=0, maximum=100),
        core_fields.Description("Compliance in the last 30 days is low below so many percent. A new company has 60."),
    ]
    horizonDays: Annotated[
        int,
        Integer(minimum=0, maximum=90),
        core_fields.Description("A workout has to be scheduled from today to so many days ahead. A new company has 3."),
    ]


DEFAULT_ATTENTION: AttentionSettings = {"inactiveDays": 7, "complianceBelow": 60, "horizonDays": 3}
AccountNotificationsChange: TypeAlias = core_fields.Partial[AccountNotifications]
_NOTIFICATIONS = input_of(
    AccountNotificationsChange,
    name="AccountNotificationsInput",
    description="Which mails the company sends to its coaches; settings that are left out stay as they are.",
)
AttentionSettingsChange: TypeAlias = core_fields.Partial[AttentionSettings]
_ATTENTION = input_of(
    AttentionSettingsChange,
    name="AttentionSettingsInput",
    description="When clients need attention; settings that are left out stay as they are.",
)


class ClientRights(TypedDict):
    """What clients may do by themselves. A new company: all of it."""

    clientsMayImport: Annotated[
        bool,
        core_fields.Default(core_fields.UNSET),
        core_fields.Description("Whether clients may import their own training history. A new company: true."),
    ]
    clientsMayMove: Annotated[
        bool,
        core_fields.Default(core_fields.UNSET),
        core_fields.Description(
            "Whether clients may move their workouts to days near the planned one. A new company: true."
        ),
    ]
    clientsMayAdd: Annotated[
        bool,
        core_fields.Default(core_fields.UNSET),
        core_fields.Description(
            "Whether clients may add workouts of their own to their calendar. A new company: true."
        ),
    ]


class AccountDetails(ClientRights):
    """The fields of the company that its owner can change."""

    requireSecondFactor: Annotated[
        bool,
        core_fields.Default(core_fields.UNSET),
        core_fields.Description(
            "Whether the sessions of coaches need a second factor: one that began with a password alone is 403 "
            "`SECOND_FACTOR_REQUIRED` from the next request, but for setting one up. A new company: false."
        ),
    ]
    companyName: Annotated[str, Text()]
    timezone: Annotated[
        str,
        Timezone(),
        core_fields.Description(response="IANA; `today` is there for clients without a zone of their own."),
    ]
    loadUnit: Annotated[LoadUnit, core_fields.Description(request="Stays while any load is stored.")]
    notifications: Annotated[
        AccountNotifications,
        fields.Nested(_NOTIFICATIONS, required=False),
        core_fields.Description("Which mails the company sends to its coaches, for all of them."),
    ]
    attention: Annotated[
        AttentionSettings,
        fields.Nested(_ATTENTION, required=False),
        core_fields.Description("When clients need attention."),
    ]


class Suspension(TypedDict):
    """Since when a company is suspended, and the operator's reason."""

    at: datetime
    reason: str


class LoadConversion(TypedDict):
    """The conversion of all loads to another unit that is in progress."""

    jobId: ObjectId
    loadUnit: LoadUnit


class _AccountState(TypedDict):
    """What the service stores with a company.

    `keepsLoads`: loads may be stored in `loadUnit`; `loadLocks` counts the locks of the unit; `loadConversion`: loads
    are being converted; `loadsConvertedAt`: when the last conversion ended; `hasOverrides`: the company has changed
    shared exercises, unknown if not set; `sandboxId`: the sandbox of this company; `sandboxOf`: the company whose
    sandbox this one is; `suspension`: set while the company is suspended; `holdsMail`: set until the owner's e-mail
    address is confirmed.
    """

    keepsLoads: NotRequired[Annotated[bool, core_fields.Private]]
    loadLocks: NotRequired[Annotated[int, core_fields.Private]]
    loadConversion: NotRequired[Annotated[LoadConversion, core_fields.Private]]
    loadsConvertedAt: NotRequired[Annotated[datetime, core_fields.Private]]
    hasOverrides: NotRequired[Annotated[bool, core_fields.Private]]
    hasDeclined: NotRequired[Annotated[bool, core_fields.Private]]
    sandboxId: NotRequired[Annotated[ObjectId, core_fields.Private]]
    sandboxOf: NotRequired[Annotated[ObjectId, core_fields.Private]]
    suspension: NotRequired[Annotated[Suspension, core_fields.Private]]
    holdsMail: NotRequired[Annotated[bool, core_fields.Private]]


class Account(AccountDetails, _AccountState, Stored):
    """The company."""


AccountChange: TypeAlias = core_fields.Change[AccountDetails]


class AccountErasure(TypedDict):
    """The owner's password, as a confirmation."""

    password: Annotated[str, Text(max_length=200, trim=False)]


# --- Domain events about the company ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class FigureSettingsChanged(DomainEvent):
    """The company's time zone, or its settings of attention, changed: figures stored with its clients follow them."""


@dataclass(frozen=True)
class LoadUnitChanged(DomainEvent):
    """The company's unit of load is being changed: subscribers raise Conflict if loads are stored in the other one."""

    load_unit: str


@dataclass(frozen=True)
class CompanyDeleted(DomainEvent):
    """The company was deleted; its data is still stored."""


@dataclass(frozen=True)
class CompanyResumed(DomainEvent):
    """The suspension of the company has ended: background work that has been put off continues."""


# --- Store ------------------------------------------------------------------------------------------------------------
# Companies in the database. A company's document has its own identifier as `companyId`, like all its other data.


companies = Documents[Account](
    "companies",
    (Index(()),),
    private=core_fields.private_of(Account),
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


async def _lock_load_unit(ctx: Context, load_unit: str) -> bool:
    """Record that loads are stored in `load_unit`; returns whether it is still the company's unit.

    Transactions that lock, change or convert the unit at the same time conflict.
    """
    # A process that has cached the previous value records it once more; see `has_stored_loads`.
    change = {"$set": {"keepsLoads": True}, "$inc": {"loadLocks": 1}}
    where = {"loadUnit": load_unit, "loadConversion": {"$exists": False}}
    return await companies.set_derived(ctx, where, change, may_be_stale=True) == 1


ERASE = "erase_company"
_FIGURE_SETTINGS = ("timezone", "attention")


async def create(ctx: Context) -> Account:
    """Store the caller's company; the caller is its owner."""
    company = ctx.caller.company
    fields = {"companyName": company.name, "timezone": company.timezone, "loadUnit": company.load_unit}
    rights = dict.fromkeys(core_fields.names_of(ClientRights), True)
    settings = {
        "notifications": {"messages": True},
        "attention": DEFAULT_ATTENTION,
        "requireSecondFactor": False,
        **rights,
    }
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
        account["requireSecondFactor"],
        account.get("hasDeclined", False),
    )


async def release_mail(ctx: Context) -> bool:
    """Send the mail of the company that was held, in the caller's transaction; returns whether it was held."""
    if await companies.update(ctx, {"holdsMail": True}, {"$unset": {"holdsMail": ""}}) is None:
        return False
    await queue.continue_paused(ctx)
    return True


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
    if (again or not company.has_stored_loads) and not await _lock_load_unit(ctx, company.load_unit):
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


async def lock_stored_unit(ctx: Context) -> None:
    """Fix the company's unit of load as it is stored now, in the caller's transaction."""
    await _lock_load_unit(ctx, (await get_account(ctx))["loadUnit"])


async def record_overrides(ctx: Context) -> None:
    """Record that the company changes shared exercises, before the first change is stored."""
    if not ctx.caller.company.has_overrides:
        await companies.set_derived(ctx, {}, {"$set": {"hasOverrides": True}})


async def record_declined(ctx: Context) -> None:
    """Record that a client turns off assistants or applications, in the caller's transaction."""
    if not ctx.caller.company.has_declined:
        await companies.set_derived(ctx, {}, {"$set": {"hasDeclined": True}})


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


# --- Converting loads to another unit: what the features that store or show loads have in common ----------------------


Convert = Callable[[float], float]
LOAD_UNITS = ("kg", "lb")
_KG_PER_LB = Decimal("0.45359237")  # the international pound


class Conversion(NamedTuple):
    """How loads are converted to `load_unit`, and whether the result is stored or only counted."""

    convert: Convert
    load_unit: str
    is_stored: bool


class LoadCount(NamedTuple):
    """How many documents with loads there are, and how many loads."""

    documents: int = 0
    loads: int = 0


def convert_load(load: Decimal, unit: str, target: str, step: Decimal = Decimal("0.01")) -> Decimal:
    """Return a load in kg or lb in the target unit, rounded half up to `step` if it has to be converted."""
    if unit == target:
        return load
    converted = load * _KG_PER_LB if target == "kg" else load / _KG_PER_LB
    return converted.quantize(step, ROUND_HALF_UP)


def convert_stored_load(load: float, unit: str, target: str) -> float:
    """Return a stored load in the target unit, rounded half up to 0.1 if it has to be converted."""
    return float(convert_load(Decimal(str(load)), unit, target, Decimal("0.1")))


def convert_entered_load(load: float, unit: str, target: str) -> float:
    """Return a load that a user entered in the unit in which it is stored, rounded half up to 0.01 if it is another."""
    return float(convert_load(Decimal(str(load)), unit, target))


# --- All companies, for the operator of the service -------------------------------------------------------------------


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


# --- Suspending companies: no access for their users and their programs, no background work, and all data stays -------
# `account.service.to_company` refuses the requests of suspended companies.


_PAUSE = timedelta(minutes=5)
_HELD_PAUSE = timedelta(minutes=15)


@transactional
async def suspend(ctx: Context, reason: str) -> None:
    """Suspend the caller's company and its sandbox, from the next request. Raises NotFound if it has been deleted."""
    suspension: Suspension = {"at": now(), "reason": reason}
    for each in await _with_sandbox(ctx):
        if not await companies.set_derived(each, {}, {"$set": {"suspension": suspension}}):
            raise NotFound("company")


@transactional
async def resume(ctx: Context) -> None:
    """End the suspension of the caller's company and its sandbox; its jobs continue at once. Raises NotFound."""
    for each in await _with_sandbox(ctx):
        if not await companies.set_derived(each, {}, {"$unset": {"suspension": ""}}):
            raise NotFound("company")
        await queue.continue_paused(each)
        await each.publish(CompanyResumed())


async def _with_sandbox(ctx: Context) -> list[Context]:
    """Return `ctx`, and the same in the sandbox of the company, if it has one."""
    in_sandbox = await enter_sandbox(ctx)
    return [ctx] if in_sandbox is None or not await find_own(in_sandbox) else [ctx, in_sandbox]


async def list_suspended(services: Services) -> set[ObjectId]:
    """Return the companies that are suspended."""
    where = {"suspension.at": {"$exists": True}}
    cursor = companies.across_companies(services).find(where, {"_id": 1}, hint="suspension_at")
    return {company["_id"] async for company in cursor}


async def require_active(services: Services, company_id: ObjectId) -> None:
    """Raise CompanySuspended if the company is suspended, where there is no principal to refuse."""
    company = await companies.across_companies(services).find_one({"_id": company_id}, {"suspension": 1})
    if company is not None and "suspension" in company:
        raise CompanySuspended()


def pausing(steps: Steps, unpaused: Collection[str], while_converting: Collection[str] = ()) -> Steps:
    """Return `steps` that pause the jobs of companies that are suspended or convert loads.

    But jobs of the kinds `unpaused`; jobs of the kinds `while_converting` pause only for a suspension. Mail that is not
    urgent pauses while the company's mail is held. A job of no company is never paused.
    """

    def pause(kind: str, step: Step) -> Step:
        @wraps(step)
        async def run(services: Services, job: Job) -> RunAgain | None:
            if job.company_id is not None:
                fields = {"suspension": 1, "loadConversion": 1, "holdsMail": 1}
                company = await companies.across_companies(services).find_one({"_id": job.company_id}, fields) or {}
                if "suspension" in company or ("loadConversion" in company and kind not in while_converting):
                    return RunAgain(_PAUSE, is_pause=True)
                if kind == mail.SEND and company.get("holdsMail") and not job.arguments.get("isUrgent", False):
                    return RunAgain(_HELD_PAUSE, is_pause=True)
            return await step(services, job)

        return run

    return {kind: step if kind in unpaused else pause(kind, step) for kind, step in steps.items()}


# --- The check of sandboxes -------------------------------------------------------------------------------------------


async def _list_lost_sandboxes(services: Services) -> list[ObjectId]:
    stages: list[Document] = [
        {"$match": {"sandboxOf": {"$exists": True}}},
        {"$lookup": {"from": companies.name, "localField": "sandboxOf", "foreignField": "_id", "as": "owners"}},
        {"$match": {"$expr": {"$not": [{"$in": ["$_id", "$owners.sandboxId"]}]}}},
        {"$project": {"_id": 1}},
    ]
    async with reading_snapshot(services) as session:
        cursor = companies.across_companies(services).aggregate(stages, session=session)
        return [company["_id"] async for company in cursor]


CHECKS = (
    check_of(
        "sandboxes",
        "Sandboxes belong to a company",
        _list_lost_sandboxes,
        "Sandboxes that are not the sandbox of a company",  # they are not deleted with one
        "Erase each with admin companies erase and its identifier, if its company is not missing by mistake",
    ),
)


# --- REST -------------------------------------------------------------------------------------------------------------


routes = Routes("", tag="Account")


@routes.get("/coach/account", access=coach())
async def get_account(ctx: Context) -> Account:
    """Read the company."""
    if (account := await find_own(ctx)) is None:
        raise NotFound("company")
    return account


@routes.patch(
    "/coach/account",
    access=owner(),
    body=patch_of(input_of(AccountDetails), name="AccountChange"),
    example={"timezone": "Europe/Madrid"},
)
@transactional
async def update_account(ctx: Context, body: AccountChange) -> Account:
    """Change the company.

    `loadUnit` is 409 while any load is stored; POST /coach/account/load-unit converts them. `requireSecondFactor` is
    409 `SECOND_FACTOR_MISSING` for an owner without one.
    """
    # Raises Conflict if it has changed since `change["version"]`, if `loadUnit` changes while any load is stored, or if
    # the owner requires a second factor without having one.
    settings = {"attention": body.get("attention", {}), "notifications": body.get("notifications", {})}
    fields: dict[str, object] = {name: value for name, value in body.items() if name not in ("version", *settings)}
    for group, chosen in settings.items():
        fields |= {f"{group}.{name}": value for name, value in chosen.items()}
    version = body.get("version")
    current = await get_account(ctx)
    if not fields:
        if version not in (None, current["version"]):
            raise version_conflict()
        return current
    if body.get("requireSecondFactor") and not await second_factor.has_any(ctx, ctx.caller.id):
        raise Conflict("Set up a second factor of your own first", code="SECOND_FACTOR_MISSING")
    unit = body.get("loadUnit", current["loadUnit"])
    if unit != current["loadUnit"] and await has_stored_loads(ctx):
        await ctx.publish(LoadUnitChanged(unit))
        fields["keepsLoads"] = False
    account = await companies.update(ctx, {}, {"$set": fields}, version=version)
    if account is None:
        raise NotFound("company")
    await audit.record(ctx, "account.changed", ctx.company_id, ", ".join(sorted(fields)))
    if any(name.partition(".")[0] in _FIGURE_SETTINGS for name in fields):
        await ctx.publish(FigureSettingsChanged())
    return account


@routes.delete(
    "/coach/account",
    request_class="unlimited",
    access=owner_session(),
    errors=(TooManyRequests,),
    example={"password": "correct horse battery staple"},
)
async def delete_account(ctx: Context, body: AccountErasure) -> None:
    """Erase the company.

    All its keys, sign-in sessions and passwords stop working at once; its data is then erased in the background.
    """
    # Raises Forbidden if the password is not the caller's; TooManyRequests after too many wrong ones.
    if not await identities.check_password(ctx, ctx.caller.id, body["password"]):
        raise Forbidden("The password is wrong", code="WRONG_PASSWORD")
    await delete(ctx)
