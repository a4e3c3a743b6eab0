"""Clients who sign in: as principals of requests, and by the token of their first access."""

from __future__ import annotations

import uuid

from coaching_service.core.auth.principal import Company, Principal
from coaching_service.core.auth.secrets import token_hash
from coaching_service.core.database.context import Context, Services
from coaching_service.core.ids import ObjectId
from coaching_service.people.account import service as account
from coaching_service.people.customers import first_access_store
from coaching_service.people.customers.models import Customer


def to_principal(
    customer: Customer, company: Company, credential_id: ObjectId, impersonated_by: ObjectId | None = None
) -> Principal:
    """Return a stored client as the principal of a request."""
    return Principal(
        id=customer["_id"],
        company=company,
        role="CUSTOMER",
        via="session",
        name=customer["name"],
        email=customer["email"],
        credential_id=credential_id,
        impersonated_by=impersonated_by,
        timezone=customer["timezone"],
        own_load_unit=customer.get("loadUnit"),
    )


async def load_principal(services: Services, company_id: ObjectId, customer_id: ObjectId) -> Principal | None:
    """Return a client as a principal; None if the client is deleted or archived, or the company is deleted.

    Raises CompanySuspended.
    """
    customer = await first_access_store.find_with_company(services, company_id, customer_id)
    if customer is None or customer["customerRoleData"]["isArchived"]:
        return None
    return to_principal(customer, account.to_company(customer["company"]), customer_id)


async def load_author(services: Services, company_id: ObjectId, customer_id: ObjectId) -> Principal | None:
    """Return a client as the author of background work, even if archived; None if the client is deleted."""
    customer = await first_access_store.find_with_company(services, company_id, customer_id)
    if customer is None:
        return None
    return to_principal(customer, account.to_company(customer["company"], even_suspended=True), customer_id)


record_sign_in = first_access_store.set_signed_in


async def create_first_access_token(ctx: Context, customer_id: ObjectId) -> str:
    """Return a new first-access token for a client; the previous one becomes invalid."""
    token = str(uuid.uuid4())
    await first_access_store.set_first_access_hash(ctx, customer_id, token_hash(token))
    return token


async def find_by_first_access_token(services: Services, token: str) -> Customer | None:
    """Return `_id`, `companyId`, `name` and `email` of the client with this first-access token, or None."""
    return await first_access_store.find_by_first_access_hash(services, token_hash(token))


async def use_first_access_token(ctx: Context, customer_id: ObjectId, token: str, email: str) -> bool:
    """Invalidate a first-access token in the caller's transaction; returns whether it was still valid.

    A client without an e-mail address gets `email`.
    """
    return await first_access_store.use_first_access_hash(ctx, customer_id, token_hash(token), email)
