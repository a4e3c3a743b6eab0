"""Creating or changing many clients at once: all valid ones in one transaction.

Creating them takes a number of round trips that does not grow. A known client is written only if it differs.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from marshmallow import fields

from coaching_service.core import mcp, validation
from coaching_service.core.auth import CUSTOMERS, coach, require_permission, token_hash
from coaching_service.core.database.context import Context, transactional
from coaching_service.core.database.documents import now
from coaching_service.core.errors import ClientDeclined, FieldError
from coaching_service.core.external_identity import Upserted, stored_identity, upsert
from coaching_service.core.fields import names_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.independent_entries import InvalidEntry
from coaching_service.core.mcp import Arguments, Tools, optional
from coaching_service.core.text import normalize
from coaching_service.people import searched_texts, team
from coaching_service.people.customers import counters, service, store
from coaching_service.people.customers import models as customer_models
from coaching_service.people.customers.service import full_name, full_name_key
from coaching_service.people.customers.store import search_fields
from coaching_service.people.identities.models import account_key

# --- Clients who may be the same person as one that is to be created: with the same e-mail address or full name -------


_MAX_FIRST_WORDS = 5


async def find_duplicates(
    ctx: Context, entries: Sequence[customer_models.CustomerDetails]
) -> list[list[customer_models.Duplicate]]:
    """Return, for each client to create, those in the coach's scope with the same e-mail address or full name.

    Archived clients too; names are compared without regard to case and accents.
    """
    emails = [each["email"] for each in entries if each.get("email")]
    by_email = await store.find_by_emails(ctx, [email for email in emails if email])
    names: set[str] = set()  # what the field `name` can be with the same full name: its first words, or all of it
    for each in entries:
        words = full_name_key(each).split()
        first_words = (" ".join(words[:end]) for end in range(1, _MAX_FIRST_WORDS))
        names |= {normalize(each["name"]), full_name_key(each), *first_words}
    where = {store.ARCHIVED: {"$in": [False, True]}, "sortName": {"$in": list(names)}}
    fields = ("name", "surname", *service.SCOPE_FIELDS)
    by_name = await store.customers.find(ctx, where, fields=fields, hint=store.BY_ORDER)
    visible = {each["_id"] for each in (*by_email, *by_name) if service.is_in_scope(ctx, each)}
    duplicates = []
    for entry in entries:
        email = account_key(entry.get("email") or "")
        found: dict[ObjectId, customer_models.Duplicate] = {}
        for client in by_email:
            if email and account_key(client["email"] or "") == email:
                found[client["_id"]] = {"_id": client["_id"], "name": full_name(client), "same": "email"}
        for client in by_name:
            if full_name_key(client) == full_name_key(entry):
                found.setdefault(client["_id"], {"_id": client["_id"], "name": full_name(client), "same": "name"})
        duplicates.append([duplicate for identifier, duplicate in found.items() if identifier in visible])
    return duplicates


# --- Creating clients: one, sample data, or the record of another system ----------------------------------------------


async def create_customer(
    ctx: Context, details: customer_models.CustomerDetails, *, send_invitation: bool = False, sample: bool = False
) -> customer_models.CreatedCustomer:
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
    return cast("customer_models.CreatedCustomer", {**service.to_response(ctx, stored), "firstAccessToken": token})


def with_trainer(ctx: Context, details: customer_models.CustomerDetails) -> customer_models.CustomerDetails:
    """Return the fields of a new client; an employee with the scope `assigned` is the trainer unless they name one."""
    if details.get("assignedTo") is None and ctx.caller.customers_scope == "assigned":
        return {**details, "assignedTo": ctx.caller.id}
    return details


@transactional
async def _insert(
    ctx: Context, customer: customer_models.NewCustomerDocument, first_access_token: str, *, send_invitation: bool
) -> customer_models.Customer:
    [stored] = await store.create_many(ctx, [customer])
    await ctx.publish(
        customer_models.CustomersCreated(
            [customer_models.CustomerCreation(stored, first_access_token, send_invitation)]
        )
    )
    return stored


def build_document(
    details: customer_models.CustomerDetails, first_access_token: str, *, sample: bool = False, archived: bool = False
) -> customer_models.NewCustomerDocument:
    """Return a new client's document, without what the database package adds."""
    contact = cast(
        "customer_models.ContactDetails", {name: details.get(name) for name in names_of(customer_models.ContactDetails)}
    )
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
    return cast("customer_models.NewCustomerDocument", {**document, **stored_identity(details)})


