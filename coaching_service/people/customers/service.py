"""Reading and changing clients, and who may access them."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from typing import Any, TypeVar, cast

from coaching_service.core import list_selection
from coaching_service.core.auth import Company, Principal, token_hash
from coaching_service.core.database import files
from coaching_service.core.database.context import Context, Services, gather_reads, transactional, version_conflict
from coaching_service.core.database.documents import D, Document, Documents, Filter, PipelineStage, now
from coaching_service.core.database.files import StoredFile
from coaching_service.core.database.recording import Interface, interface_of
from coaching_service.core.database.worker_thread import aggregate_all
from coaching_service.core.errors import ClientDeclined, Forbidden, NotFound, require_found
from coaching_service.core.external_identity import find_differences, present_identity, stored_fields
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import ALL_ENTRIES, ListPart, Page, PartOfList
from coaching_service.core.text import apostrophe_spellings, normalize
from coaching_service.people import account, notification_settings, team
from coaching_service.people.customers import counters, store
from coaching_service.people.customers import models as customer_models
from coaching_service.people.customers.store import customers, search_fields
from coaching_service.people.file_links import file_url
from coaching_service.people.notification_settings import NotificationSettings

SCOPE_FIELDS = (store.TRAINER, store.CONSENT)
ARCHIVED = store.ARCHIVED
_ROLE_FIELDS = ("groups", "assignedTo", "isArchived")
_NOT_SHOWN = ("profilePhoto", store.CONSENT, *store.PRIVATE_ORDER)
_SEARCHED_FIELDS = {"name", "surname", "email"}
_ADDED = "addedClient"
_SWITCHES: Mapping[Interface, store.Switch] = {"assistant": "assistants", "application": "applications"}


# --- Reading ---------------------------------------------------------------------------------------------------------


find_by_emails = store.find_by_emails
list_identities = store.find_identities
list_versions = store.find_versions
iterate_all = store.iterate_all
list_ids_after = customers.list_ids_after
exists = store.exists
find_companies = store.find_companies
has_any = store.has_any


async def get(ctx: Context, customer_id: ObjectId) -> customer_models.CustomerProfile:
    """Return a client with all fields. Raises what get_visible raises."""
    return to_response(ctx, await get_visible(ctx, customer_id, None))


async def get_visible(
    ctx: Context, customer_id: ObjectId, fields: tuple[str, ...] | None = SCOPE_FIELDS
) -> customer_models.Customer:
    """Return a client that the caller may access: with `fields`, only those and `_id`; None: all fields.

    Raises NotFound if the company has no such client, or the caller is another client; Forbidden if the client is
    outside the employee's scope, or has declined what the caller is.
    """
    fields = fields if fields is None or store.CONSENT in fields else (*fields, store.CONSENT)
    customer = await customers.find_one(ctx, {"_id": customer_id}, fields)
    if customer is None:
        raise NotFound("customer")
    _require_in_scope(ctx, customer)
    return customer


async def get_id_by_external_id(ctx: Context, external_id: str) -> ObjectId:
    """Return the identifier of the client with this identifier in another system. Raises NotFound."""
    return require_found(await store.find_id_by_external_id(ctx, external_id), "customer")


def add_visible(ctx: Context, customer_id: ObjectId) -> PipelineStage:
    """Return the stage that adds a client, if there is one, to the documents of a pipeline, for `take_visible`."""
    where, fields = customers.read_filter(ctx, {"_id": customer_id}), dict.fromkeys(SCOPE_FIELDS, 1)
    client = [{"$match": where}, {"$project": fields}, {"$replaceWith": {_ADDED: "$$ROOT"}}]
    return {"$unionWith": {"coll": customers.name, "pipeline": client}}


def take_visible(ctx: Context, documents: list[Any]) -> list[Any]:
    """Return documents without the client that `add_visible` has added. Raises what get_visible raises."""
    added = [document[_ADDED] for document in documents if _ADDED in document]
    if not added:
        raise NotFound("customer")
    _require_in_scope(ctx, added[0])
    return [document for document in documents if _ADDED not in document]


def _require_in_scope(ctx: Context, customer: customer_models.Customer) -> None:
    ctx.clients_seen.add(customer["_id"])
    if not ctx.caller.is_coach and customer["_id"] != ctx.caller.id:
        raise NotFound("customer")
    if ctx.caller.only_customer_id not in (None, customer["_id"]):
        raise NotFound("customer")
    if has_declined(ctx, customer):
        raise ClientDeclined
    if not is_in_scope(ctx, customer):
        raise Forbidden("This client is assigned to another coach", code="CUSTOMER_OUT_OF_SCOPE")


def is_in_scope(ctx: Context, customer: customer_models.Customer) -> bool:
    """Return whether a client, read with SCOPE_FIELDS, is in the scope of the caller, a coach."""
    if ctx.caller.only_customer_id not in (None, customer["_id"]) or has_declined(ctx, customer):
        return False
    return ctx.caller.customers_scope == "all" or customer["customerRoleData"]["assignedTo"] == ctx.caller.id


def find_switch(ctx: Context) -> store.Switch | None:
    """Return which switch of clients concerns the caller, if any has been turned off in the company; None: none."""
    switch = _SWITCHES.get(interface_of(ctx))
    return switch if ctx.caller.company.has_declined else None


def has_declined(ctx: Context, customer: customer_models.Customer) -> bool:
    """Return whether a client, read with SCOPE_FIELDS, has declined assistants or applications, and the caller is one.

    Keys and sessions are neither.
    """
    switch = find_switch(ctx)
    return switch is not None and not complete_consent(customer)[switch]


def complete_consent(customer: customer_models.Customer) -> customer_models.Consent:
    """Return both switches of a client, who may have set none."""
    return cast("customer_models.Consent", {"assistants": True, "applications": True, **customer.get("consent", {})})


async def require_file_reader(
    services: Services, company_id: ObjectId, customer_id: ObjectId, via: Interface | None
) -> None:
    """Raise NotFound if the client of a file is deleted, Forbidden if the client has declined whom its link is for."""
    where = {"companyId": company_id, "_id": customer_id}
    found = await customers.across_companies(services).find_one(where, {store.CONSENT: 1})
    customer = require_found(cast("customer_models.Customer | None", found), "file")
    if via is not None and (switch := _SWITCHES.get(via)) and not complete_consent(customer)[switch]:
        raise ClientDeclined


async def get_consent(ctx: Context, customer_id: ObjectId) -> customer_models.Consent:
    """Return by what else than people a client's data may be read. Raises what get_visible raises."""
    return complete_consent(await get_visible(ctx, customer_id))


