"""Changes to many clients at once: a few statements for all of them, each call one transaction; and choosing them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from marshmallow import ValidationError, validates_schema
from rapidfuzz import fuzz, process

from coaching_service.core import validation
from coaching_service.core.auth import CUSTOMERS, require_permission
from coaching_service.core.database.context import Context, transactional
from coaching_service.core.database.documents import Document, Filter, references_to
from coaching_service.core.errors import ClientDeclined, FieldError, Forbidden, InvalidFields, NotFound, invalid_field
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import Arguments, optional, typed
from coaching_service.core.text import normalize, straighten
from coaching_service.people.customers import counters, service, store
from coaching_service.people.customers import models as customer_models

# --- The names nearest to one that no client or group has: what to suggest when a search finds nothing ----------------


# Names that are compared of active, and of archived clients: the first in the order of the list.
_COMPARED, _SUGGESTED, _MIN_SCORE = 20_000, 5, 65


class NearClient(NamedTuple):
    """A client with a similar name."""

    id: ObjectId
    name: str
    is_archived: bool


class GroupNames(NamedTuple):
    """The groups that are meant, as the company writes them; the names that no group has; and what is near to these."""

    known: list[str]
    unknown: list[str]
    nearest: list[str]


async def find_near_clients(ctx: Context, text: str) -> list[NearClient]:
    """Return clients in the coach's scope whose names are nearest to a text, the nearest first, archived ones too."""
    wanted, names, archived_ids = _comparable(text), dict[ObjectId, str](), set[ObjectId]()
    for archived in (False, True):
        where, _ = service.build_list_filter(ctx, archived, None, None)
        hint = store.BY_TRAINER if store.TRAINER in where else store.BY_ORDER
        for client in await store.customers.find(
            ctx, where, sort=store.ORDER, limit=_COMPARED, fields=store.ORDER, hint=hint
        ):
            names[client["_id"]] = straighten(f"{client['sortName']} {client['sortSurname']}")
            if archived:
                archived_ids.add(client["_id"])
    near = process.extract(wanted, names, scorer=fuzz.WRatio, limit=_SUGGESTED, score_cutoff=_MIN_SCORE)
    references = await service.find_references(ctx, [each for _, _, each in near])
    return [
        NearClient(each, references[each]["name"], each in archived_ids) for _, _, each in near if each in references
    ]


async def match_groups(ctx: Context, names: Sequence[str]) -> GroupNames:
    """Return the groups of clients that names mean, without regard to case, accents and the kind of apostrophe."""
    if not names:
        return GroupNames([], [], [])
    groups = [group["name"] for group in await service.list_groups(ctx)]
    by_text = {_comparable(group): group for group in groups}
    known = [group for group in groups if _comparable(group) in {_comparable(name) for name in names}]
    unknown = [name for name in names if _comparable(name) not in by_text]
    nearest = [
        by_text[text]
        for name in unknown
        for text, _, _ in process.extract(_comparable(name), list(by_text), scorer=fuzz.WRatio, limit=_SUGGESTED)
    ]
    return GroupNames(known, unknown, list(dict.fromkeys(nearest))[:_SUGGESTED])


def suggest_groups(wanted: GroupNames) -> str:
    """Return what to tell about names that no group has, with the nearest ones; empty if there are none."""
    if not wanted.unknown:
        return ""
    unknown, nearest = [", ".join(map(typed, names)) for names in (wanted.unknown, wanted.nearest)]
    return f"There is no group {unknown}." + (f" The nearest: {nearest}." if nearest else "")


def _comparable(text: str) -> str:
    return straighten(normalize(text))


# --- Changes to many clients ------------------------------------------------------------------------------------------


_COUNTED = (store.ARCHIVED, store.GROUPS)


