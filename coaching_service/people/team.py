"""The coaches of a company: its owner and employees, and their permissions; and how many people it may invite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict
from urllib.parse import urlencode

from marshmallow import fields

from coaching_service.core import audit, rate_limits, validation
from coaching_service.core import fields as core_fields
from coaching_service.core.auth import ALL_PERMISSIONS, Company, Principal, Via, owner_session
from coaching_service.core.database import outcome
from coaching_service.core.database.context import Context, Services, transactional
from coaching_service.core.database.declared import Index, NotExported, Stored, Unsharded
from coaching_service.core.database.documents import Document, Documents, Filter, now
from coaching_service.core.database.recording import LoggedEvent
from coaching_service.core.database.worker_thread import aggregate_all
from coaching_service.core.errors import Conflict, NotFound, TooManyRequests
from coaching_service.core.events import DomainEvent, EventType, EventValue
from coaching_service.core.fields import input_of
from coaching_service.core.http.routes import Routes, list_of
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.core.jobs import mail
from coaching_service.core.jobs.mail import MailBody, NewMail, subject_with
from coaching_service.core.validation import patch_of
from coaching_service.people import account, notification_settings
from coaching_service.people.account import Account
from coaching_service.people.identities import models
from coaching_service.people.identities import service as identities
from coaching_service.people.identities.models import EmailConfirmed
from coaching_service.people.notification_settings import NotificationSettings, SomeSettings

# --- Invitations: how many a company may send, to whom and when -------------------------------------------------------
# A company sends at most 200 a day in its first week, and `INVITATIONS_PER_DAY` later. A person receives at most one
# of a company in 10 minutes and five a week, and none after declining them.


class Recipient(Stored):
    """A person whom the company has invited, by the keyed hash of the e-mail address.

    `sentAt`: when the invitations of the last week were sent, or will be. `declinedAt`: when the person asked for no
    more; `expiresAt`: when the document can be deleted, None if the person has declined.
    """

    addressHash: str
    sentAt: list[datetime]
    expiresAt: datetime | None
    declinedAt: NotRequired[datetime]


# --- Recipients of invitations in the database ------------------------------------------------------------------------


recipients = Documents[Recipient](
    "invitationRecipients",
    (Index(("addressHash",), unique=True),),
    secret=True,
    expire=("expiresAt", 0),
    transfer=NotExported("hashes of addresses under the keys of the service"),
    incidental=True,
)

FIRST_WEEK_PER_DAY, PER_WEEK = 200, 5
SPACING, WEEK = timedelta(minutes=10), timedelta(days=7)
_DAY = timedelta(days=1)


@transactional
async def reserve_invitations(ctx: Context, emails: Sequence[str]) -> list[timedelta | None]:
    """Return after which delay an invitation to each address is sent, in the caller's transaction.

    None where none is sent: the person has declined them, or would receive a sixth within a week. Raises
    TooManyRequests if the company has sent too many within a day.
    """
    hashes = [_hash(ctx.services, email) for email in emails]
    known = await _find_known(ctx, emails)
    at, sent, delays = now(), dict[str, list[datetime]](), list[timedelta | None]()
    for each in hashes:
        times, recipient = sent.get(each), known.get(each)
        if times is None:
            times = [] if recipient is None else [time for time in recipient["sentAt"] if time > at - WEEK]
        next_time = max([at, *(time + SPACING for time in times)])
        is_refused = len(times) >= PER_WEEK or (recipient is not None and "declinedAt" in recipient)
        delays.append(None if is_refused else next_time - at)
        if not is_refused:
            sent[each] = [*times, next_time]
    is_new = ctx.company_id.generation_time > datetime.now(UTC) - WEEK
    maximum = min(FIRST_WEEK_PER_DAY, ctx.services.invitations_per_day) if is_new else ctx.services.invitations_per_day
    number = len(delays) - delays.count(None)
    count, seconds = await rate_limits.count(
        ctx.services, "invitations", str(ctx.company_id), number=number, window=_DAY, tx=ctx
    )
    if count > maximum:  # those that are not sent do not count: the transaction is rolled back
        raise _too_many(
            ctx, seconds, f"Your company may send {maximum} invitations a day; send no invitation, or try again later"
        )
    stored = [{"addressHash": each, "sentAt": times, "expiresAt": times[-1] + WEEK} for each, times in sent.items()]
    await recipients.upsert_many(ctx, ("addressHash",), stored)
    return delays


async def require_invitation_possible(ctx: Context, email: str) -> None:
    """Raise an error if an invitation could not be sent to this address now.

    Conflict if the person has declined invitations of the company, TooManyRequests if the person has received too many.
    """
    recipient = (await _find_known(ctx, [email])).get(_hash(ctx.services, email))
    if recipient is None:
        return
    if "declinedAt" in recipient:
        raise Conflict("This person has asked to receive no more invitations from you", code="INVITATION_DECLINED")
    at = now()
    times = [time for time in recipient["sentAt"] if time > at - WEEK]
    wait = max([timedelta(0), *(time + SPACING - at for time in times)])
    if len(times) >= PER_WEEK:
        wait = max(wait, min(times) + WEEK - at)
    if wait > timedelta(0):
        raise _too_many(ctx, ceil(wait.total_seconds()), "This person has just received an invitation; try again later")


async def _find_known(ctx: Context, emails: Sequence[str]) -> dict[str, Recipient]:
    """Return the recipients among these addresses by their current hash, also those stored under an older key."""
    vault, current = ctx.services.vault, dict[str, str]()
    for email in emails:
        newest, *older = vault.keyed_hashes(models.account_key(email))
        current |= dict.fromkeys((newest, *older), newest)
    stored = await recipients.find(ctx, {"addressHash": {"$in": list(current)}})
    # A person who declined under an older key has declined; else what is stored under the newest key is complete.
    stored.sort(key=lambda each: ("declinedAt" in each, each["addressHash"] == current[each["addressHash"]]))
    return {current[each["addressHash"]]: each for each in stored}


def _too_many(ctx: Context, seconds: int, message: str) -> TooManyRequests:
    ctx.services.metrics.rate_limited.labels("invitations").inc()
    return TooManyRequests(message, {"Retry-After": str(seconds)})


# --- Declining -------------------------------------------------------------------------------------------------------


def decline_link(ctx: Context, email: str) -> str:
    """Return the address of the page where the recipient declines further invitations of the company."""
    address_hash = _hash(ctx.services, email)
    signature = ctx.services.vault.sign(_declined(ctx.company_id, address_hash))
    token = f"{ctx.company_id}.{address_hash}.{signature}"
    return f"{ctx.services.base_url}/train/no-invitations?{urlencode({'token': token})}"


async def get_declined(services: Services, token: str) -> tuple[Principal, str]:
    """Return the owner of the company and the hash of the address that a token was made for.

    Raises NotFound if it is not valid or the company is deleted.
    """
    company, _, rest = token.partition(".")
    address_hash, _, signature = rest.partition(".")
    company_id = parse_id(company)
    if company_id is None or not services.vault.verify_signature(_declined(company_id, address_hash), signature):
        raise NotFound("invitation")
    return await get_owner(services, company_id), address_hash


@transactional
async def decline_invitations(ctx: Context, address_hash: str) -> None:
    """Stop further invitations of the caller's company to a person."""
    declined = {"declinedAt": now(), "sentAt": [], "expiresAt": None}
    await recipients.upsert(ctx, {"addressHash": address_hash}, declined)


