"""Clients as those who sign in: as principals, and by the token of their first access."""

from __future__ import annotations

import uuid

from coaching_service.core.auth.principal import Company, Principal
from coaching_service.core.auth.secrets import token_hash
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document
from coaching_service.core.ids import ObjectId
from coaching_service.people.account import service as account
from coaching_service.people.customers import store


def to_principal(
    customer: Document, company: Company, credential_id: ObjectId, impersonated_by: ObjectId | None = None
) -> Principal:
    """A stored client as the principal of a request."""
    return Principal(
        id=customer["_id"],
        company=company,
        role="CUSTOMER",
        via="session",
        name=customer["name"],
        email=customer["email"],
        credential_id=credential_id,
        impersonated_by=impersonated_by,
    )


async def load_principal(services: Services, company_id: ObjectId, customer_id: ObjectId) -> Principal | None:
    """A client as a principal, for a sign-in; None when the client is gone or archived, or the company is gone."""
    found = await store.principal_facts(services, company_id, customer_id)
    if found is None or found["customerRoleData"]["isArchived"]:
        return None
    return to_principal(found, account.to_company(found["company"]), customer_id)


async def record_sign_in(ctx: Context, customer_id: ObjectId) -> None:
    """Remember that a client has signed in."""
    await store.set_signed_in(ctx, customer_id)


async def create_first_access_token(ctx: Context, customer_id: ObjectId) -> str:
    """Another first-access token for a client; the one before ends."""
    token = str(uuid.uuid4())
    await store.set_first_access(ctx, customer_id, token_hash(token))
    return token


async def find_by_first_access_token(services: Services, token: str) -> Document | None:
    """`{_id, companyId, name, email}` of the client whom a first-access token lets in, or None."""
    return await store.by_first_access(services, token_hash(token))


async def use_first_access_token(ctx: Context, customer_id: ObjectId, token: str, email: str) -> bool:
    """Use a first-access token up in the caller's transaction; whether it was still there."""
    return await store.use_first_access(ctx, customer_id, token_hash(token), email)