def limit_to_scope(ctx: Context) -> Filter:
    """Return the filter of the clients in the scope of the caller, a coach; empty: all."""
    ctx.clients_seen.in_list = True
    where: Filter = {store.TRAINER: ctx.caller.id} if ctx.caller.customers_scope == "assigned" else {}
    if (switch := find_switch(ctx)) is not None:
        where |= store.not_declined(switch)
    # An expression, because lists and their cursors have conditions of their own on _id.
    only = ctx.caller.only_customer_id
    return where | ({"$expr": {"$eq": ["$_id", only]}} if only is not None else {})


async def get_visible_reference(ctx: Context, customer_id: ObjectId) -> customer_models.NamedCustomer:
    """Return a client's identifier and full name. Raises what get_visible raises."""
    customer = await get_visible(ctx, customer_id, (*SCOPE_FIELDS, "name", "surname"))
    return {"_id": customer_id, "name": full_name(customer)}


async def get_local_date(ctx: Context, customer_id: ObjectId) -> date:
    """Return today's date where a client is. Raises what get_visible raises."""
    customer = await get_visible(ctx, customer_id, (*SCOPE_FIELDS, "timezone"))
    return ctx.caller.today(customer["timezone"])


async def resolve_today(ctx: Context, customer_id: ObjectId) -> str:
    """Return the date that a call without one means: today's where the client is, or when it was proposed."""

    async def find() -> str:
        return str(await get_local_date(ctx, customer_id))

    return await ctx.resolve(f"today of {customer_id}", find)


