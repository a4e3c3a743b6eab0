"""What the sign-in and the first access of clients read and change in the database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import PipelineStage, now
from coaching_service.core.database.worker_thread import aggregate_all
from coaching_service.core.ids import ObjectId
from coaching_service.people.account.models import Account
from coaching_service.people.customers._search import search_fields
from coaching_service.people.customers.models import Customer
from coaching_service.people.customers.store import ARCHIVED, customers


class CustomerWithCompany(Customer):
    """A client with the company's document."""

    company: Account


async def find_with_company(
    services: Services, company_id: ObjectId, customer_id: ObjectId
) -> CustomerWithCompany | None:
    """Return the fields of a client that a sign-in needs, with the `company`; None if either is deleted."""
    stages: list[PipelineStage] = [
        {"$match": {"companyId": company_id, "_id": customer_id}},
        {"$project": {"name": 1, "email": 1, "timezone": 1, "companyId": 1, ARCHIVED: 1}},
        {"$lookup": {"from": "companies", "localField": "companyId", "foreignField": "_id", "as": "company"}},
        {"$unwind": "$company"},
    ]
    result: list[Any] = await aggregate_all(customers.across_companies(services), stages)
    return result[0] if result else None


async def find_by_first_access_hash(services: Services, token_hash: str) -> Customer | None:
    """Return `_id`, `companyId`, `name` and `email` of the client with this first-access token, or None."""
    where, fields = {"firstAccessHash": token_hash}, {"companyId": 1, "email": 1, "name": 1}
    customer: Any = await customers.across_companies(services).find_one(where, fields)
    return customer  # type: ignore[no-any-return]  # the driver's documents are untyped


async def set_first_access_hash(ctx: Context, customer_id: ObjectId, token_hash: str) -> None:
    """Replace a client's first-access token."""
    await customers.set_derived(ctx, {"_id": customer_id}, {"$set": {"firstAccessHash": token_hash}})


async def use_first_access_hash(ctx: Context, customer_id: ObjectId, token_hash: str, email: str) -> bool:
    """Remove a first-access token; returns whether it existed. A client without an e-mail address gets `email`."""
    where = {"_id": customer_id, "firstAccessHash": token_hash}
    if not await customers.set_derived(ctx, where, {"$unset": {"firstAccessHash": ""}}):
        return False

    def add_email(customer: Customer) -> Mapping[str, object]:
        if customer["email"] is not None:
            return {}
        return {"email": email, **search_fields(customer["name"], customer["surname"], email)}

    await customers.rewrite(ctx, {"_id": customer_id}, add_email)
    return True


async def set_signed_in(ctx: Context, customer_id: ObjectId) -> None:
    """Record that a client has signed in: an action of the client, and `firstLoginDate` if it is the first time."""
    at = now()
    first = {"_id": customer_id, "customerRoleData.firstLoginDate": None}
    await customers.set_derived(ctx, first, {"$set": {"customerRoleData.firstLoginDate": at}})
    await customers.set_derived(ctx, {"_id": customer_id}, {"$set": {"lastActivityDate": at}})