async def find_accessible(ctx: Context, ids: list[ObjectId]) -> dict[ObjectId, bool]:
    """Return the company's clients among `ids`, each with whether it is in the coach's scope.

    An address that is narrowed to one client has no other.
    """
    only = ctx.caller.only_customer_id
    where = {"_id": {"$in": [each for each in ids if only in (None, each)]}}
    found = await store.customers.find(ctx, where, fields=service.SCOPE_FIELDS)
    return {customer["_id"]: service.is_in_scope(ctx, customer) for customer in found}


async def explain_denial(ctx: Context, customer_id: ObjectId) -> tuple[str, str]:
    """Return the code and the message for a client whom `find_accessible` says to be out of scope."""
    try:
        await service.get_visible(ctx, customer_id)
    except ClientDeclined as error:
        return str(error.code), str(error.message)
    except (Forbidden, NotFound):
        pass
    return "FORBIDDEN", "This client is assigned to another coach"


async def load_names(ctx: Context, ids: list[ObjectId], limit: int | None = None) -> dict[ObjectId, str]:
    """Return the full names of the clients `ids` in the coach's scope, of at most `limit`, in list order."""
    where = service.limit_to_scope(ctx) | {"_id": {"$in": ids}}
    names = ("name", "surname")
    found = await store.customers.find(
        ctx, where, sort=store.ORDER, limit=limit or len(ids), fields=names, hint=store.BY_ID
    )
    return {customer["_id"]: service.full_name(customer) for customer in found}


async def load_active(ctx: Context, ids: list[ObjectId]) -> dict[ObjectId, customer_models.Customer]:
    """Return name, surname and time zone of the clients `ids` in the coach's scope who are not archived, by name."""
    found = await _find_identities(ctx, service.limit_to_scope(ctx) | {"_id": {"$in": ids}})
    return {each["_id"]: each for each in found if not each["customerRoleData"]["isArchived"]}


async def load_identities(ctx: Context, ids: list[ObjectId]) -> dict[ObjectId, customer_models.Customer]:
    """Return name, surname, time zone, groups and archived or not of the clients `ids`, whatever the coach's scope."""
    return {each["_id"]: each for each in await _find_identities(ctx, {"_id": {"$in": ids}})}


async def _find_identities(ctx: Context, where: Filter) -> list[customer_models.Customer]:
    fields = ("name", "surname", "timezone", store.GROUPS, store.ARCHIVED)
    return await store.customers.find(ctx, where, sort=store.ORDER, fields=fields, hint=store.BY_ID)


async def get_timezone(ctx: Context, customer_id: ObjectId) -> str:
    """Return the time zone of a client, or the company's. Access is not checked."""
    found = await load_identities(ctx, [customer_id])
    return (found[customer_id]["timezone"] if customer_id in found else None) or ctx.caller.company.timezone


async def iterate_matching(
    ctx: Context, selection: customer_models.CustomerFilter, batch_size: int
) -> AsyncIterator[list[ObjectId]]:
    """Yield the identifiers of the clients in the coach's scope that match a filter, in batches."""
    where, _ = service.build_list_filter(
        ctx, selection["archived"], selection.get("groups"), selection.get("assignedTo")
    )
    if term := selection.get("contains", "").strip():
        condition = store.substring_filter(term)
        if condition is None:
            return
        where |= condition
    last: ObjectId | None = None
    while ids := await service.list_ids_after(ctx, last, batch_size, where):
        last = ids[-1]
        yield ids


async def list_reported(
    ctx: Context, groups: list[str] | None, trainers: list[ObjectId | None] | None
) -> list[customer_models.Customer]:
    """Return all clients in the coach's scope, archived or not, for reports: trainer, time zone, since when.

    Clients in any of `groups`, of any of `trainers` as in the list.
    """
    where, _ = service.build_list_filter(ctx, archived=False, groups=groups, trainers=trainers)
    where[store.ARCHIVED] = {"$in": [False, True]}
    index = store.BY_GROUP if groups else store.BY_TRAINER if store.TRAINER in where else store.BY_ORDER
    fields = ("timezone", "createdAt", store.ARCHIVED, store.TRAINER)
    return await store.customers.find(ctx, where, fields=fields, hint=index)