async def is_archived(ctx: Context, customer_id: ObjectId) -> bool:
    """Return whether a client is archived. Raises what get_visible raises."""
    customer = await get_visible(ctx, customer_id, (*SCOPE_FIELDS, store.ARCHIVED))
    return customer["customerRoleData"]["isArchived"]


async def find_references(ctx: Context, ids: Sequence[ObjectId]) -> dict[ObjectId, customer_models.NamedCustomer]:
    """Return identifier and full name of the company's clients among `ids`, whatever the caller's scope."""
    found = await customers.find(ctx, {"_id": {"$in": list(ids)}}, fields=("name", "surname"), hint=store.BY_ID)
    return {customer["_id"]: {"_id": customer["_id"], "name": full_name(customer)} for customer in found}


async def find_named(ctx: Context, ids: Collection[ObjectId]) -> dict[ObjectId, customer_models.FoundCustomer]:
    """Return full name, time zone and whether they are archived of the company's clients among `ids`."""
    fields = ("name", "surname", "timezone", store.ARCHIVED)
    found = await customers.find(ctx, {"_id": {"$in": list(ids)}}, fields=fields, hint=store.BY_ID)
    return {
        each["_id"]: {
            "_id": each["_id"],
            "name": full_name(each),
            "timezone": each["timezone"],
            "isArchived": each["customerRoleData"]["isArchived"],
        }
        for each in found
    }


async def find_timezones(ctx: Context, ids: Sequence[ObjectId]) -> dict[ObjectId, str | None]:
    """Return the time zone of each of the company's clients among `ids`; None: the company's."""
    found = await customers.find(ctx, {"_id": {"$in": list(ids)}}, fields=("timezone",), hint=store.BY_ID)
    return {customer["_id"]: customer["timezone"] for customer in found}


async def list_ids_in_scope(ctx: Context) -> list[ObjectId] | None:
    """Return the clients that an employee with the scope `assigned` sees; None: the coach sees all.

    Of an address that is narrowed to one client, only this one. Clients who have declined what the caller is are left
    out.
    """
    ctx.clients_seen.in_list = True
    only = ctx.caller.only_customer_id
    allowed: Filter = {} if (switch := find_switch(ctx)) is None else store.not_declined(switch)
    if ctx.caller.customers_scope == "all" and not allowed:
        return None if only is None else [only]
    where: Filter = {store.ARCHIVED: {"$in": [False, True]}, **allowed}
    if ctx.caller.customers_scope == "assigned":
        where[store.TRAINER] = ctx.caller.id
    assigned = await customers.find(ctx, where, fields=("_id",), hint=store.BY_TRAINER)
    return [each["_id"] for each in assigned if only in (None, each["_id"])]


async def select_ids_in_scope(ctx: Context, customer_id: ObjectId | None) -> list[ObjectId] | None:
    """Return the clients that a company-wide list shows: in the coach's scope, and only `customer_id` if it is given.

    None: the whole company.
    """
    in_scope = await list_ids_in_scope(ctx)
    if customer_id is None:
        return in_scope
    if in_scope is not None and customer_id not in in_scope:
        return []
    ctx.clients_seen.add(customer_id)
    return [customer_id]


def get_notifications(
    customer: customer_models.Customer | customer_models.CustomerNotifications,
) -> NotificationSettings:
    """Return which notifications a client wants, how and when."""
    return notification_settings.complete(customer.get("notifications"))


async def list_notifications(ctx: Context, ids: Sequence[ObjectId]) -> dict[ObjectId, NotificationSettings]:
    """Return which notifications clients want, by client. Access is not checked."""
    found = await customers.find(ctx, {"_id": {"$in": list(ids)}}, fields=("notifications",), hint=store.BY_ID)
    return {client["_id"]: get_notifications(client) for client in found}


