"""What a coach does with clients."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from coaching_service.core.auth.secrets import token_hash
from coaching_service.core.database import files
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, Filter, now, version_conflict
from coaching_service.core.database.files import StoredFile
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.errors import Forbidden, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.links import file_url
from coaching_service.core.pagination import Page, page_document, skip_of
from coaching_service.people.customers import erasing, store
from coaching_service.people.customers.events import CustomerCreated
from coaching_service.people.customers.search import search_fields
from coaching_service.people.team import service as team

SCOPE_FIELDS = (store.TRAINER,)
_ROLE_FIELDS = ("groups", "assignedTo")
_FOUND_BY = ("name", "surname", "email")


async def list_customers(
    ctx: Context,
    *,
    archived: bool,
    page: int,
    size: int,
    contains: str = "",
    groups: list[str] | None = None,
    trainers: list[ObjectId | None] | None = None,
) -> Page[Document]:
    """One page of the clients this coach sees, by name. `trainers` may hold None: clients without one."""
    where, whole = build_list_filter(ctx, archived, groups, trainers)
    docs, total = await store.page(
        ctx, where, contains=contains.strip(), skip=skip_of(page, size), limit=size, whole=whole
    )
    return page_document([to_response(ctx, doc) for doc in docs], total, page, size)


def build_list_filter(
    ctx: Context, archived: bool, groups: list[str] | None, trainers: list[ObjectId | None] | None
) -> tuple[Filter, bool]:
    """The condition of a list, and whether it is the whole of the archived or of the active clients."""
    where: Filter = {store.ARCHIVED: archived}
    if groups:
        where[store.GROUPS] = {"$in": groups}
    sought: set[ObjectId | None] | None = set(trainers) if trainers else None
    if ctx.caller.customers_scope == "assigned":
        sought = {ctx.caller.id} if sought is None else sought & {ctx.caller.id}
    if sought is not None:
        where[store.TRAINER] = {"$in": list(sought)}
    return where, len(where) == 1


def to_response(ctx: Context, customer: Document) -> Document:
    """A stored client as it is answered."""
    photo = customer.pop("profilePhoto", None)
    customer["profilePhotoUrl"] = file_url(ctx.services, photo["fileId"]) if photo else None
    return customer


def visible_customer_stage(customer_id: ObjectId) -> Document:
    """The stage of an aggregate that puts beside a document, as `client`, what `visible` looks at of a client of its
    company: a list of one, or empty."""
    return store.beside(customer_id, SCOPE_FIELDS)


async def get_visible(ctx: Context, customer_id: ObjectId, fields: tuple[str, ...] | None = SCOPE_FIELDS) -> Document:
    """The client, when this coach (or this client) may see it; `fields` None gives all of them.

    Raises NotFound for another company's or an unknown identifier, Forbidden for a client outside an employee's scope.
    """
    client = ctx.caller.client
    if client is not None and client["_id"] == customer_id and fields == SCOPE_FIELDS and ctx.session is None:
        customer: Document | None = dict(client)
    else:
        customer = await store.one(ctx, customer_id, fields)
    if customer is None:
        raise NotFound("customer")
    _in_scope(ctx, customer)
    return customer


async def get_visible_reference(ctx: Context, customer_id: ObjectId) -> Document:
    """`{_id, name}` of a client, the name with the surname. Raises as `visible`."""
    found = await get_visible(ctx, customer_id, (*SCOPE_FIELDS, "name", "surname"))
    return {"_id": customer_id, "name": " ".join(filter(None, (found["name"], found["surname"])))}


def _in_scope(ctx: Context, customer: Document) -> None:
    if not ctx.caller.is_coach and customer["_id"] != ctx.caller.id:
        raise NotFound("customer")
    scoped = ctx.caller.customers_scope == "assigned"
    if scoped and customer["customerRoleData"]["assignedTo"] != ctx.caller.id:
        raise Forbidden("This client is assigned to another coach")


async def exists(services: Services, company_id: ObjectId, customer_id: ObjectId) -> bool:
    """Whether a company has this client."""
    return await store.exists(services, company_id, customer_id)


async def set_profile_photo(ctx: Context, customer_id: ObjectId, file: StoredFile | None) -> Document:
    """Give a client another profile photo; without a file nothing changes. Gives the client.

    Raises NotFound, Forbidden.
    """
    if file is None:
        return await read(ctx, customer_id)
    photo = {"fileId": file.id, "thumbnailId": file.thumbnail_id}

    async def changed(tx: Context) -> Document:
        before = await get_visible(tx, customer_id, (store.TRAINER, "profilePhoto"))
        customer = await store.set_profile_photo(tx, customer_id, photo)
        if customer is None:
            raise NotFound("customer")
        await files.discard(tx, [each for each in (before.get("profilePhoto") or {}).values() if each])
        return customer

    return to_response(ctx, await in_transaction(ctx, changed))


async def read(ctx: Context, customer_id: ObjectId) -> Document:
    """One client, whole. Raises NotFound, Forbidden."""
    return to_response(ctx, await get_visible(ctx, customer_id, None))


async def create(ctx: Context, details: Document, *, send_invitation: bool = False, sample: bool = False) -> Document:
    """A new client; the answer holds the `firstAccessToken` by which they set their password.

    `details`: `name` and any of surname, email, phone, birthday, timezone, groups, assignedTo. Raises NotFound for an
    `assignedTo` who is no coach of the company.
    """
    token = str(uuid.uuid4())
    if details.get("assignedTo") is not None:
        await team.require_coach(ctx, details["assignedTo"])
    elif ctx.caller.customers_scope == "assigned":
        details = details | {"assignedTo": ctx.caller.id}
    customer = build_document(details, token, sample=sample)

    async def created(tx: Context) -> Document:
        stored = await store.add(tx, customer)
        await tx.publish(CustomerCreated(stored, token, send_invitation))
        return stored

    stored = await in_transaction(ctx, created)
    return {**to_response(ctx, stored), "firstAccessToken": token}


def build_document(
    details: Document, first_access_token: str, *, sample: bool = False, archived: bool = False
) -> Document:
    """A client as one begins, of `details` as `create` takes them: nothing trained, nobody signed in."""
    return {
        **{name: details.get(name) for name in ("name", "surname", "email", "phone", "birthday", "timezone")},
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
            "firstLoginDate": None,
        },
        "firstAccessHash": token_hash(first_access_token),
        "figuresUntil": now(),
        **search_fields(details["name"], details.get("surname"), details.get("email")),
    }


async def add_many(ctx: Context, documents: Sequence[Document]) -> None:
    """Add clients made by `new_document`, all or none, for the operator.

    The coaches they name are not looked up, and no CustomerCreated is published: no one is invited.
    """
    await in_transaction(ctx, lambda tx: store.add_many(tx, documents))


async def update(ctx: Context, customer_id: ObjectId, details: Document) -> Document:
    """Change what is sent of a client; `version` guards it.

    Raises NotFound, Forbidden as `visible`, and Conflict when the client has been changed since `version`.
    """
    details = dict(details)
    version = details.pop("version", None)
    await get_visible(ctx, customer_id)
    if details.get("assignedTo") is not None:
        await team.require_coach(ctx, details["assignedTo"])

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
        raise NotFound("customer")
    return to_response(ctx, changed)


async def set_archived(ctx: Context, customer_id: ObjectId, *, archived: bool, version: int | None = None) -> Document:
    """Archive or restore a client; repeating is harmless. Gives the client.

    Raises Conflict when the client has been changed since `version`.
    """
    await get_visible(ctx, customer_id)

    async def settled(tx: Context) -> Document:
        if (
            version is not None
            and (await get_visible(tx, customer_id, ("version", store.TRAINER)))["version"] != version
        ):
            raise version_conflict()
        changed = await store.set_archived(tx, customer_id, archived=archived)
        return to_response(ctx, changed) if changed is not None else await read(tx, customer_id)

    return await in_transaction(ctx, settled)


async def erase(ctx: Context, customer_id: ObjectId) -> None:
    """Remove a client at once for every reader, and queue the removal of all that is theirs."""
    await get_visible(ctx, customer_id)

    async def removed(tx: Context) -> None:
        if not await store.remove(tx, customer_id):
            raise NotFound("customer")
        await erasing.follow(tx, [customer_id])

    await in_transaction(ctx, removed)


async def list_groups(ctx: Context) -> list[Document]:
    """The groups in use among the clients this coach sees, `{name, count}` by name."""
    where: Filter = {store.TRAINER: ctx.caller.id} if ctx.caller.customers_scope == "assigned" else {}
    return await store.group_counts(ctx, where)


async def record_activity(ctx: Context, customer_id: ObjectId) -> None:
    """Remember that the client has just done something."""
    await store.set_active(ctx, customer_id)


async def unassign_from_coach(ctx: Context, coach_id: ObjectId) -> None:
    """A removed coach's clients are assigned to nobody, in the caller's transaction."""
    await store.unassign(ctx, coach_id)


async def lock(ctx: Context, customer_id: ObjectId) -> None:
    """Transactions that call this for one client run one after another. Raises NotFound when the client is gone."""
    if not await store.touch(ctx, customer_id):
        raise NotFound("customer")


async def set_last_workout_date(ctx: Context, customer_id: ObjectId, day: str | None) -> None:
    """Remember `day` as the last one anything is scheduled on for the client.

    Transactions that call this for one client run one after another. Raises NotFound when the client is gone.
    """
    if not await store.set_last_workout(ctx, customer_id, day):
        raise NotFound("customer")