@transactional
async def add_many(ctx: Context, documents: Sequence[customer_models.NewCustomerDocument]) -> None:
    """Store clients made by `build_document`, all or none, for sample data.

    Their trainers are not checked and CustomersCreated is not published: no invitation is sent.
    """
    stored = await store.customers.insert_many(ctx, documents, recorded=False)
    await searched_texts.store_entries(ctx, store.customers, stored)
    await counters.count(ctx, documents, 1)


async def upsert_external(
    ctx: Context,
    external_id: str,
    change: customer_models.CustomerChange,
    complete: Callable[[], customer_models.NewCustomer],
) -> Upserted:
    """Change the client with this identifier in another system, or create one of what `complete` returns.

    What is stored already is not a change. Raises what `update`, `create` and core's `upsert` raise.
    """

    async def create_new(tx: Context) -> customer_models.CustomerProfile:
        new: customer_models.NewCustomer = {**complete(), "externalId": external_id}
        created = await create_customer(tx, new, send_invitation=new["sendInvitation"])
        return cast(
            "customer_models.CustomerProfile",
            {name: value for name, value in created.items() if name != "firstAccessToken"},
        )

    return await upsert(
        ctx,
        lambda tx: store.find_id_by_external_id(tx, external_id),
        lambda tx, customer_id: service.update(tx, customer_id, change, only_differences=True),
        create_new,
        (CUSTOMERS.CREATE, CUSTOMERS.EDIT),
    )


_NOT_CHANGED = ("externalId", "sendInvitation", "version")

Entry = customer_models.CustomerUpsert | InvalidEntry


@dataclass(frozen=True)
class Check:
    """The clients who have the identifiers of entries in another system, by these; errors by the entry's position."""

    known: Mapping[str | None, customer_models.Customer]
    errors: Mapping[int, Sequence[FieldError]]


@transactional
async def save_many(
    ctx: Context, entries: Sequence[Entry], on_conflict: customer_models.OnConflict = "error"
) -> customer_models.CustomerBatchResult:
    """Create a client for each valid entry, or change the one with its identifier in another system.

    Not valid are new clients without a name, entries whose trainer is not a coach of the company, and those that repeat
    an earlier one: its identifier in another system or, without one, name, surname and e-mail. With the conflict
    `error`, neither are those whose identifier is taken; with `update`, the client with it gets the fields of the
    entry, unless it is outside of the caller's scope, or at another version than the entry. An employee with the scope
    `assigned` becomes the trainer of new clients as in service.create.
    Raises Forbidden if the caller may not change clients and the conflict is `update`, or may not create one.
    """
    if on_conflict == "update":
        require_permission(ctx.caller, CUSTOMERS.EDIT)
    checked = await check(ctx, entries, on_conflict)
    known = checked.known
    results: list[customer_models.CustomerBatchEntry] = [{"index": index} for index in range(len(entries))]
    unchanged = 0
    for index, errors in checked.errors.items():
        results[index]["errors"] = list(errors)
    accepted = [
        (index, entry)
        for index, entry in enumerate(entries)
        if not isinstance(entry, InvalidEntry) and "errors" not in results[index]
    ]
    updated = [
        (index, entry, known[entry["externalId"]]) for index, entry in accepted if entry.get("externalId") in known
    ]
    for index, entry, customer in updated:
        change = {name: value for name, value in entry.items() if name not in _NOT_CHANGED}
        after = await service.update_known(ctx, customer, cast("customer_models.CustomerChange", change))
        has_changed = after["version"] > customer["version"]
        unchanged += not has_changed
        result: Literal["updated", "unchanged"] = "updated" if has_changed else "unchanged"
        results[index] |= {"_id": customer["_id"], "result": result, "version": after["version"]}
    valid = [(index, entry, str(uuid.uuid4())) for index, entry in accepted if entry.get("externalId") not in known]
    if valid:
        require_permission(ctx.caller, CUSTOMERS.CREATE)
    documents = [
        build_document(with_trainer(ctx, entry), token, archived=entry.get("isArchived", False))
        for _, entry, token in valid
    ]
    stored = await store.create_many(ctx, documents)
    creations = []
    for (index, entry, token), customer in zip(valid, stored, strict=True):
        results[index] |= {"_id": customer["_id"], "result": "created", "version": customer["version"]}
        invites = entry.get("sendInvitation", False)
        creations.append(customer_models.CustomerCreation(customer, token, invites))
    if creations:
        await ctx.publish(customer_models.CustomersCreated(creations))
    changed = len(updated) - unchanged
    return {"created": len(stored), "updated": changed, "unchanged": unchanged, "results": results}


