"""Clients who sign in: as principals of requests, and by the token of their first access."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from coaching_service.core.auth.principal import Company, Principal
from coaching_service.core.auth.secrets import token_hash
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import PipelineStage, now
from coaching_service.core.database.worker_thread import aggregate_all
from coaching_service.core.ids import ObjectId
from coaching_service.people.account import service as account
from coaching_service.people.account.models import Account
from coaching_service.people.customers._search import search_fields
from coaching_service.people.customers.models import Customer
from coaching_service.people.customers.store import ARCHIVED, customers


class _CustomerWithCompany(Customer):
    """A client with the company's document."""

    company: Account


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
    customer = await _find_with_company(services, company_id, customer_id)
    if customer is None or customer["customerRoleData"]["isArchived"]:
        return None
    return to_principal(customer, account.to_company(customer["company"]), customer_id)


async def load_author(services: Services, company_id: ObjectId, customer_id: ObjectId) -> Principal | None:
    """Return a client as the author of background work, even if archived; None if the client is deleted."""
    customer = await _find_with_company(services, company_id, customer_id)
    if customer is None:
        return None
    return to_principal(customer, account.to_company(customer["company"], even_suspended=True), customer_id)


async def _find_with_company(
    services: Services, company_id: ObjectId, customer_id: ObjectId
) -> _CustomerWithCompany | None:
    """Return the fields of a client that a sign-in needs, with the `company`; None if either is deleted."""
    stages: list[PipelineStage] = [
        {"$match": {"companyId": company_id, "_id": customer_id}},
        {"$project": {"name": 1, "email": 1, "timezone": 1, "companyId": 1, ARCHIVED: 1}},
        {"$lookup": {"from": "companies", "localField": "companyId", "foreignField": "_id", "as": "company"}},
        {"$unwind": "$company"},
    ]
    result: list[Any] = await aggregate_all(customers.across_companies(services), stages)
    return result[0] if result else None


async def record_sign_in(ctx: Context, customer_id: ObjectId) -> None:
    """Record that a client has signed in: an action of the client, and `firstLoginDate` if it is the first time."""
    at = now()
    first = {"_id": customer_id, "customerRoleData.firstLoginDate": None}
    await customers.set_derived(ctx, first, {"$set": {"customerRoleData.firstLoginDate": at}})
    await customers.set_derived(ctx, {"_id": customer_id}, {"$set": {"lastActivityDate": at}})


async def create_first_access_token(ctx: Context, customer_id: ObjectId) -> str:
    """Return a new first-access token for a client; the previous one becomes invalid."""
    token = str(uuid.uuid4())
    await customers.set_derived(ctx, {"_id": customer_id}, {"$set": {"firstAccessHash": token_hash(token)}})
    return token


async def find_by_first_access_token(services: Services, token: str) -> Customer | None:
    """Return `_id`, `companyId`, `name` and `email` of the client with this first-access token, or None."""
    where, fields = {"firstAccessHash": token_hash(token)}, {"companyId": 1, "email": 1, "name": 1}
    customer: Any = await customers.across_companies(services).find_one(where, fields)
    return customer  # type: ignore[no-any-return]  # the driver's documents are untyped


async def use_first_access_token(ctx: Context, customer_id: ObjectId, token: str, email: str) -> bool:
    """Invalidate a first-access token in the caller's transaction; returns whether it was still valid.

    A client without an e-mail address gets `email`.
    """
    where = {"_id": customer_id, "firstAccessHash": token_hash(token)}
    if not await customers.set_derived(ctx, where, {"$unset": {"firstAccessHash": ""}}):
        return False

    def add_email(customer: Customer) -> Mapping[str, object]:
        if customer["email"] is not None:
            return {}
        return {"email": email, **search_fields(customer["name"], customer["surname"], email)}

    await customers.rewrite(ctx, {"_id": customer_id}, add_email)
    return True
