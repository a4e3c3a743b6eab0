"""Creating clients: one, sample data, or the record of another system."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import cast

from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.auth.secrets import token_hash
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.database.transactions import transactional
from coaching_service.core.external_identity import Upserted, stored_identity, upsert
from coaching_service.core.fields import names_of
from coaching_service.people.customers import counters, service, store
from coaching_service.people.customers._search import search_fields
from coaching_service.people.customers.events import CustomerCreation, CustomersCreated
from coaching_service.people.customers.models import (
    ContactDetails,
    CreatedCustomer,
    Customer,
    CustomerChange,
    CustomerDetails,
    CustomerProfile,
    NewCustomer,
    NewCustomerDocument,
)
from coaching_service.people.team import service as team


async def create_customer(
    ctx: Context, details: CustomerDetails, *, send_invitation: bool = False, sample: bool = False
) -> CreatedCustomer:
    """Create a client; `details` needs at least a `name`.

    An employee with the scope `assigned` becomes the trainer unless `assignedTo` names another. Raises NotFound if
    `assignedTo` is not a coach of the company.
    """
    token = str(uuid.uuid4())
    if (trainer := details.get("assignedTo")) is not None:
        await team.require_coach(ctx, trainer)
    document = build_document(
        with_trainer(ctx, details), token, sample=sample, archived=details.get("isArchived", False)
    )
    stored = await _insert(ctx, document, token, send_invitation=send_invitation)
    return cast("CreatedCustomer", {**service.to_response(ctx, stored), "firstAccessToken": token})


def with_trainer(ctx: Context, details: CustomerDetails) -> CustomerDetails:
    """Return the fields of a new client; an employee with the scope `assigned` is the trainer unless they name one."""
    if details.get("assignedTo") is None and ctx.caller.customers_scope == "assigned":
        return {**details, "assignedTo": ctx.caller.id}
    return details


@transactional
async def _insert(
    ctx: Context, customer: NewCustomerDocument, first_access_token: str, *, send_invitation: bool
) -> Customer:
    [stored] = await store.create_many(ctx, [customer])
    await ctx.publish(CustomersCreated([CustomerCreation(stored, first_access_token, send_invitation)]))
    return stored


def build_document(
    details: CustomerDetails, first_access_token: str, *, sample: bool = False, archived: bool = False
) -> NewCustomerDocument:
    """Return a new client's document, without what the database package adds."""
    contact = cast("ContactDetails", {name: details.get(name) for name in names_of(ContactDetails)})
    document = {
        **contact,
        "role": "CUSTOMER",
        "profilePhoto": None,
        "lastActivityDate": None,
        "customerRoleData": {
            "isArchived": archived,
            "groups": details.get("groups", []),
            "assignedTo": details.get("assignedTo"),
            "customerType": "SAMPLE" if sample else "REAL",
            "complianceRate7d": None,
            "complianceRate30d": None,
            "complianceRate90d": None,
            "complianceDate": None,
            "lastWorkoutDate": None,
            "lastTrainedDate": None,
            "firstLoginDate": None,
        },
        "firstAccessHash": token_hash(first_access_token),
        "figuresChangedAt": now(),
        **search_fields(details["name"], details.get("surname"), details.get("email")),
    }
    return cast("NewCustomerDocument", {**document, **stored_identity(details)})


@transactional
async def add_many(ctx: Context, documents: Sequence[NewCustomerDocument]) -> None:
    """Store clients made by `build_document`, all or none, for sample data.

    Their trainers are not checked and CustomersCreated is not published: no invitation is sent.
    """
    await store.customers.insert_many(ctx, documents, recorded=False)
    await counters.count(ctx, documents, 1)


async def upsert_external(
    ctx: Context, external_id: str, change: CustomerChange, complete: Callable[[], NewCustomer]
) -> Upserted:
    """Change the client with this identifier in another system, or create one of what `complete` returns.

    What is stored already is not a change. Raises what `update`, `create` and core's `upsert` raise.
    """

    async def create_new(tx: Context) -> CustomerProfile:
        new: NewCustomer = {**complete(), "externalId": external_id}
        created = await create_customer(tx, new, send_invitation=new["sendInvitation"])
        return cast("CustomerProfile", {name: value for name, value in created.items() if name != "firstAccessToken"})

    return await upsert(
        ctx,
        lambda tx: store.find_id_by_external_id(tx, external_id),
        lambda tx, customer_id: service.update(tx, customer_id, change, only_differences=True),
        create_new,
        (CUSTOMERS.CREATE, CUSTOMERS.EDIT),
    )
