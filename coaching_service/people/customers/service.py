"""What a coach does with clients."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any

from coaching_service.kernel.auth.principal import Company, Principal
from coaching_service.kernel.auth.secrets import token_hash
from coaching_service.kernel.background import jobs
from coaching_service.kernel.errors import Forbidden, not_found
from coaching_service.kernel.pagination import page_document, skip_of
from coaching_service.kernel.storage.context import Context, Services, in_transaction
from coaching_service.kernel.storage.documents import Document, Where, moved_on, now
from coaching_service.kernel.storage.ids import ObjectId
from coaching_service.people.account import service as account
from coaching_service.people.customers import store
from coaching_service.people.customers.search import search_fields
from coaching_service.people.team import service as team

ERASE = "erase_customer"
SCOPE_FIELDS = (store.TRAINER,)
# Figures that are computed when one client is read; features.py fills it. Each gives fields of customerRoleData.
figures: list[Callable[[Context, Document], Awaitable[Document]]] = []
# What else happens for a new client, in the same transaction; features.py fills it. Each is given the stored client,
# the first-access token and whether an invitation is wanted.
on_created: list[Callable[[Context, Document, str, bool], Awaitable[None]]] = []
_ROLE_FIELDS = ("groups", "assignedTo")
_FOUND_BY = ("name", "surname", "email")


async def page(
    ctx: Context,
    *,
    archived: bool,
    page: int,
    size: int,
    contains: str = "",
    groups: list[str] | None = None,
    trainers: list[ObjectId | None] | None = None,
) -> Document:
    """One page of the clients this coach sees, by name. `trainers` may hold None: clients without one."""
    where, whole = matching(ctx, archived, groups, trainers)
    docs, total = await store.page(
        ctx, where, contains=contains.strip(), skip=skip_of(page, size), limit=size, whole=whole
    )
    return page_document([present(doc) for doc in docs], total, page, size)


def matching(
    ctx: Context, archived: bool, groups: list[str] | None, trainers: list[ObjectId | None] | None
) -> tuple[Where, bool]:
    """The condition of a list, and whether it is the whole of the archived or of the active clients."""
    where: Where = {store.ARCHIVED: archived}
    if groups:
        where[store.GROUPS] = {"$in": groups}
    sought: set[ObjectId | None] | None = set(trainers) if trainers else None
    if ctx.who.customers_scope == "assigned":
        sought = {ctx.who.id} if sought is None else sought & {ctx.who.id}
    if sought is not None:
        where[store.TRAINER] = {"$in": list(sought)}
    return where, len(where) == 1


def present(customer: Document) -> Document:
    """A stored client as it is answered."""
    customer["profilePhotoUrl"] = None
    return customer


async def visible(ctx: Context, customer_id: ObjectId, fields: tuple[str, ...] | None = (store.TRAINER,)) -> Document:
    """The client, when this coach (or this client) may see it; `fields` None gives all of them.

    Raises NotFound for another company's or an unknown identifier, Forbidden for a client outside an employee's scope.
    """
    customer = await store.one(ctx, customer_id, fields)
    if customer is None:
        raise not_found("Customer")
    _in_scope(ctx, customer)
    return customer


def _in_scope(ctx: Context, customer: Document) -> None:
    if not ctx.who.is_coach and customer["_id"] != ctx.who.id:
        raise not_found("Customer")
    scoped = ctx.who.customers_scope == "assigned"
    if scoped and customer["customerRoleData"]["assignedTo"] != ctx.who.id:
        raise Forbidden("This client is assigned to another coach")


async def read(ctx: Context, customer_id: ObjectId) -> Document:
    """One client, whole. Raises NotFound, Forbidden."""
    return present(await visible(ctx, customer_id, None))


async def read_with_figures(ctx: Context, customer_id: ObjectId) -> Document:
    """One client, whole, with the derived figures as they are now. Raises NotFound, Forbidden."""
    customer = await read(ctx, customer_id)
    for figure in figures:
        customer["customerRoleData"] |= await figure(ctx, customer)
    return customer


async def keep_figures(ctx: Context, figures_of: dict[ObjectId, Document], until: dict[ObjectId, datetime]) -> None:
    """Keep derived fields of customerRoleData for the lists, and until when they hold, by client."""
    await store.keep_figures(ctx, figures_of, until)


async def with_stale_figures(services: Services, limit: int) -> list[Document]:
    """At most `limit` active clients of any company whose local day has changed since their figures were made."""
    return await store.with_stale_figures(services, limit)


async def create(ctx: Context, details: Document, *, send_invitation: bool = False, sample: bool = False) -> Document:
    """A new client; the answer holds the `firstAccessToken` by which they set their password.

    `details`: `name` and any of surname, email, phone, birthday, timezone, groups, assignedTo. Raises NotFound for an
    `assignedTo` who is no coach of the company.
    """
    token = str(uuid.uuid4())
    if details.get("assignedTo") is not None:
        await team.require(ctx, details["assignedTo"])
    elif ctx.who.customers_scope == "assigned":
        details = details | {"assignedTo": ctx.who.id}
    customer = new_document(details, token, sample=sample)

    async def created(tx: Context) -> Document:
        stored = await store.add(tx, customer)
        for then in on_created:
            await then(tx, stored, token, send_invitation)
        return stored

    stored = await in_transaction(ctx, created)
    return {**present(stored), "firstAccessToken": token}


def new_document(
    details: Document, first_access_token: str, *, sample: bool = False, archived: bool = False
) -> Document:
    """A client as one begins, of `details` as `create` takes them: nothing trained, nobody signed in."""
    return {
        **{name: details.get(name) for name in ("name", "surname", "email", "phone", "birthday", "timezone")},
        "role": "CUSTOMER",
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
            "firstLoginDate": None,
        },
        "firstAccessHash": token_hash(first_access_token),
        "figuresUntil": now(),
        **search_fields(details["name"], details.get("surname"), details.get("email")),
    }


async def add_many(ctx: Context, documents: Sequence[Document]) -> None:
    """Add clients made by `new_document`, all or none, for the operator: no coach they name is looked up."""
    await in_transaction(ctx, lambda tx: store.add_many(tx, documents))


async def change(ctx: Context, customer_id: ObjectId, details: Document) -> Document:
    """Change what is sent of a client; `version` guards it.

    Raises NotFound, Forbidden as `visible`, and Conflict when the client has been changed since `version`.
    """
    details = dict(details)
    version = details.pop("version", None)
    await visible(ctx, customer_id)
    if details.get("assignedTo") is not None:
        await team.require(ctx, details["assignedTo"])

    def mutate(stored: Document) -> Document:
        fields: dict[str, Any] = {
            f"customerRoleData.{name}" if name in _ROLE_FIELDS else name: value for name, value in details.items()
        }
        if any(name in details for name in _FOUND_BY):
            merged = stored | details
            fields |= search_fields(merged["name"], merged["surname"], merged["email"])
        return fields

    changed = await store.rewrite(ctx, customer_id, mutate, version)
    if changed is None:
        raise not_found("Customer")
    return present(changed)


async def set_archived(ctx: Context, customer_id: ObjectId, *, archived: bool, version: int | None = None) -> Document:
    """Archive or restore a client; repeating is harmless. Gives the client.

    Raises Conflict when the client has been changed since `version`.
    """
    await visible(ctx, customer_id)

    async def settled(tx: Context) -> Document:
        if version is not None and (await visible(tx, customer_id, ("version", store.TRAINER)))["version"] != version:
            raise moved_on()
        changed = await store.set_archived(tx, customer_id, archived=archived)
        return present(changed) if changed is not None else await read(tx, customer_id)

    return await in_transaction(ctx, settled)


async def erase(ctx: Context, customer_id: ObjectId) -> None:
    """Remove a client at once for every reader, and queue the removal of all that is theirs."""
    await visible(ctx, customer_id)

    async def removed(tx: Context) -> None:
        if not await store.remove(tx, customer_id):
            raise not_found("Customer")
        await jobs.enqueue(tx, ERASE, {"companyId": ctx.company_id, "customerId": customer_id})

    await in_transaction(ctx, removed)


async def groups(ctx: Context) -> list[Document]:
    """The groups in use among the clients this coach sees, `{name, count}` by name."""
    where: Where = {store.TRAINER: ctx.who.id} if ctx.who.customers_scope == "assigned" else {}
    return await store.group_counts(ctx, where)


def as_principal(
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


async def principal(services: Services, company_id: ObjectId, customer_id: ObjectId) -> Principal | None:
    """A client as a principal, for a sign-in; None when the client is gone or archived, or the company is gone."""
    found = await store.principal_facts(services, company_id, customer_id)
    if found is None or found["customerRoleData"]["isArchived"]:
        return None
    return as_principal(found, account.as_company(found["company"]), customer_id)


async def signed_in(ctx: Context, customer_id: ObjectId) -> None:
    """Remember that a client has signed in."""
    await store.set_signed_in(ctx, customer_id)


async def was_active(ctx: Context, customer_id: ObjectId) -> None:
    """Remember that the client has just done something."""
    await store.set_active(ctx, customer_id)


async def unassign(ctx: Context, coach_id: ObjectId) -> None:
    """A removed coach's clients are assigned to nobody, in the caller's transaction."""
    await store.unassign(ctx, coach_id)


async def renew_first_access(ctx: Context, customer_id: ObjectId) -> str:
    """Another first-access token for a client; the one before ends."""
    token = str(uuid.uuid4())
    await store.set_first_access(ctx, customer_id, token_hash(token))
    return token


async def whose_first_access(services: Services, token: str) -> Document | None:
    """`{_id, companyId, name, email}` of the client whom a first-access token lets in, or None."""
    return await store.by_first_access(services, token_hash(token))


async def use_first_access(ctx: Context, customer_id: ObjectId, token: str, email: str) -> bool:
    """Use a first-access token up in the caller's transaction; whether it was still there."""
    return await store.use_first_access(ctx, customer_id, token_hash(token), email)


async def scheduled_until(ctx: Context, customer_id: ObjectId, day: str | None) -> None:
    """Remember `day` as the last one anything is scheduled on for the client.

    Transactions that call this for one client run one after another. Raises NotFound when the client is gone.
    """
    if not await store.set_last_workout(ctx, customer_id, day):
        raise not_found("Customer")