async def has_members_beyond_scope(ctx: Context, group: str) -> bool:
    """Return whether a client of a group, archived or not, is outside of the coach's scope."""
    beyond: list[Filter] = [{store.TRAINER: {"$ne": ctx.caller.id}}] if ctx.caller.customers_scope != "all" else []
    if (switch := service.find_switch(ctx)) is not None:
        beyond.append({"$nor": [store.not_declined(switch)]})
    if not beyond:
        return False
    where = {store.GROUPS: group, "$or": beyond}
    return bool(
        await store.customers.find(ctx, where, limit=1, fields=("_id",), hint=store.customers.index_name(store.GROUPS))
    )


@transactional
async def set_archived(ctx: Context, ids: list[ObjectId], *, archived: bool) -> None:
    """Archive or restore clients; those already archived or active are not changed."""
    where, change = {"_id": {"$in": ids}, store.ARCHIVED: not archived}, {"$set": {store.ARCHIVED: archived}}
    changed = await _change_counted(ctx, where, change, lambda data: {**data, "isArchived": archived})
    await store.update_after_archiving(ctx, [client["_id"] for client in changed], archived=archived)


@transactional
async def add_groups(ctx: Context, ids: list[ObjectId], groups: list[str]) -> None:
    """Add clients to groups; those already in all of them are not changed."""
    where = {"_id": {"$in": ids}, store.GROUPS: {"$not": {"$all": groups}}}
    change = {"$addToSet": {store.GROUPS: {"$each": groups}}}
    await _change_groups(ctx, where, change, lambda known: [*known, *groups])


async def find_over_group_limit(ctx: Context, ids: list[ObjectId], groups: list[str]) -> dict[ObjectId, str]:
    """Return the clients among `ids` who would be in more groups than allowed, each with the message of the failure."""
    size = {"$size": {"$setUnion": [f"${store.GROUPS}", {"$literal": groups}]}}
    where = {"_id": {"$in": ids}, "$expr": {"$gt": [size, validation.MAX_STRINGS]}}
    message = f"groups must not hold more than {validation.MAX_STRINGS} entries"
    return {customer["_id"]: message for customer in await store.customers.find(ctx, where, fields=("_id",))}


@transactional
async def remove_groups(ctx: Context, ids: list[ObjectId], groups: list[str]) -> None:
    """Remove clients from groups; clients in none of them are not changed."""
    where = {"_id": {"$in": ids}, store.GROUPS: {"$in": groups}}
    change = {"$pullAll": {store.GROUPS: groups}}
    await _change_groups(ctx, where, change, lambda known: [each for each in known if each not in groups])


@transactional
async def rename_group(ctx: Context, ids: list[ObjectId], group: str, name: str) -> list[ObjectId]:
    """Give a group of clients another name, which is not joining or leaving one; returns those who were in it."""

    def renamed(known: list[str]) -> list[str]:
        return list(dict.fromkeys(name if each == group else each for each in known))

    matching = await store.customers.find(
        ctx, {"_id": {"$in": ids}, store.GROUPS: group}, fields=_COUNTED, hint=store.BY_ID
    )
    known, before, after = f"${store.GROUPS}", {"$literal": group}, {"$literal": name}
    others = {"$filter": {"input": known, "cond": {"$ne": ["$$this", before]}}}
    replaced = {"$map": {"input": known, "in": {"$cond": [{"$eq": ["$$this", before]}, after, "$$this"]}}}
    members = [each["_id"] for each in matching]
    computed = {store.GROUPS: {"$cond": [{"$in": [after, known]}, others, replaced]}}
    await store.customers.update_each(ctx, {"_id": {"$in": members}}, computed)
    roles = [each["customerRoleData"] for each in matching]
    renamed_roles: list[customer_models.CustomerRoleData] = [
        {**role, "groups": renamed(role["groups"])} for role in roles
    ]
    await counters.count_changed(ctx, roles, renamed_roles)
    return members


