"""The coaches of a company: who they are and what they may do."""

from __future__ import annotations

from coaching_service.kernel.auth.permissions import ALL_PERMISSIONS
from coaching_service.kernel.auth.principal import Company, Principal, Via
from coaching_service.kernel.errors import not_found
from coaching_service.kernel.storage.context import Context, Services, in_transaction
from coaching_service.kernel.storage.documents import Document
from coaching_service.kernel.storage.ids import ObjectId
from coaching_service.people.account import service as account
from coaching_service.people.identities import service as identities
from coaching_service.people.team import store


async def found_company(
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

    `password_hash` is what identities.hash_password gave.
    `timezone` is an IANA name, `load_unit` `kg` or `lb`. Raises Conflict when the address is already used to sign in.
    """
    company = Company(ObjectId(), company_name, timezone, load_unit)
    owner_id = ObjectId()
    owner = {"_id": owner_id, "name": name, "email": email, "role": "OWNER", "permissions": [], "customersScope": "all"}
    principal = as_principal(owner, company, "session", owner_id)

    async def found(tx: Context) -> None:
        await account.found(tx)
        await store.add(tx, owner)
        await identities.add(tx, owner_id, email, password_hash)

    await in_transaction(ctx.acting_as(principal), found)
    return principal


def as_principal(coach: Document, company: Company, via: Via, credential_id: ObjectId) -> Principal:
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


async def hire(
    ctx: Context, name: str, email: str, permissions: list[str], customers_scope: str, password_hash: str | None
) -> Document:
    """A new employee, who signs in by `email` (once they have a password). Raises Conflict for an address in use."""
    identifier = ObjectId()
    employee = {
        "_id": identifier,
        "name": name,
        "email": email,
        "role": "EMPLOYEE",
        "permissions": permissions,
        "customersScope": customers_scope,
    }

    async def hired(tx: Context) -> Document:
        stored = await store.add(tx, employee)
        await identities.add(tx, identifier, email, password_hash)
        return stored

    return await in_transaction(ctx, hired)


async def principal(services: Services, coach_id: ObjectId) -> Principal | None:
    """The coach as a principal of their own company, for the command line; None when there is no such coach."""
    coach = await store.resolve(services, coach_id)
    return None if coach is None else as_principal(coach, account.as_company(coach["company"]), "session", coach_id)


async def require(ctx: Context, coach_id: ObjectId) -> Document:
    """The coach of this company. Raises NotFound for any other identifier."""
    if (coach := await store.one(ctx, coach_id)) is None:
        raise not_found("Coach")
    return coach
