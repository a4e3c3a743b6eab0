"""The coaches of a company: who they are and what they may do."""

from __future__ import annotations

from coaching_service.core.auth.permissions import ALL_PERMISSIONS
from coaching_service.core.auth.principal import Company, Principal, Via
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import mail
from coaching_service.people.account import service as account
from coaching_service.people.identities import service as identities
from coaching_service.people.team import store
from coaching_service.people.team.events import CoachRemoved


async def create_company(
    ctx: Context,
    company_name: str,
    name: str,
    email: str,
    password_hash: str,
    *,
    timezone: str = "UTC",
    load_unit: str = "kg",
) -> Principal:
    """A new company and its owner, who can sign in at once; gives the owner as a principal.

    `password_hash` is what passwords.hash_password gave; `timezone` is an IANA name, `load_unit` `kg` or `lb`.
    Raises Conflict when the address is already used to sign in.
    """
    company = Company(ObjectId(), company_name, timezone, load_unit)
    owner_id = ObjectId()
    owner = {"_id": owner_id, "name": name, "email": email, "role": "OWNER", "permissions": [], "customersScope": "all"}
    principal = to_principal(owner, company, "session", owner_id)

    async def found(tx: Context) -> None:
        await account.create(tx)
        await store.add(tx, owner)
        await identities.add(tx, owner_id, "coach", email, password_hash)

    await in_transaction(ctx.acting_as(principal), found)
    return principal


def to_principal(coach: Document, company: Company, via: Via, credential_id: ObjectId) -> Principal:
    """A stored coach as the principal of a request. An owner has every permission and sees every client."""
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


async def load_principal(services: Services, coach_id: ObjectId) -> Principal | None:
    """The coach as a principal of their own company; None when there is no such coach."""
    coach = await store.resolve(services, coach_id)
    return None if coach is None else to_principal(coach, account.to_company(coach["company"]), "session", coach_id)


async def load_owner(services: Services, company_id: ObjectId) -> Principal:
    """A company's owner as the principal of background work. Raises NotFound when the company is gone."""
    owner = await store.owner(services, company_id)
    if owner is None:
        raise NotFound("company")
    return to_principal(owner, account.to_company(owner["company"]), "session", owner["_id"])


async def require_coach(ctx: Context, coach_id: ObjectId) -> Document:
    """The coach of this company. Raises NotFound for any other identifier."""
    if (coach := await store.one(ctx, coach_id)) is None:
        raise NotFound("coach")
    return coach


async def list_coaches(ctx: Context) -> list[Document]:
    """Every coach of the company, the owner first."""
    return await store.everybody(ctx)


async def list_employees(ctx: Context) -> list[Document]:
    """The company's employees, the longest there first."""
    return await store.employees(ctx)


async def get_employee(ctx: Context, employee_id: ObjectId) -> Document:
    """One employee. Raises NotFound."""
    if (found := await store.employee(ctx, employee_id)) is None:
        raise NotFound("employee")
    return found


async def create_employee(
    ctx: Context, name: str, email: str, permissions: list[str], customers_scope: str, password_hash: str | None = None
) -> Document:
    """A new employee, who signs in by `email`. Without a password, a mail with a token to set one is queued.

    Raises Conflict for an address already used to sign in.
    """
    identifier = ObjectId()
    new = {
        "_id": identifier,
        "name": name,
        "email": email,
        "role": "EMPLOYEE",
        "permissions": permissions,
        "customersScope": customers_scope,
    }

    async def hired(tx: Context) -> Document:
        stored = await store.add(tx, new)
        await identities.add(tx, identifier, "coach", email, password_hash)
        if password_hash is None:
            await _invite(tx, identifier, name, email)
        return stored

    return await in_transaction(ctx, hired)


async def _invite(ctx: Context, employee_id: ObjectId, name: str, email: str) -> None:
    token = await identities.create_reset_token(ctx, employee_id, "coach")
    company = ctx.caller.company.name
    text = (
        f"Hello {name},\n\n{company} has added you to its team. Set your password within the hour:\n\n"
        f"{ctx.services.base_url}/app/reset-password?token={token}\n\n"
        f"Or send it with this token to POST /auth/password/reset: {token}\n"
        "Later, ask for another with 'Forgotten password'.\n"
    )
    await mail.enqueue_mail(ctx, email, f"Welcome to the team of {company}", text)


async def update_employee(ctx: Context, employee_id: ObjectId, details: Document) -> Document:
    """Change what is sent of an employee: name, email, permissions, customersScope; it holds from the next request.

    A token to set a password that was sent to another address ends; who has none yet is sent one to the new address.
    Raises NotFound, and Conflict for an address in use or a version that has moved on.
    """
    fields = dict(details)
    version = fields.pop("version", None)

    async def changed(tx: Context) -> Document:
        found = await store.rewrite(tx, employee_id, lambda _: fields, version)
        if found is None:
            raise NotFound("employee")
        if "email" in fields and await identities.change_email(tx, employee_id, fields["email"]):
            await _invite(tx, employee_id, found["name"], fields["email"])
        return found

    return await in_transaction(ctx, changed)


async def remove_employee(ctx: Context, employee_id: ObjectId) -> None:
    """Remove an employee: their sign-in, sessions and keys end at once, their clients have no trainer.

    Raises NotFound.
    """

    async def removed(tx: Context) -> None:
        if not await store.remove(tx, employee_id):
            raise NotFound("employee")
        await identities.remove(tx, employee_id)
        await tx.publish(CoachRemoved(employee_id))

    await in_transaction(ctx, removed)