async def _change_groups(
    ctx: Context, where: Filter, change: Document, changed: Callable[[list[str]], list[str]]
) -> None:
    """Change the groups of clients; `changed` does the same to those of one."""
    before = await _change_counted(ctx, where, change, lambda data: {**data, "groups": changed(data["groups"])})
    groups = {client["_id"]: client["customerRoleData"]["groups"] for client in before}
    if groups:
        changes = [customer_models.GroupsChange.between(each, known, changed(known)) for each, known in groups.items()]
        await ctx.publish(customer_models.GroupsChanged(changes))


async def _change_counted(
    ctx: Context,
    where: Filter,
    change: Document,
    changed: Callable[[customer_models.CustomerRoleData], customer_models.CustomerRoleData],
) -> list[customer_models.Customer]:
    """Change clients and count them, in the caller's transaction; `changed` does the same to what is counted.

    Returns what is counted of the clients as they were before.
    """
    matching = await store.customers.find(ctx, where, fields=_COUNTED, hint=store.BY_ID)
    ids = [client["_id"] for client in matching]
    if ids:
        await store.customers.update_many(ctx, {"_id": {"$in": ids}}, change)
        before = [client["customerRoleData"] for client in matching]
        await counters.count_changed(ctx, before, [changed(each) for each in before])
    return matching


async def assign_trainer(ctx: Context, ids: Sequence[ObjectId], coach_id: ObjectId | None) -> None:
    """Assign the clients in `ids` with another trainer to a coach; None: leave them without a trainer."""
    where = {"_id": {"$in": list(ids)}, store.TRAINER: {"$ne": coach_id}}
    await store.customers.update_many(ctx, where, {"$set": {store.TRAINER: coach_id}})


@transactional
async def erase(ctx: Context, ids: list[ObjectId]) -> int:
    """Delete clients, queue the erasure of the rest of their data, and return how many were deleted."""
    existing = await store.customers.find(ctx, {"_id": {"$in": ids}}, fields=_COUNTED)
    deleted = [customer["_id"] for customer in existing]
    await store.customers.delete_many(ctx, {"_id": {"$in": deleted}})
    await counters.count(ctx, existing, -1)
    await ctx.publish(customer_models.CustomersDeleted(deleted))
    return len(deleted)


async def find_used(ctx: Context, ids: Sequence[ObjectId], since: datetime) -> set[ObjectId]:
    """Return which of some clients have documents that were created or changed after a time (UTC)."""
    used: set[ObjectId] = set()
    is_later = {"$or": [{"createdAt": {"$gt": since}}, {"version": {"$gt": 0}}]}
    for collection, path in references_to("customers") if ids else ():
        where = {path: {"$in": list(ids)}} | is_later
        used |= {document[path] for document in await collection.find(ctx, where, fields=(path,), ownership="own")}
    return used


# --- The clients that a tool is about: one, several, or those of groups -----------------------------------------------


MAX_CLIENTS = 50