def full_name(
    customer: customer_models.Customer
    | customer_models.CustomerProfile
    | customer_models.CustomerNames
    | customer_models.CustomerIdentity
    | customer_models.CustomerDetails,
) -> str:
    """Return the name and, if there is one, the surname of a client."""
    return " ".join(filter(None, (customer["name"], customer.get("surname"))))


def active_customer_stage(ctx: Context) -> PipelineStage:
    """Return the pipeline stage that adds the client of a document, by `customerId`, as `client`: a list of one.

    It is empty for archived clients, and has what full_name and local dates need.
    """
    stages = [
        {"$match": customers.read_filter(ctx, {store.ARCHIVED: False})},
        {"$project": customers.projection(("name", "surname", "timezone"))},
    ]
    lookup = {"from": customers.name, "localField": "customerId", "foreignField": "_id", "as": "client"}
    return {"$lookup": {**lookup, "pipeline": stages}}


def to_response(ctx: Context, customer: customer_models.Customer) -> customer_models.CustomerProfile:
    """Return a stored client as interfaces return one."""
    response: dict[str, object] = {**customer}  # of neither type until the fields of the other are removed and added
    for name in _NOT_SHOWN:
        response.pop(name, None)
    response.update(present_identity(customer))
    response["profilePhotoUrl"] = profile_photo_url(ctx, customer)
    return cast("customer_models.CustomerProfile", response)


def profile_photo_url(ctx: Context, customer: customer_models.Customer) -> str | None:
    """Return the signed link to the profile photo of a stored client, or None without one."""
    return file_url(ctx, photo["fileId"]) if (photo := customer.get("profilePhoto")) else None


# --- Changing --------------------------------------------------------------------------------------------------------


async def update(
    ctx: Context, customer_id: ObjectId, change: customer_models.CustomerChange, *, only_differences: bool = False
) -> customer_models.CustomerProfile:
    """Change a client and return it. With `only_differences`, fields that have these values already are not changes.

    Raises NotFound if `assignedTo` is not a coach of the company, Conflict if the client has changed since
    `change["version"]`, and what get_visible raises.
    """
    await get_visible(ctx, customer_id)
    if (trainer := change.get("assignedTo")) is not None:
        await team.require_coach(ctx, trainer)
    customer = await _rewrite(
        ctx, customer_id, lambda stored: _changed_fields(stored, change, only_differences=only_differences), change
    )
    return to_response(ctx, customer)


async def update_known(
    ctx: Context, customer: customer_models.Customer, change: customer_models.CustomerChange
) -> customer_models.Customer:
    """Change a client who was read in this transaction, and whose access and new trainer have been checked.

    Fields that have these values already are not changes. Returns the client, the one that was read if nothing changed.
    """
    if not _changed_fields(customer, change, only_differences=True):
        return customer
    return await _rewrite(
        ctx, customer["_id"], lambda stored: _changed_fields(stored, change, only_differences=True), change
    )


def _changed_fields(
    stored: customer_models.Customer, change: customer_models.CustomerChange, *, only_differences: bool
) -> Mapping[str, object]:
    """Return the fields that a change sets in a stored client, by path."""
    details = stored_fields({name: value for name, value in change.items() if name != "version"})
    fields = {f"customerRoleData.{name}" if name in _ROLE_FIELDS else name: details[name] for name in details}
    if only_differences:
        fields = find_differences(stored, fields)
    if _SEARCHED_FIELDS & fields.keys():
        merged = cast("customer_models.Customer", {**stored, **details})
        fields |= search_fields(merged["name"], merged["surname"], merged["email"])
    return fields