@transactional
async def save_and_compare(
    ctx: Context, entries: Sequence[Entry], on_conflict: customer_models.OnConflict
) -> customer_models.CustomerBatchResult:
    """Do what `save_many` does, and name the clients who were there already and may be the same as new ones.

    Entries have `archived` for `isArchived`.
    """
    entries = [
        cast("Entry", {("isArchived" if name == "archived" else name): value for name, value in entry.items()})
        if not isinstance(entry, InvalidEntry)
        else entry
        for entry in entries
    ]
    compared = [entry for entry in entries if not isinstance(entry, InvalidEntry) and "name" in entry]
    duplicates = iter(await find_duplicates(ctx, compared))
    by_index = [[] if isinstance(entry, InvalidEntry) or "name" not in entry else next(duplicates) for entry in entries]
    result = await save_many(ctx, entries, on_conflict)
    for entry, same in zip(result["results"], by_index, strict=True):
        others = [each for each in same if each["_id"] != entry.get("_id")]
        if others and "errors" not in entry:
            entry["duplicates"] = others
    return result


async def check(ctx: Context, entries: Sequence[Entry], on_conflict: customer_models.OnConflict) -> Check:
    """Return what `save_many` would find out about the entries."""
    sent = [entry.get("externalId") for entry in entries if not isinstance(entry, InvalidEntry)]
    where = {"externalId": {"$in": [each for each in sent if each is not None]}}
    found = await store.customers.find(ctx, where, hint=store.EXTERNAL_ID_INDEX) if any(sent) else []
    known: dict[str | None, customer_models.Customer] = {customer["externalId"]: customer for customer in found}
    errors: dict[int, Sequence[FieldError]] = {
        index: entry.errors for index, entry in enumerate(entries) if isinstance(entry, InvalidEntry)
    }
    coaches = {coach["_id"] for coach in await team.list_coaches(ctx)}
    first_of: dict[tuple[str, ...], int] = {}
    for index, entry in enumerate(entries):
        if isinstance(entry, InvalidEntry):
            continue
        trainer, first = entry.get("assignedTo"), first_of.get(_key_of(entry))
        if trainer is not None and trainer not in coaches:
            errors[index] = [{"field": "assignedTo", "code": "NOT_FOUND", "message": "is not a coach of the company"}]
        elif conflict := _find_conflict(ctx, entry, known.get(entry.get("externalId")), on_conflict):
            errors[index] = [conflict]
        elif first is None:
            first_of[_key_of(entry)] = index
        else:
            message, has_id = f"is the same as in entry {first}", entry.get("externalId") is not None
            message += "" if has_id else ", with the same surname and e-mail address"
            errors[index] = [{"field": "externalId" if has_id else "name", "code": "DUPLICATE", "message": message}]
    return Check(known, errors)


def _find_conflict(
    ctx: Context,
    entry: customer_models.CustomerUpsert,
    holder: customer_models.Customer | None,
    on_conflict: customer_models.OnConflict,
) -> FieldError | None:
    if holder is None:
        required = validation.REQUIRED.at("name")
        return None if "name" in entry else required
    error: FieldError = {"field": "externalId", "code": "EXTERNAL_ID_TAKEN", "message": "is in use by another record"}
    if service.has_declined(ctx, holder):  # without revealing which client it is
        refused: FieldError = {**error, "code": ClientDeclined.default_code, "message": ClientDeclined.default_message}
        return refused if on_conflict == "update" else error
    if on_conflict == "update":
        if service.is_in_scope(ctx, holder):
            changed: FieldError = {
                "field": "version",
                "code": "VERSION_CONFLICT",
                "message": f"is {holder['version']} by now: read the client again",
            }
            return changed if entry.get("version", holder["version"]) != holder["version"] else None
        error = {
            "field": "externalId",
            "code": "CUSTOMER_OUT_OF_SCOPE",
            "message": "is in use by another coach's client",
        }
    return {**error, "_id": holder["_id"]}