class ClientsArgument(Arguments):
    """The clients that a tool is about: one, several, or the members of groups.

    A call has exactly one of the arguments `choices`.
    """

    choices: ClassVar[tuple[str, ...]] = ("customerId", "customerIds", "groups")
    customerId = validation.Identifier(**optional("From list_customers."))
    customerIds = validation.ListOf(
        validation.Identifier(), minimum=1, maximum=MAX_CLIENTS, **optional("Instead: up to 50 clients.")
    )
    groups = validation.ListOf(
        validation.Text(max_length=100),
        minimum=1,
        maximum=MAX_CLIENTS,
        **optional("Instead: clients in any of these groups."),
    )

    @validates_schema(skip_on_field_errors=False)
    def chooses_once(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require exactly one way to choose clients."""
        given = [name for name in self.choices if data.get(name) is not None]
        if not given and all(name in data for name in self.choices):
            others = [name for name in self.choices[1:] if not self.fields[name].metadata.get("unlisted")]
            listed = " or ".join(filter(None, [", ".join(others[:-1]), *others[-1:]]))
            raise validation.invalid(f"is required{f', or {listed}' if listed else ''}", "REQUIRED", "customerId")
        if len(given) > 1:
            message = validation.Message(f"must not be combined with {given[0]}", "NOT_ALLOWED")
            raise ValidationError({name: [message] for name in given[1:]})


async def choose_clients(
    ctx: Context, customer_id: ObjectId | None, customer_ids: Sequence[ObjectId] | None, groups: Sequence[str] | None
) -> list[customer_models.NamedCustomer]:
    """Return the chosen clients, of groups by name, which needs the permission to list clients.

    Raises NotFound, Forbidden, and InvalidFields that names every entry which is no client of the
    caller or no group, and for groups without clients or with more than 50.
    """
    if customer_id is not None:
        return [await service.get_visible_reference(ctx, customer_id)]
    if customer_ids is not None:
        ids = list(dict.fromkeys(customer_ids))
        accessible = await find_accessible(ctx, ids)
        errors: list[FieldError] = []
        for index, each in enumerate(customer_ids):
            if accessible.get(each):
                continue
            code, message = "CUSTOMER_NOT_FOUND", "was not found"
            if each in accessible:
                code, message = await explain_denial(ctx, each)
            errors.append({"field": f"customerIds.{index}", "code": code, "message": message})
        if errors:
            raise InvalidFields(errors)
        references = await service.find_references(ctx, ids)
        return [references[each] for each in ids]
    require_permission(ctx.caller, CUSTOMERS.VIEW)  # an error names groups
    wanted = await match_groups(ctx, groups or [])
    if wanted.unknown:
        unknown, nearest = (", ".join(map(typed, names)) for names in (wanted.unknown, wanted.nearest))
        hint = f"; the nearest: {nearest}" if nearest else "; no client is in a group"
        raise invalid_field("groups", f"has names that no group has: {unknown}{hint}", code="UNKNOWN_NAME")
    selection: customer_models.CustomerFilter = {"archived": False, "groups": wanted.known}
    members = [each async for batch in iterate_matching(ctx, selection, MAX_CLIENTS) for each in batch]
    return await name_chosen(ctx, await keep_resolved(ctx, f"groups {sorted(wanted.known)}", members), "groups")


async def name_chosen(ctx: Context, ids: Sequence[ObjectId], field: str) -> list[customer_models.NamedCustomer]:
    """Return the clients of the caller among `ids`.

    Raises InvalidFields, naming `field`, for none or more than 50, and Forbidden for a caller who may not list clients.
    """
    require_permission(ctx.caller, CUSTOMERS.VIEW)
    if not ids:
        raise invalid_field(field, "has no active client", code="EMPTY")
    if len(ids) > MAX_CLIENTS:
        message = f"has {len(ids)} clients, of whom at most {MAX_CLIENTS} can be chosen: use customerIds"
        raise invalid_field(field, message, code="TOO_MANY")
    return [{"_id": each, "name": name} for each, name in (await load_names(ctx, list(ids))).items()]


async def keep_resolved(ctx: Context, key: str, ids: list[ObjectId]) -> list[ObjectId]:
    """Return the clients of a group or program without those who joined since the call was proposed."""

    async def list_now() -> list[ObjectId]:
        return ids

    resolved = await ctx.resolve(key, list_now)
    return [each for each in ids if each in resolved]


def name_clients(clients: Sequence[customer_models.NamedCustomer]) -> str:
    """Return the names of clients, of several with their number: `«Ana»`, or `2 clients, «Ana», «Bo»`."""
    names = ", ".join(typed(each["name"]) for each in clients)
    return names if len(clients) == 1 else f"{len(clients)} clients, {names}"


def identify_clients(clients: Sequence[customer_models.NamedCustomer]) -> dict[str, ObjectId | list[ObjectId]]:
    """Return the identifiers of clients for the result of a tool."""
    ids = [each["_id"] for each in clients]
    return {"customerId": ids[0]} if len(ids) == 1 else {"customerIds": ids}