@transactional
async def _rewrite(
    ctx: Context,
    customer_id: ObjectId,
    mutate: Callable[[customer_models.Customer], Mapping[str, object]],
    change: customer_models.CustomerChange | customer_models.OwnDetails,
) -> customer_models.Customer:
    """Set the fields that `mutate` returns, and return the client.

    Its derived figures follow its time zone, what is due to notify follows that and its settings, programs its groups.
    """
    before, customer = await store.rewrite(ctx, customer_id, mutate, change.get("version"))
    role = customer["customerRoleData"]
    if role["isArchived"] is not before["isArchived"]:
        await store.update_after_archiving(ctx, [customer_id], archived=role["isArchived"])
    if "timezone" in change or "notifications" in change:
        await store.mark_figures_due(ctx, [customer_id])
    if "groups" in change:
        moved = customer_models.GroupsChange.between(customer_id, before["groups"], role["groups"])
        await ctx.publish(customer_models.GroupsChanged([moved]))
    return customer


@transactional
async def update_own(ctx: Context, change: customer_models.OwnDetails) -> None:
    """Change what clients change of their own record: the caller is the client.

    Raises NotFound if the client has been deleted, Conflict if it has changed since `change["version"]`.
    """
    fields = {name: value for name, value in change.items() if name not in ("notifications", "consent", "version")}
    if not all(change.get("consent", {}).values()):
        await account.record_declined(ctx)

    def mutate(stored: customer_models.Customer) -> Mapping[str, object]:
        changed = dict(fields)
        if settings := change.get("notifications"):
            changed["notifications"] = notification_settings.merge(get_notifications(stored), settings)
        if switches := change.get("consent"):
            changed["consent"] = {**complete_consent(stored), **switches}
        return changed

    await _rewrite(ctx, ctx.caller.id, mutate, change)


@transactional
async def request_erasure(ctx: Context) -> datetime:
    """Record that the caller, a client, asks for the erasure of their data; returns the time of the first request.

    Raises NotFound if the client has been deleted.
    """
    at = now()
    await store.rewrite(
        ctx, ctx.caller.id, lambda stored: {} if "erasureRequestedAt" in stored else {"erasureRequestedAt": at}, None
    )
    await store.mark_figures_due(ctx, [ctx.caller.id])
    return (await get_visible(ctx, ctx.caller.id, ("erasureRequestedAt",)))["erasureRequestedAt"]


@transactional
async def set_archived(
    ctx: Context, customer_id: ObjectId, *, archived: bool, version: int | None = None
) -> customer_models.CustomerProfile:
    """Archive or restore a client and return it; repeating changes nothing.

    Raises Conflict if the client has changed since `version`, and what get_visible raises.
    """
    current = await get_visible(ctx, customer_id, ("version", store.TRAINER))
    if version is not None and current["version"] != version:
        raise version_conflict()
    where = {"_id": customer_id, store.ARCHIVED: not archived}
    if (customer := await customers.update(ctx, where, {"$set": {store.ARCHIVED: archived}})) is None:
        return await get(ctx, customer_id)
    role = customer["customerRoleData"]
    await counters.count_changed(ctx, [{**role, "isArchived": not archived}], [role])
    await store.update_after_archiving(ctx, [customer_id], archived=archived)
    return to_response(ctx, customer)


@transactional
async def erase(ctx: Context, customer_id: ObjectId) -> None:
    """Delete a client and queue the erasure of the rest of the client's data. Raises what get_visible raises."""
    await get_visible(ctx, customer_id)
    if (deleted := await customers.delete(ctx, {"_id": customer_id})) is None:
        raise NotFound("customer")
    await counters.count(ctx, [deleted], -1)
    await ctx.publish(customer_models.CustomersDeleted([customer_id]))


async def lock_and_mark_figures(ctx: Context, customer_id: ObjectId) -> None:
    """Serialise transactions that call this for the same client. Raises NotFound if there is no such client."""
    if not await store.lock_and_mark_figures(ctx, customer_id):
        raise NotFound("customer")


async def lock_all_visible(ctx: Context, ids: Sequence[ObjectId]) -> None:
    """Lock several clients that the transaction has not locked yet, as `lock`. Raises what get_visible raises."""
    locked = await store.lock_all(ctx, ids)
    if len(locked) < len(ids):
        raise NotFound("customer")
    for customer in locked:
        _require_in_scope(ctx, customer)