def _key_of(details: customer_models.CustomerDetails) -> tuple[str, ...]:
    if (external_id := details.get("externalId")) is not None:
        return (external_id,)
    texts = (details.get("name"), details.get("surname"), details.get("email"))
    return tuple(normalize(text or "") for text in texts)


# --- Creating several clients at once for assistants ------------------------------------------------------------------


tools = Tools()
_MAX_CLIENTS = 100
_SAME = {"email": "e-mail address", "name": "name"}


class ClientToCreate(Arguments):
    """A client to create."""

    name = validation.Text(required=True, metadata={"description": "First or full name."})
    surname = validation.Text(load_default=None, allow_none=True)
    email = validation.Email(load_default=None, allow_none=True)
    phone = validation.Text(max_length=50, load_default=None, allow_none=True)
    birthday = validation.Date(**optional("YYYY-MM-DD."))
    groups = validation.StringList(load_default=list)


class CreateCustomers(Arguments):
    """The clients to create."""

    customers = validation.ListOf(
        fields.Nested(ClientToCreate),
        minimum=1,
        maximum=_MAX_CLIENTS,
        required=True,
        metadata={"description": "The clients.", "minItems": 1, "maxItems": _MAX_CLIENTS},
    )
    dryRun = validation.Boolean(load_default=False, metadata={"description": "true only says what would be created."})


@tools.tool(
    "Create several clients",
    access=coach(CUSTOMERS.VIEW, CUSTOMERS.CREATE),
    takes=CreateCustomers(),
    writes=True,
    confirms=(mcp.Reason.MANY_CLIENTS,),
    unlisted=True,
)
async def create_customers(ctx: Context, customers: list[Mapping[str, Any]], *, dry_run: bool) -> mcp.Written:
    """Create up to 100 clients, all or none, without invitations. Those with the e-mail address or name of an existing
    client are named and left out; create_customer creates one anyway."""
    entries = [cast("customer_models.CustomerUpsert", {**each, "sendInvitation": False}) for each in customers]
    known = await find_duplicates(ctx, entries)
    left_out: list[str] = []
    new: list[customer_models.CustomerUpsert] = []
    for entry, duplicates in zip(entries, known, strict=True):
        email = account_key(entry["email"] or "")
        if duplicates:
            known_as = f"{mcp.typed(duplicates[0]['name'])} [{duplicates[0]['_id']}]"
            left_out.append(f"{_name(entry)} (same {_SAME[duplicates[0]['same']]} as {known_as})")
        elif email and any(account_key(each["email"] or "") == email for each in new):
            left_out.append(f"{_name(entry)} (same {_SAME['email']} as an earlier entry)")
        elif full_name_key(entry) in map(full_name_key, new):
            left_out.append(f"{_name(entry)} (same {_SAME['name']} as an earlier entry)")
        else:
            new.append(entry)
    created = [] if dry_run else (await save_many(ctx, new))["results"]
    reasons = mcp.find_reasons(clients=len(new))
    verb = "Would create" if dry_run else "Created"
    named = f": {', '.join(map(_name, new))}" if new else ""
    note = f" Left out, because they are there: {', '.join(left_out)}." if left_out else ""
    if dry_run and mcp.OUTREACH.intersection(reasons) and not ctx.caller.may_reach_out:
        note += f" But it would be refused: {mcp.OutreachDenied()}."
    return mcp.Written(
        f"{verb} {len(new)} {'client' if len(new) == 1 else 'clients'} without an invitation{named}.{note}",
        {"customerIds": [result["_id"] for result in created]},
        () if dry_run else reasons,
        details={"created": len(created), "leftOut": len(left_out)},
    )


def _name(entry: customer_models.CustomerUpsert) -> str:
    return mcp.typed(full_name(entry))