def _declined(company_id: ObjectId, address_hash: str) -> str:
    return f"decline invitations:{company_id}:{address_hash}"


def _hash(services: Services, email: str) -> str:
    return services.vault.keyed_hash(models.account_key(email))


# --- Coaches as they are sent, stored and returned --------------------------------------------------------------------


class Permissions(validation.ListOf):
    """Permissions by name, without duplicates, sorted."""

    def __init__(self, **options: Any) -> None:
        super().__init__(validation.Choice(*sorted(ALL_PERMISSIONS)), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        return sorted(set(super()._deserialize(value, attr, data, **kwargs)))


CoachRole = Literal["OWNER", "EMPLOYEE"]
CustomersScope = Literal["all", "assigned"]
PERMISSIONS = (
    "`area.action`; areas: customers, exercises, programs, forms, metrics, nutrition; "
    "actions: view, create, edit, delete; and `webhooks`."
)


class CoachName(TypedDict):
    """Who a coach is."""

    name: Annotated[str, validation.Text()]
    email: Annotated[str, validation.Email()]


class CoachRights(TypedDict):
    """What a coach may do: an owner has all permissions, and the scope `all`."""

    permissions: Annotated[
        list[str],
        Permissions(),
        fields.List(fields.String()),
        core_fields.Default(list),
        core_fields.Description(PERMISSIONS),
    ]
    customersScope: Annotated[CustomersScope, core_fields.Default("all")]


class _CoachRole(TypedDict):
    role: CoachRole


class _EmployeeRole(TypedDict):
    role: Literal["EMPLOYEE"]


class Coach(CoachName, _CoachRole, CoachRights, Stored):
    """A stored coach; `notifications` are absent until the coach changes them."""

    notifications: NotRequired[Annotated[SomeSettings, core_fields.Private]]


class Employee(CoachName, _EmployeeRole, CoachRights, Stored):
    """An employee of the company."""


class CoachWithCompany(Coach):
    """A coach with the company's document."""

    company: Account


class NewEmployee(CoachName, CoachRights):
    """An employee to add."""


class EmployeePermissions(TypedDict):
    """The permissions of an employee, and the clients they apply to."""

    permissions: Annotated[list[str], Permissions(), core_fields.Description(PERMISSIONS)]
    customersScope: NotRequired[CustomersScope]
    version: NotRequired[Annotated[int, validation.Version()]]


EmployeeChange: TypeAlias = core_fields.Change[NewEmployee]


# --- Domain events about coaches --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CoachRemoved(DomainEvent):
    """An employee was removed from the company."""

    coach_id: ObjectId


@dataclass(frozen=True)
class CoachNotificationsChanged(DomainEvent):
    """A coach has changed which notifications to get, how or when."""

    coach_id: ObjectId


@dataclass(frozen=True)
class SignInEmailChanged(DomainEvent):
    """An employee signs in by another e-mail address."""

    coach_id: ObjectId


# --- Coaches in the database ------------------------------------------------------------------------------------------


coaches = Documents[Coach](
    "coaches",
    (Index(("_id",)), Index(("role", "createdAt"))),
    private=core_fields.private_of(Coach),
    cross_company_reason="a session or the command line knows a coach before it knows the company",
    is_cached=True,
    placement=Unsharded("joined to keys, sessions and grants, on the shard of these"),
    transfer=NotExported("exported as coaches.jsonl; an import finds coaches by their e-mail address"),
)


async def find_with_company(services: Services, where: Filter) -> CoachWithCompany | None:
    """Return the coach of `where` with the `company`, in one round trip; None if either is deleted."""
    stages: list[Document] = [
        {"$match": where},
        {"$lookup": {"from": "companies", "localField": "companyId", "foreignField": "_id", "as": "company"}},
        {"$unwind": "$company"},
    ]
    result: list[Any] = await aggregate_all(coaches.across_companies(services), stages)
    return result[0] if result else None


_ALL: Filter = {"role": {"$in": ["OWNER", "EMPLOYEE"]}}

# --- The owner and the company ---------------------------------------------------------------------------------------


async def create_company(
    ctx: Context,
    company_name: str,
    name: str,
    email: str,
    password_hash: str | None,
    *,
    timezone: str = "UTC",
    load_unit: str = "kg",
    company_id: ObjectId | None = None,
    sandbox_of: ObjectId | None = None,
    is_confirmed: bool = True,
) -> Principal:
    """Create a company and its owner, and return the owner as a principal.

    `password_hash` comes from passwords.hash_password; None for the sandbox of the company `sandbox_of`, to which no
    user can sign in. `timezone` is an IANA name, `load_unit` is `kg` or `lb`. `is_confirmed`: the operator vouches for
    the owner's e-mail address; else mail to others is held until the owner confirms it.
    Raises Conflict if the e-mail address is already used to sign in.
    """
    company = Company(
        company_id or ObjectId(),
        company_name,
        timezone,
        load_unit,
        sandbox_of=sandbox_of,
        holds_mail=not is_confirmed,
    )
    owner_id = ObjectId()
    principal = Principal(
        id=owner_id,
        company=company,
        role="OWNER",
        via="session",
        name=name,
        email=email,
        credential_id=owner_id,
        permissions=ALL_PERMISSIONS,
    )
    await _insert_company(ctx.acting_as(principal), email, password_hash)
    return principal


@transactional
async def _insert_company(ctx: Context, email: str, password_hash: str | None) -> None:
    owner = ctx.caller
    await account.create(ctx)
    await coaches.insert(
        ctx,
        {
            "_id": owner.id,
            "name": owner.name,
            "email": email,
            "role": "OWNER",
            "permissions": [],
            "customersScope": "all",
        },
    )
    if not owner.company.is_sandbox:
        is_confirmed = not owner.company.holds_mail
        await identities.create(ctx, owner.id, "coach", email, password_hash, is_confirmed=is_confirmed)


def to_principal(coach: Coach, company: Company, via: Via, credential_id: ObjectId) -> Principal:
    """Return a stored coach as the principal of a request. An owner has every permission and the scope `all`."""
    is_owner = coach["role"] == "OWNER"
    return Principal(
        id=coach["_id"],
        company=company,
        role=coach["role"],
        via=via,
        name=coach["name"],
        email=coach["email"],
        credential_id=credential_id,
        permissions=ALL_PERMISSIONS if is_owner else frozenset(coach["permissions"]),
        customers_scope="all" if is_owner else coach["customersScope"],
    )


async def get_principal(services: Services, coach_id: ObjectId) -> Principal | None:
    """Return a coach as a principal; None if there is no such coach. Raises CompanySuspended."""
    coach = await find_with_company(services, {"_id": coach_id})
    return None if coach is None else to_principal(coach, account.to_company(coach["company"]), "session", coach_id)


async def get_owner(services: Services, company_id: ObjectId) -> Principal:
    """Return a company's owner as the principal of background work, even if the company is suspended.

    Raises NotFound if the company is deleted.
    """
    owner = await find_with_company(services, {"companyId": company_id, "role": "OWNER"})
    if owner is None:
        raise NotFound("company")
    company = account.to_company(owner["company"], even_suspended=True)
    return to_principal(owner, company, "session", owner["_id"])


async def list_owners(services: Services, company_ids: Sequence[ObjectId]) -> dict[ObjectId, Coach]:
    """Return the owner of each of these companies, for the operator."""
    where = {"companyId": {"$in": list(company_ids)}, "role": "OWNER"}
    return {owner["companyId"]: owner async for owner in coaches.across_companies(services).find(where)}


async def load_principal(ctx: Context, coach_id: ObjectId) -> Principal:
    """Return a coach of the company as a principal, for background work. Raises NotFound if there is no such coach."""
    return to_principal(await require_coach(ctx, coach_id), ctx.caller.company, "session", coach_id)


# --- Notifications ---------------------------------------------------------------------------------------------------


async def get_notifications(ctx: Context, coach_id: ObjectId) -> NotificationSettings:
    """Return which notifications a coach wants, how and when."""
    coach = await coaches.find_one(ctx, {"_id": coach_id}, ("notifications",))
    return notification_settings.complete(None if coach is None else coach.get("notifications"))


async def list_notifications(ctx: Context) -> dict[ObjectId, SomeSettings | None]:
    """Return which notifications each coach of the company has chosen, as they are stored."""
    found = await coaches.find(ctx, _ALL, fields=("notifications",))
    return {coach["_id"]: coach.get("notifications") for coach in found}


@transactional
async def set_notifications(ctx: Context, change: Mapping[str, object]) -> None:
    """Change which notifications the caller, a coach, wants. Raises NotFound if the coach has been removed."""
    settings = notification_settings.merge(await get_notifications(ctx, ctx.caller.id), change)
    change = {"$set": {"notifications": settings}}
    if not await coaches.set_derived(ctx, {"_id": ctx.caller.id}, change, may_be_stale=True):
        raise NotFound("coach")
    await ctx.publish(CoachNotificationsChanged(ctx.caller.id))


# --- Coaches and employees -------------------------------------------------------------------------------------------


async def require_coach(ctx: Context, coach_id: ObjectId) -> Coach:
    """Return a coach of the company. Raises NotFound if there is no such coach."""
    if (coach := await coaches.find_one(ctx, {"_id": coach_id})) is None:
        raise NotFound("coach")
    return coach


async def list_coaches(ctx: Context) -> list[Coach]:
    """Return every coach of the company: the owner, then employees by date of creation."""
    return await coaches.find(ctx, _ALL, sort=("-role", "createdAt"))


def _employee(employee_id: ObjectId) -> Filter:
    return {"_id": employee_id, "role": "EMPLOYEE"}


@transactional
async def create(
    ctx: Context,
    name: str,
    email: str,
    permissions: list[str],
    customers_scope: CustomersScope,
    password_hash: str | None = None,
    *,
    is_confirmed: bool = False,
) -> Coach:
    """Create an employee, who signs in by `email`. Without a password, a mail with a token to set one is queued.

    `is_confirmed`: the address is known to be the employee's, so that nothing is mailed. In a sandbox the employee
    cannot sign in. Raises Conflict if the e-mail address is already used to sign in, or the person wants no more
    invitations; TooManyRequests if the company has sent too many.
    """
    employee = await coaches.insert(
        ctx,
        {
            "name": name,
            "email": email,
            "role": "EMPLOYEE",
            "permissions": permissions,
            "customersScope": customers_scope,
        },
    )
    _report(ctx, "employee.created", employee["_id"])
    await audit.record(ctx, "employee.created", employee["_id"], name)
    if ctx.caller.company.is_sandbox:
        return employee
    await identities.create(ctx, employee["_id"], "coach", email, password_hash, is_confirmed=is_confirmed)
    if password_hash is None and not is_confirmed:
        await _send_invitation(ctx, employee["_id"], name, email)
    return employee


async def release_mail_of_confirmed_owner(ctx: Context, event: EmailConfirmed) -> None:
    """Send what the company held until its owner confirmed the e-mail address."""
    if ctx.caller.role != "OWNER" or event.subject_id != ctx.caller.id or not await account.release_mail(ctx):
        return
    confirmed = ctx.acting_as(replace(ctx.caller, company=replace(ctx.caller.company, holds_mail=False)))
    for employee in await list_employees(ctx):
        if not await identities.has_password(ctx, employee["_id"]):
            await _queue_invitation(confirmed, employee["_id"], employee["name"], employee["email"])


async def _send_invitation(ctx: Context, employee_id: ObjectId, name: str, email: str) -> None:
    """Queue a mail with a token to set a password, or when the company's mail is released: a token expires in an hour.

    Raises Conflict if the person wants no invitations, TooManyRequests if the person or the company has had too many.
    """
    await require_invitation_possible(ctx, email)
    await reserve_invitations(ctx, [email])
    if not ctx.caller.company.holds_mail:
        await _queue_invitation(ctx, employee_id, name, email)


async def _queue_invitation(ctx: Context, employee_id: ObjectId, name: str, email: str) -> None:
    token = await identities.create_reset_token(ctx, employee_id, "coach")
    company = ctx.caller.company.name
    body: MailBody = {
        "company": company,
        "name": name,
        "paragraphs": [f"{company} has added you to its team. Set your password within the hour."],
        "button": "Set your password",
        "link": f"{ctx.services.base_url}/app/reset-password?token={token}",
        "notes": ["The link works once. Later, ask for another with 'Forgotten password'."],
        "reason": f"You receive this mail because {ctx.caller.name} added a coach with this e-mail address to "
        f"{company}. If you do not know them, ignore it.",
        "settings": None,
        "decline": decline_link(ctx, email),
    }
    addition = f"Applications can send the password with this token to POST /auth/password/reset: {token}"
    subject = subject_with(company, "Welcome to the team of {}", "Welcome to the team")
    welcome = NewMail(models.normalize_email(email), subject, body, text_addition=addition)
    await mail.enqueue_mail(ctx, welcome)


def _report(ctx: Context, event_type: EventType, employee_id: ObjectId, **data: EventValue) -> None:
    """Report an event about an employee, in the caller's transaction, if a request is its cause."""
    if ctx.operation:
        ctx.changes.events.append(LoggedEvent(event_type, None, {"employeeId": employee_id, **data}))


# --- Credentials ------------------------------------------------------------------------------------------------------
# What API keys and grants of assistants have in common: they are read with their coach, and note their last use.


_LAST_USED_PRECISION = timedelta(minutes=1)


async def find_with_coach(credentials: Documents[Any], services: Services, where: Filter) -> Any:
    """Return the credential of `where` without its secrets, its `coach` and `company`, in one round trip.

    None if the credential, the coach or the company is deleted. A key that acts as the company has no coach.
    """
    stages: list[Document] = [
        {"$match": where},
        {"$project": dict.fromkeys(("sealed", "hash", "code", "access", "refresh", "familyHash"), 0)},
        {"$lookup": {"from": "coaches", "localField": "coachId", "foreignField": "_id", "as": "coach"}},
        {"$lookup": {"from": "companies", "localField": "companyId", "foreignField": "_id", "as": "company"}},
        {"$unwind": {"path": "$coach", "preserveNullAndEmptyArrays": True}},
        {"$match": {"$or": [{"coach": {"$exists": True}}, {"actsAs": "company"}]}},
        {"$unwind": "$company"},
    ]
    result: list[Any] = await aggregate_all(credentials.across_companies(services), stages)
    return result[0] if result else None


async def set_last_used(credentials: Documents[Any], services: Services, credential: Mapping[str, Any]) -> None:
    """Record that a credential was used, at most once a minute."""
    at, last = now(), credential["lastUsedAt"]
    if last is None or at - last >= _LAST_USED_PRECISION:
        unchanged = {"_id": credential["_id"], "lastUsedAt": last}
        with outcome.incidental():
            await credentials.across_companies(services).update_one(unchanged, {"$set": {"lastUsedAt": at}})


# --- REST -------------------------------------------------------------------------------------------------------------


routes = Routes("/coach/employees", tag="Team", path_descriptions={"employeeId": "The identifier of the employee."})


@routes.get("", access=owner_session(), returns=list_of(Employee))
async def list_employees(ctx: Context) -> list[Coach]:
    """List the employees."""
    return await coaches.find(ctx, {"role": "EMPLOYEE"}, sort=("createdAt",))


@routes.post(
    "",
    access=owner_session(),
    returns=Employee,
    errors=(Conflict,),
    example={
        "name": "Eli",
        "email": "eli@example.com",
        "permissions": ["customers.view"],
        "customersScope": "assigned",
    },
)
async def create_employee(ctx: Context, body: NewEmployee) -> Coach:
    """Add an employee.

    The employee is sent a mail with a token to set a password.
    """
    return await create(ctx, body["name"], body["email"], body["permissions"], body["customersScope"])


@routes.get("/{employeeId}", access=owner_session(), returns=Employee)
async def get_employee(ctx: Context, employee_id: ObjectId) -> Coach:
    """Read an employee."""
    if (employee := await coaches.find_one(ctx, _employee(employee_id))) is None:
        raise NotFound("employee")
    return employee


@routes.patch(
    "/{employeeId}",
    access=owner_session(),
    body=patch_of(input_of(NewEmployee), name="EmployeeChange"),
    returns=Employee,
    example={"name": "Eli Coach"},
)
@transactional
async def update_employee(ctx: Context, employee_id: ObjectId, body: EmployeeChange) -> Coach:
    """Change an employee.

    With another `email` the employee signs in by that one: sign-in sessions end and mailed tokens become invalid. An
    employee who has not set a password yet is sent a new token.
    """
    # With another e-mail address the employee's sign-in sessions end and tokens to set a password become invalid; an
    # employee without a password is sent a new one. Raises NotFound if there is no such employee, Conflict if the
    # e-mail address is already used to sign in or the employee has changed since `change["version"]`.
    fields = {name: value for name, value in body.items() if name != "version"}
    changed: list[str] = []

    def mutate(stored: Coach) -> Mapping[str, object]:
        changed[:] = sorted(name for name, value in fields.items() if stored.get(name) != value)
        return fields

    employee = await coaches.rewrite(ctx, _employee(employee_id), mutate, version=body.get("version"))
    if employee is None:
        raise NotFound("employee")
    if changed:
        _report(ctx, "employee.updated", employee_id, fields=changed)
    if {"permissions", "customersScope"} & {*changed}:
        await audit.record(ctx, "permissions.changed", employee_id, employee["name"])
    if (email := body.get("email")) is not None:
        result = await identities.change_email(ctx, employee_id, email)
        if result.changed:
            await ctx.publish(SignInEmailChanged(employee_id))
        if result.changed and not result.has_password:
            await _send_invitation(ctx, employee_id, employee["name"], email)
    return employee


@routes.put(
    "/{employeeId}/permissions",
    access=owner_session(),
    body=EmployeePermissions,
    returns=Employee,
    example={"permissions": ["customers.view", "customers.edit"], "customersScope": "assigned"},
)
async def set_employee_permissions(ctx: Context, employee_id: ObjectId, body: EmployeeChange) -> Coach:
    """Set what an employee may do.

    They apply from the next request, for sessions and keys.
    """
    return await update_employee(ctx, employee_id, body)


@routes.delete("/{employeeId}", access=owner_session())
@transactional
async def delete_employee(ctx: Context, employee_id: ObjectId) -> None:
    """Remove an employee.

    The employee's sessions and keys end at once; the employee's clients have no trainer.
    """
    if (employee := await coaches.delete(ctx, _employee(employee_id))) is None:
        raise NotFound("employee")
    await audit.record(ctx, "employee.removed", employee_id, employee["name"])
    await identities.remove(ctx, employee_id)
    _report(ctx, "employee.removed", employee_id)
    await ctx.publish(CoachRemoved(employee_id))