async def set_loads_in(ctx: Context, customer_id: ObjectId, load_unit: str) -> None:
    """Store that the loads of a client are in a unit now, in the transaction that has locked the client."""
    await customers.set_derived(ctx, {"_id": customer_id}, {"$set": {"loadsIn": load_unit}})


async def find_own_load_unit(ctx: Context, customer_id: ObjectId) -> str | None:
    """Return the unit of loads that a client has chosen; None for the company's, and for an unknown client."""
    customer = await customers.find_one(ctx, {"_id": customer_id}, ("loadUnit",))
    return customer.get("loadUnit") if customer else None


async def authorize_and_lock(ctx: Context, customer_id: ObjectId) -> None:
    """Lock a client that the caller may access, as `lock` does, in one command. Raises what get_visible raises."""
    if not ctx.caller.is_coach and customer_id != ctx.caller.id:
        raise NotFound("customer")
    if ctx.caller.only_customer_id not in (None, customer_id):
        raise NotFound("customer")
    ctx.clients_seen.add(customer_id)
    trainer = ctx.caller.id if ctx.caller.customers_scope == "assigned" else None
    if find_switch(ctx) is not None:
        await get_visible(ctx, customer_id)
    if await store.lock_and_mark_figures(ctx, customer_id, trainer=trainer):
        return
    if trainer is not None:
        await get_visible(ctx, customer_id)
    raise NotFound("customer")


# --- Profile photos of clients: their links, and replacing one --------------------------------------------------------


async def find_portraits(ctx: Context, ids: Sequence[ObjectId]) -> dict[ObjectId, str | None]:
    """Return the signed links to the thumbnails of the profile photos of clients that have one, by client.

    Access is not checked.
    """
    where = {"_id": {"$in": list(ids)}, "profilePhoto": {"$ne": None}}
    found = await customers.find(ctx, where, fields=("profilePhoto",), hint=store.BY_ID)
    photos = {client["_id"]: client["profilePhoto"] for client in found}
    return {client: file_url(ctx, photo["thumbnailId"]) for client, photo in photos.items() if photo}


@transactional
async def set_profile_photo(
    ctx: Context, customer_id: ObjectId, file: StoredFile | None, version: int | None = None
) -> customer_models.CustomerProfile:
    """Replace a client's profile photo and return the client; without a file nothing changes.

    Raises Conflict if the client has changed since `version`, and what get_visible raises.
    """
    previous = await get_visible(ctx, customer_id, ("version", store.TRAINER, "profilePhoto"))
    if version is not None and previous["version"] != version:
        raise version_conflict()
    if file is None:
        return await get(ctx, customer_id)
    photo: customer_models.ProfilePhoto = {"fileId": file.id, "thumbnailId": file.thumbnail_id}
    customer = await customers.update(ctx, {"_id": customer_id}, {"$set": {"profilePhoto": photo}})
    if customer is None:
        raise NotFound("customer")
    if replaced := previous.get("profilePhoto"):
        await files.discard(ctx, [replaced["fileId"], replaced["thumbnailId"]])
    return to_response(ctx, customer)


# --- Clients who sign in: as principals of requests, and by the token of their first access ---------------------------


def to_principal(
    customer: customer_models.Customer,
    company: Company,
    credential_id: ObjectId,
    impersonated_by: ObjectId | None = None,
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


async def load_principal(
    services: Services, company_id: ObjectId, customer_id: ObjectId, *, is_author: bool = False
) -> Principal | None:
    """Return a client as a principal; None if the client is deleted or archived, or the company is deleted.

    `is_author`: of background work, even if the client is archived and the company suspended. Raises CompanySuspended.
    """
    stages: list[PipelineStage] = [
        {"$match": {"companyId": company_id, "_id": customer_id}},
        {"$project": {"name": 1, "email": 1, "timezone": 1, "companyId": 1, ARCHIVED: 1}},
        {"$lookup": {"from": "companies", "localField": "companyId", "foreignField": "_id", "as": "company"}},
        {"$unwind": "$company"},
    ]
    found: list[Any] = await aggregate_all(customers.across_companies(services), stages)
    if not found or (found[0]["customerRoleData"]["isArchived"] and not is_author):
        return None
    return to_principal(found[0], account.to_company(found[0]["company"], even_suspended=is_author), customer_id)


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


async def find_by_first_access_token(services: Services, token: str) -> customer_models.Customer | None:
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

    def add_email(customer: customer_models.Customer) -> Mapping[str, object]:
        if customer["email"] is not None:
            return {}
        return {"email": email, **search_fields(customer["name"], customer["surname"], email)}

    await customers.rewrite(ctx, {"_id": customer_id}, add_email)
    return True


# --- Lists of clients: filtered, by page or cursor; and the groups of clients -----------------------------------------


async def list_customers(
    ctx: Context,
    *,
    archived: bool,
    page: int,
    size: int,
    contains: str = "",
    words: str = "",
    groups: list[str] | None = None,
    trainers: list[ObjectId | None] | None = None,
    email: str | None = None,
    external_id: str | None = None,
    selection: list_selection.ListSelection = list_selection.ALL_ENTRIES,
    after: str | None = None,
) -> list_selection.Page[customer_models.CustomerProfile]:
    """Return one page of the clients in the coach's scope, by name, or those after a cursor.

    `contains` is part of a name, surname or e-mail address; so is each of `words`, in any order. Clients in any of
    `groups`, of any of `trainers` (None among them: clients without a trainer) match. `email` is a whole address,
    without regard to case; `external_id` is the identifier in another system.
    """
    where, unfiltered = build_list_filter(ctx, archived, groups, trainers)
    where |= selection.filter()
    if external_id is not None:
        where["externalId"] = external_id
    contains, words = contains.strip(), words.strip()
    filters = {
        "archived": archived,
        "contains": contains,
        "groups": sorted(groups or []),
        "trainers": sorted(map(str, trainers or [])),
        "email": email,
        "externalId": external_id,
        **selection.for_cursor(),
        **({"words": words} if words else {}),
    }
    order = store.ORDERS[selection.sort]
    list_part = list_selection.ListPart(
        ctx, "customers", filters, order, page=page, size=size, after=after, private=store.PRIVATE_ORDER
    )
    if email is not None:
        ids = await store.find_ids_by_email(ctx, email.strip())
        where["_id"] = {"$in": ids if selection.ids is None else [each for each in ids if each in selection.ids]}
    if where.keys() & {"_id", "externalId"}:
        stored, total = await store.find_selected_page(ctx, where, list_part, contains=contains)
    else:
        stored, total = await store.find_page(
            ctx, where, list_part, contains=contains, words=words, unfiltered=unfiltered and selection.is_all
        )
    return list_part.present(stored, total, partial(to_response, ctx))


def build_list_filter(
    ctx: Context, archived: bool, groups: list[str] | None, trainers: list[ObjectId | None] | None
) -> tuple[Filter, bool]:
    """Return the filter of a list, and whether it selects all archived or all active clients of the company."""
    where: Filter = {store.ARCHIVED: archived} | limit_to_scope(ctx)
    if groups:
        where[store.GROUPS] = {"$in": [each for group in groups for each in apostrophe_spellings(group)]}
    allowed: set[ObjectId | None] | None = set(trainers) if trainers else None
    if ctx.caller.customers_scope == "assigned":
        allowed = {ctx.caller.id} if allowed is None else allowed & {ctx.caller.id}
    if allowed is not None:
        where[store.TRAINER] = {"$in": list(allowed)}
    return where, len(where) == 1


async def list_groups(ctx: Context) -> list[customer_models.CustomerGroup]:
    """Return the groups of the clients in the coach's scope with the number of clients in each, by name."""
    return await store.count_groups(ctx, limit_to_scope(ctx))


# --- Full names of clients, as they are compared and as they tell clients apart ---------------------------------------


def full_name_key(
    client: customer_models.CustomerDetails | customer_models.Customer | customer_models.CustomerIdentity,
) -> str:
    """Return what is the same for clients with the same full name."""
    return normalize(full_name(client))


def distinct_names(clients: Sequence[customer_models.CustomerIdentity]) -> dict[ObjectId, str]:
    """Return the full names; of clients with the same name, with the address or identifier that tells them apart."""
    counts = Counter(full_name_key(each) for each in clients)
    names: dict[ObjectId, str] = {}
    for each in clients:
        distinction = each["email"] or each.get("externalId") or each["_id"]
        is_unique = counts[full_name_key(each)] == 1
        names[each["_id"]] = full_name(each) if is_unique else f"{full_name(each)} ({distinction})"
    return names


# --- Lists of what is stored of one client, in pages or by cursor -----------------------------------------------------


T = TypeVar("T")


async def list_records(
    ctx: Context,
    customer_id: ObjectId,
    records: Documents[D],
    list_name: str,
    order: Sequence[str],
    present: Callable[[D], T],
    part: PartOfList,
) -> Page[T]:
    """Return part of the records of a client in a collection, each as `present` returns it.

    Cursors are bound to `list_name`. Raises NotFound if the company has no such client, Forbidden if the client is
    outside the caller's scope.
    """
    selection = part.get("selection", ALL_ENTRIES)
    filters = {"customerId": customer_id, **selection.for_cursor()}
    list_part = ListPart(ctx, list_name, filters, order, page=part["page"], size=part["size"], after=part.get("after"))
    _, (stored, total) = await gather_reads(
        ctx,
        get_visible(ctx, customer_id),
        list_part.read(ctx, records, {"customerId": customer_id, **selection.filter()}),
    )
    return list_part.present(stored, total, present)


# --- Dates of clients that other features report: of their last activity, and of the last workout ---------------------


async def record_activity(ctx: Context, customer_id: ObjectId) -> None:
    """Set `lastActivityDate` if the caller is the client; actions of a coach, even impersonating, do not change it.

    In both cases it serialises transactions as `lock` does. Raises NotFound if there is no such client.
    """
    if _is_action_of_client(ctx, customer_id):
        await customers.set_derived(ctx, {"_id": customer_id}, {"$set": {"lastActivityDate": now()}})
    else:
        await lock_and_mark_figures(ctx, customer_id)


async def lock_active(ctx: Context, customer_id: ObjectId) -> None:
    """Lock a client that the caller may access, as `lock` does, and set `lastActivityDate` as `record_activity` does.

    Raises what customers.get_visible raises.
    """
    if not _is_action_of_client(ctx, customer_id):
        await authorize_and_lock(ctx, customer_id)
    else:
        await _write(ctx, customer_id, {"$set": {"lastActivityDate": now()}})


async def set_last_workout_date(ctx: Context, customer_id: ObjectId, day: str | None) -> None:
    """Set the last date on which anything is scheduled for a client, and lock the client as `lock` does.

    Raises NotFound if there is no such client.
    """
    locked = store.locked_clients(ctx).get(customer_id)
    if locked is None or locked["customerRoleData"]["lastWorkoutDate"] != day:
        await _write(ctx, customer_id, {"$set": {store.LAST_WORKOUT: day}})


async def extend_last_workout_date(ctx: Context, customer_id: ObjectId, day: str) -> None:
    """Set the last date on which anything is scheduled for a client to `day`, unless it is later.

    Locks the client as `lock` does. Raises NotFound if there is no such client.
    """
    locked = store.locked_clients(ctx).get(customer_id)
    if locked is None or (locked["customerRoleData"]["lastWorkoutDate"] or "") < day:
        await _write(ctx, customer_id, {"$max": {store.LAST_WORKOUT: day}})


async def _write(ctx: Context, customer_id: ObjectId, change: Document) -> None:
    if not await store.write_and_lock(ctx, {"_id": customer_id}, change):
        raise NotFound("customer")


def _is_action_of_client(ctx: Context, customer_id: ObjectId) -> bool:
    return ctx.caller.id == customer_id and ctx.caller.impersonated_by is None
