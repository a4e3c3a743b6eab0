"""Clients in the database, their lists and locks."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypedDict

from coaching_service.core import text as core_text
from coaching_service.core.database import declared
from coaching_service.core.database.context import Context, Services, gather_reads
from coaching_service.core.database.declared import CLIENTS, Portable
from coaching_service.core.database.documents import Document, Documents, Filter, PipelineStage, now
from coaching_service.core.errors import NotFound
from coaching_service.core.external_identity import BY_EXTERNAL_ID, HAS_METADATA, IDENTITY_CHECKS
from coaching_service.core.fields import checks_of, private_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import BY_UPDATE, UPDATED, ListPart
from coaching_service.core.media import IMAGE_TYPES
from coaching_service.core.validation import Date, Text
from coaching_service.people import account
from coaching_service.people.customers import counters
from coaching_service.people.customers import models as customer_models
from coaching_service.people.identities.models import account_key, spellings
from coaching_service.people.notification_settings import NotificationSettings

# --- Search -----------------------------------------------------------------------------------------------------------
# Searching clients by part of a name, surname or e-mail, at a cost that depends on the matches, not on all clients.


# Up to so many matches are sorted in memory; for more, the index in list order is tried first.
FEW_MATCHES = 1_000


class SearchFields(TypedDict):
    """The private fields by which clients are sorted and searched."""

    sortName: str
    sortSurname: str
    search: str
    suf: list[str]


def search_fields(name: str, surname: str | None, email: str | None) -> SearchFields:
    """Return the fields by which a client is sorted and searched: normalised texts and their suffixes."""
    full_name, normalized_email = core_text.normalize(f"{name} {surname or ''}"), core_text.normalize(email or "")
    return {
        "sortName": core_text.normalize(name),
        "sortSurname": core_text.normalize(surname or ""),
        "search": f"{full_name}\n{normalized_email}",
        "suf": core_text.suffixes(full_name, normalized_email),
    }


class Match(NamedTuple):
    """How clients are found: by the suffix index, or in a scan of clients."""

    indexed: Filter
    scanned: Filter


def match_text(term: str) -> Match | None:
    """Return how clients are found who contain `term` literally, with any kind of apostrophe; None if none can."""
    normalized = core_text.normalize(term)
    if "\0" in normalized:
        return None
    scanned = {"search": {"$regex": core_text.apostrophe_pattern(normalized)}}
    part = core_text.longest_part(normalized)
    indexed = _by_suffix(part)
    return Match(indexed if part == normalized and len(part) <= core_text.SUFFIX_LENGTH else indexed | scanned, scanned)


def substring_filter(term: str) -> Filter | None:
    """Return the filter for clients who contain `term` literally, for a scan of all clients; None if none can."""
    match = match_text(term)
    return match.scanned if match is not None else None


def match_words(text: str) -> Match | None:
    """Return how clients are found who contain every word of `text`, with any kind of apostrophe; None if none can."""
    words = core_text.normalize(text).split()
    if not words or "\0" in text:
        return None
    scanned: Filter = {"$and": [{"search": {"$regex": core_text.apostrophe_pattern(word)}} for word in words]}
    return Match(_by_suffix(max(map(core_text.longest_part, words), key=len)) | scanned, scanned)


def _by_suffix(normalized: str) -> Filter:
    return {"suf": {"$regex": "^" + re.escape(normalized[: core_text.SUFFIX_LENGTH])}}


ARCHIVED = "customerRoleData.isArchived"
GROUPS = "customerRoleData.groups"
TRAINER = "customerRoleData.assignedTo"
CONSENT = "consent"
Switch = Literal["assistants", "applications"]
ORDER = ("sortName", "sortSurname", "_id")
PRIVATE_ORDER = ORDER[:2]
LAST_TRAINED = "customerRoleData.lastTrainedDate"
LAST_WORKOUT = "customerRoleData.lastWorkoutDate"
SCORE = "attention.score"
REASONS = "attention.reasons"
REASON = f"{REASONS}.type"
UNREAD = "attention.unread"
BY_UNREAD = (f"-{UNREAD}", *ORDER)
ATTENTION_FIELDS = ("name", "surname", "timezone", "profilePhoto", "customerRoleData", "attention")
BY_CREATION = ("createdAt", "_id")
BY_TRAINING = (LAST_TRAINED, *ORDER)
BY_ATTENTION = (f"-{SCORE}", "_id")
_BY_DUE = declared.Index((ARCHIVED, "figuresUntil"))
_ONLY_ARCHIVED = ((ARCHIVED, {"$eq": True}),)
_BY_ARCHIVING = declared.Index(("archivedAt",), partial_filter=_ONLY_ARCHIVED)
_NEEDS_ATTENTION = ((SCORE, {"$gt": 0}),)
# Listed after all clients who need attention, since it adds nothing to their score.
UNAVAILABLE = "unavailable"
_UNAVAILABLE = ((REASON, {"$eq": UNAVAILABLE}),)
# The periods, in days up to the client's today, for which compliance rates are stored.
RATE_DAYS = (7, 30, 90)
# Figures that are computed again for a client whose stored ones are due.
_RENEWED_FIGURES = ("complianceRate7d", "complianceRate30d", "complianceRate90d", "complianceDate")


def not_declined(switch: Switch) -> Filter:
    """Return the filter of the clients who have not turned a switch off."""
    return {f"{CONSENT}.{switch}": {"$ne": False}}


def rate_field(days: int) -> str:
    """Return the field of the compliance rate of the last `days` days."""
    return f"customerRoleData.complianceRate{days}d"


def _event(action: declared.Action, known: Mapping[str, Any], paths: Collection[str]) -> declared.EventData:
    data = {"customerId": known["_id"]}
    if action != "changed":
        return {"type": "customer.created" if action == "created" else "customer.deleted", "data": data}
    if ARCHIVED not in paths:
        return {"type": "customer.updated", "data": data}
    return {"type": "customer.archived" if known[ARCHIVED] else "customer.unarchived", "data": data}


def _texts(customer: Mapping[str, Any]) -> Iterator[declared.SearchedText]:
    name = " ".join(filter(None, (customer.get("name"), customer.get("surname"))))
    yield declared.SearchedText("customers", name, customer.get("email") or "", customer.get("createdAt"))


async def _after_import(ctx: Context, documents: Sequence[Any]) -> None:
    await counters.count(ctx, documents, 1)
    if not all(all(each.get(CONSENT, {}).values()) for each in documents):
        await account.record_declined(ctx)


customers = Documents[customer_models.Customer](
    "customers",
    (
        declared.Index((ARCHIVED, *ORDER)),
        declared.Index((ARCHIVED, "suf")),
        declared.Index((ARCHIVED, GROUPS, *ORDER)),
        declared.Index((ARCHIVED, TRAINER, *ORDER)),
        declared.Index((GROUPS,)),
        declared.Index(("_id",)),
        *(declared.Index((ARCHIVED, rate_field(days), *ORDER)) for days in RATE_DAYS),
        declared.Index((ARCHIVED, LAST_TRAINED, *ORDER)),
        declared.Index((ARCHIVED, *BY_UNREAD)),
        declared.Index((ARCHIVED, *BY_ATTENTION)),
        *(
            declared.Index((ARCHIVED, field, *BY_ATTENTION), partial_filter=_NEEDS_ATTENTION)
            for field in (TRAINER, REASON, GROUPS)
        ),
        declared.Index((ARCHIVED, "_id"), partial_filter=_UNAVAILABLE),
        declared.Index(("email",), partial_filter=(("email", {"$gt": ""}),), ignore_case=True),
        BY_EXTERNAL_ID,
        declared.Index((ARCHIVED, *BY_UPDATE)),
        declared.Index((ARCHIVED, *BY_CREATION)),
        declared.Index(
            (ARCHIVED, "metadata.key", "metadata.value", *ORDER), partial_filter=((HAS_METADATA, {"$exists": True}),)
        ),
        declared.Index((ARCHIVED, "figuresChangedAt"), partial_filter=(("figuresChangedAt", {"$exists": True}),)),
        declared.Index(("archivedAt", "_id"), partial_filter=_ONLY_ARCHIVED),
    ),
    private=tuple(each for each in private_of(customer_models.Customer) if each != "companyId"),
    client_field="_id",
    history=declared.History(
        "customer",
        _event,
        (ARCHIVED,),
        undo="changes",
        omit=("firstAccessHash", "profilePhoto"),
        public_names={"profilePhoto": "profilePhotoUrl"},
    ),
    global_indexes=(
        declared.Index(("firstAccessHash", "companyId"), partial_filter=(("firstAccessHash", {"$exists": True}),)),
        _BY_DUE,
        _BY_ARCHIVING,
    ),
    cross_company_reason="first-access tokens are found by hash, outdated figures and archived clients by their time",
    transfer=Portable(
        customer_models.Customer,
        CLIENTS,
        computed=(
            "sortName",
            "sortSurname",
            "search",
            "suf",
            "firstAccessHash",
            "figuresUntil",
            "figuresChangedAt",
            "loadsIn",
            "scheduleChanges",
            "attention",
            "archivedAt",
            "erasureDueAt",
            *(f"customerRoleData.{name}" for name in _RENEWED_FIGURES),
        ),
        checks={
            **IDENTITY_CHECKS,
            "customerRoleData.groups": Text(max_length=100),
            "customerRoleData.lastWorkoutDate": Date(),
            "customerRoleData.lastTrainedDate": Date(),
            **{f"notifications.{name}": check for name, check in checks_of(NotificationSettings).items()},
        },
        optional_references={TRAINER: "coaches"},
        files=declared.FileRule(IMAGE_TYPES, "photo"),
        complete=lambda customer: {
            **customer,
            **search_fields(customer["name"], customer["surname"], customer["email"]),
            "customerRoleData": {**customer["customerRoleData"], **dict.fromkeys(_RENEWED_FIGURES)},
            "figuresChangedAt": now(),
        },
        after=_after_import,
    ),
    searched=declared.Searched(("customers",), ("name", "surname", "email", "createdAt"), _texts),
)
BY_ORDER = customers.index_name(ARCHIVED, *ORDER)
BY_SUFFIX = customers.index_name(ARCHIVED, "suf")
BY_GROUP = customers.index_name(ARCHIVED, GROUPS, *ORDER)
BY_TRAINER = customers.index_name(ARCHIVED, TRAINER, *ORDER)
BY_ID = customers.index_name("_id")
BY_RATE = {days: customers.index_name(ARCHIVED, rate_field(days), *ORDER) for days in RATE_DAYS}
UNREAD_INDEX = customers.index_name(ARCHIVED, *BY_UNREAD)
BY_LAST_TRAINED = customers.index_name(ARCHIVED, LAST_TRAINED, *ORDER)
SCORE_INDEX = customers.index_name(ARCHIVED, *BY_ATTENTION)
SCORE_INDEX_OF = {field: customers.index_name(ARCHIVED, field, *BY_ATTENTION) for field in (TRAINER, REASON, GROUPS)}
UNAVAILABLE_INDEX = customers.index_name(ARCHIVED, "_id")
EMAIL_INDEX = customers.index_name("email")
EXTERNAL_ID_INDEX = customers.index_name("externalId")
CHANGED_INDEX = customers.index_name(ARCHIVED, "figuresChangedAt")
DUE_INDEX = _BY_DUE.name
ARCHIVING_INDEX = _BY_ARCHIVING.name
OWN_ARCHIVING_INDEX = customers.index_name("archivedAt", "_id")
UPDATE_INDEX = customers.index_name(ARCHIVED, *BY_UPDATE)
METADATA_INDEX = customers.index_name(ARCHIVED, "metadata.key", "metadata.value", *ORDER)
# The orders of the list, by the names that requests have for them, and their indexes.
ORDERS: Mapping[str | None, tuple[str, ...]] = {
    None: ORDER,
    "name": ORDER,
    "createdAt": BY_CREATION,
    "lastTrainedDate": BY_TRAINING,
    "updatedAt": BY_UPDATE,
}
INDEX_OF_ORDER = {order: customers.index_name(ARCHIVED, *order) for order in ORDERS.values()}


# --- One client ------------------------------------------------------------------------------------------------------


async def create_many(
    ctx: Context, new: Sequence[customer_models.NewCustomerDocument]
) -> list[customer_models.Customer]:
    """Store new clients and count them, in the caller's transaction; returns them in the same order."""
    stored = await customers.insert_many(ctx, new)
    await counters.count(ctx, stored, 1)
    return stored


async def exists(services: Services, company_id: ObjectId, customer_id: ObjectId) -> bool:
    """Return whether the company has this client."""
    where = {"companyId": company_id, "_id": customer_id}
    return await customers.across_companies(services).find_one(where, {"_id": 1}) is not None


async def find_companies(services: Services, customer_ids: Collection[ObjectId]) -> dict[ObjectId, ObjectId]:
    """Return the companies of those clients who have not been erased."""
    cursor = customers.across_companies(services).find({"_id": {"$in": list(customer_ids)}}, {"companyId": 1})
    return {each["_id"]: each["companyId"] async for each in cursor}


async def rewrite(
    ctx: Context,
    customer_id: ObjectId,
    mutate: Callable[[customer_models.Customer], Mapping[str, object]],
    version: int | None,
) -> tuple[customer_models.CustomerRoleData, customer_models.Customer]:
    """Set the fields that `mutate` returns for the stored client; returns the role data it had, and the client.

    Its groups are counted, in the caller's transaction. Raises NotFound, Conflict if it is no longer at `version`.
    """
    before: list[customer_models.CustomerRoleData] = []

    def remember(stored: customer_models.Customer) -> Mapping[str, object]:
        before[:] = [stored["customerRoleData"]]
        return mutate(stored)

    after = await customers.rewrite(ctx, {"_id": customer_id}, remember, version=version)
    if after is None:
        raise NotFound("customer")
    await counters.count_changed(ctx, before, [after["customerRoleData"]])
    return before[0], after


async def find_id_by_external_id(ctx: Context, external_id: str) -> ObjectId | None:
    """Return the identifier of the client with this identifier in another system, or None."""
    where = {"externalId": external_id}
    clients = await customers.find(ctx, where, limit=1, fields=("_id",), hint=EXTERNAL_ID_INDEX)
    return clients[0]["_id"] if clients else None


async def has_any(ctx: Context) -> bool:
    """Return whether the company has a client, archived or not."""
    return bool(await customers.find(ctx, {}, limit=1, fields=("_id",), hint=BY_ID))


async def unassign(ctx: Context, coach_id: ObjectId) -> None:
    """Leave a coach's clients without a trainer."""
    for archived in (False, True):
        where = {ARCHIVED: archived, TRAINER: coach_id}
        await customers.update_many(ctx, where, {"$set": {TRAINER: None}})


# --- Lists of clients -------------------------------------------------------------------------------------------------


async def find_page(
    ctx: Context, where: Filter, list_part: ListPart, *, contains: str, words: str, unfiltered: bool
) -> tuple[list[customer_models.Customer], int]:
    """Return the clients for one part of the list with their sort fields, and how many there are in total.

    They have `contains` in their name, surname or e-mail address, or every word of `words`; empty: any client.
    `unfiltered`: `where` has no condition other than archived or not.
    """
    if contains or words:
        return await _search_page(ctx, where, match_words(words) if words else match_text(contains), list_part)
    # The changes since a time are few, as are clients of a group or trainer.
    narrow = {UPDATED: UPDATE_INDEX, GROUPS: BY_GROUP, TRAINER: BY_TRAINER, HAS_METADATA: METADATA_INDEX}
    hint = next((index for field, index in narrow.items() if field in where), None) or INDEX_OF_ORDER[list_part.sort]
    if unfiltered:  # one command reads both: a second one costs the service more than presenting the clients
        order: PipelineStage = {"$sort": dict.fromkeys(list_part.sort, 1)}
        listed = await customers.aggregate(
            ctx,
            list_part.within(where),
            order,
            {"$skip": list_part.skip},
            {"$limit": list_part.limit},
            {"$project": customers.projection(None, list_part.private)},
            counters.add_total(ctx, archived=where[ARCHIVED]),
            order,  # documents without sort fields are first; without this stage, MongoDB does not promise any order
            hint=hint,
        )
        count_of_all: int = listed.pop(0)["total"] if listed and listed[0]["_id"] is None else 0
        return listed, count_of_all
    total = count_filtered(ctx, where, hint)
    clients = customers.find(
        ctx,
        list_part.within(where),
        sort=list_part.sort,
        skip=list_part.skip,
        limit=list_part.limit,
        including=PRIVATE_ORDER,
        hint=hint,
    )
    docs, count = await gather_reads(ctx, clients, total)
    return docs, count


async def _search_page(
    ctx: Context, where: Filter, match: Match | None, list_part: ListPart
) -> tuple[list[customer_models.Customer], int]:
    """Return the clients of `where` that `match` for one part of the list, and how many there are in total.

    Each query examines at most 1,001 keys and four times the number of matches: few matches are fetched by suffix and
    sorted; many are first searched for in the order of the complete list, among at most twice their number, if so many
    of all that it has are likely to contain enough.
    """
    if match is None:
        return [], 0
    matching = where | match.indexed
    total = await customers.count(ctx, matching, hint=BY_SUFFIX)
    wanted = min(list_part.limit, max(0, total - list_part.skip))
    if wanted == 0:
        return [], total
    if (
        total > FEW_MATCHES
        and (list_part.skip + list_part.limit) * await counters.read(ctx, archived=where[ARCHIVED]) <= total * total
    ):
        stages: list[Document] = [
            {"$sort": dict.fromkeys(list_part.sort, 1)},
            {"$limit": 2 * total},
            {"$match": where | match.scanned},
            {"$skip": list_part.skip},
            {"$limit": list_part.limit},
            {"$project": customers.projection(None, list_part.private)},
        ]
        docs: list[customer_models.Customer] = await customers.aggregate(
            ctx, list_part.within({ARCHIVED: where[ARCHIVED]}), *stages, hint=INDEX_OF_ORDER[list_part.sort]
        )
        if len(docs) == wanted:
            return docs, total
    clients = await customers.find(
        ctx,
        list_part.within(matching),
        sort=list_part.sort,
        skip=list_part.skip,
        limit=list_part.limit,
        including=list_part.private,
        hint=BY_SUFFIX,
    )
    return clients, total


async def count_filtered(ctx: Context, where: Filter, hint: str) -> int:
    """Return how many clients match `where`: the stored number for the clients of one group."""
    is_group = where.keys() == {ARCHIVED, GROUPS} and len(set(where[GROUPS]["$in"])) == 1
    if is_group and await counters.are_complete(ctx):
        return await counters.read(ctx, archived=where[ARCHIVED], group=where[GROUPS]["$in"][0])
    return await customers.count(ctx, where, hint=hint)


async def find_selected_page(
    ctx: Context, where: Filter, list_part: ListPart, *, contains: str
) -> tuple[list[customer_models.Customer], int]:
    """Return the clients of `where` for one part of the list, and how many there are in total.

    `where` names a few clients by `_id` or `externalId`. `contains` is part of a name, surname or e-mail address;
    empty: any.
    """
    if (containing := substring_filter(contains)) is None:
        return [], 0
    where = where | containing if contains else where
    hint = EXTERNAL_ID_INDEX if "externalId" in where else BY_ID
    return await list_part.read(ctx, customers, where, hint=hint)


def iterate_all(ctx: Context) -> AsyncIterator[customer_models.Customer]:
    """Iterate over all clients of the company, archived ones too: what a roster of them has."""
    fields = ("name", "surname", "email", "phone", "birthday", "timezone", "externalId")
    of_role = ("customerRoleData.groups", "customerRoleData.isArchived", "customerRoleData.assignedTo")
    return customers.stream_own(ctx, (*fields, *of_role))


async def find_identities(ctx: Context) -> list[customer_models.CustomerIdentity]:
    """Return names, addresses and external identifiers of all clients."""
    return await customers.find(ctx, {}, fields=("name", "surname", "email", "externalId"), hint=BY_ID)


async def find_versions(ctx: Context, ids: Collection[ObjectId]) -> dict[ObjectId, int]:
    """Return the versions of some clients, but for those who have signed in, which is a change too."""
    fields = ("version", "customerRoleData.firstLoginDate")
    found = await customers.find(ctx, {"_id": {"$in": list(ids)}}, fields=fields, hint=BY_ID)
    return {each["_id"]: each["version"] + (each["customerRoleData"]["firstLoginDate"] is not None) for each in found}


async def find_by_emails(ctx: Context, emails: Collection[str]) -> list[customer_models.Customer]:
    """Return names and e-mail addresses of the clients with one of these addresses, without regard to case."""
    where, fields = {"email": {"$in": list(emails)}}, ("name", "surname", "email", TRAINER, CONSENT)
    return await customers.find(ctx, where, fields=fields, hint=EMAIL_INDEX, ignore_case=True) if emails else []


async def find_ids_by_email(ctx: Context, email: str) -> list[ObjectId]:
    """Return the identifiers of the clients with an e-mail address, whatever case and spelling its domain has."""
    if not email:
        return []
    where: Filter = {"email": {"$in": spellings(email)}}
    clients = await customers.find(ctx, where, fields=("email",), hint=EMAIL_INDEX, ignore_case=True)
    # The order of the index also ignores other differences, such as of width.
    return [each["_id"] for each in clients if account_key(each["email"] or "") == account_key(email)]


async def count_groups(ctx: Context, where: Filter) -> list[customer_models.CustomerGroup]:
    """Return the groups of the clients of `where`, each with the number of clients in it, by name.

    The numbers of all clients, without a condition, are stored.
    """
    if not where and await counters.are_complete(ctx):
        return await counters.list_groups(ctx)
    stages: list[PipelineStage] = [
        {"$project": {"group": {"$setUnion": [f"${GROUPS}", []]}, "_id": 0}},
        {"$unwind": "$group"},
        {"$group": {"_id": "$group", "count": {"$sum": 1}}},
        {"$sort": {"_id": 1}},
        {"$project": {"_id": 0, "name": "$_id", "count": 1}},
    ]
    if TRAINER not in where:
        return await customers.aggregate(ctx, where, *stages)
    return await customers.aggregate(ctx, where | {ARCHIVED: {"$in": [False, True]}}, *stages, hint=BY_TRAINER)


# --- Locks of clients in the database, with the derived fields that the same write sets -------------------------------


_LOCKED = (TRAINER, CONSENT, LAST_WORKOUT, "loadsIn")  # what is read with a lock


async def lock_and_mark_figures(ctx: Context, customer_id: ObjectId, *, trainer: ObjectId | None = None) -> bool:
    """Write to the client, so that concurrent transactions conflict; returns whether there is such a client.

    With `trainer`, only one who is assigned to this coach. Once in a transaction is enough. The same write marks the
    client's figures as due, as `mark_figures_due` does.
    """
    if (locked := locked_clients(ctx).get(customer_id)) is not None:
        return trainer is None or locked["customerRoleData"]["assignedTo"] == trainer
    where = {"_id": customer_id} if trainer is None else {"_id": customer_id, TRAINER: trainer}
    return await write_and_lock(ctx, where, {})


async def lock_all(ctx: Context, ids: Sequence[ObjectId]) -> list[customer_models.Customer]:
    """Lock several clients that the transaction has not locked yet; returns existing ones, each with the trainer."""
    where: Filter = {"_id": {"$in": list(ids)}}
    await customers.set_derived(ctx, where, mark())
    locked = await customers.find(ctx, where, fields=_LOCKED, hint=BY_ID)
    for customer in locked:
        _remember_lock(ctx, customer)
    return locked


async def write_and_lock(ctx: Context, where: Filter, operators: Document) -> bool:
    """Write to the client of `where`, if there is one, as `lock` does, together with derived fields.

    Raises Conflict if the client's loads have been converted to another unit since the request began.
    """
    locked = await customers.set_derived_and_read(ctx, where, operators | mark(), _LOCKED)
    if locked is None:
        return False
    _remember_lock(ctx, locked)
    return True


def _remember_lock(ctx: Context, locked: customer_models.Customer) -> None:
    if locked.get("loadsIn", ctx.caller.company.load_unit) != ctx.caller.company.load_unit:
        raise account.load_unit_changed()
    locked_clients(ctx)[locked["_id"]] = locked


def locked_clients(ctx: Context) -> dict[ObjectId, Mapping[str, Any]]:
    """Return the clients that the transaction has locked, each with its trainer and the last scheduled date."""
    return ctx.recorder.locked if ctx.recorder is not None else {}


async def mark_figures_due(ctx: Context, ids: Sequence[ObjectId]) -> None:
    """Make the derived figures of clients invalid from now on; the lock of a client has done so."""
    if others := set(ids) - locked_clients(ctx).keys():
        await customers.set_derived(ctx, {"_id": {"$in": list(others)}}, mark())


async def update_after_archiving(ctx: Context, ids: Sequence[ObjectId], *, archived: bool) -> None:
    """Store since when clients are archived, and clear their reasons; of those who are restored, figures are due.

    What is being computed of them at the moment is not stored.
    """
    if not ids:
        return
    since = {"$set": {"archivedAt": now()}} if archived else {}
    forgotten = {"erasureDueAt": ""} if archived else {"archivedAt": "", "erasureDueAt": ""}
    await customers.set_derived(ctx, {"_id": {"$in": list(ids)}}, {**since, "$unset": forgotten})
    if archived:
        for client in await customers.find(ctx, {"_id": {"$in": list(ids)}}, fields=(REASONS,), hint=BY_ID):
            if "attention" in client:
                customer_models.report_reasons(ctx, client["_id"], client["attention"]["reasons"], [])
    await customers.set_derived(ctx, {"_id": {"$in": list(ids)}, SCORE: {"$gte": 0}}, {"$set": {SCORE: 0, REASONS: []}})
    await mark_figures_due(ctx, ids)


def mark() -> Document:
    """Return the update that makes the derived figures of clients invalid from now on.

    It counts the marks: figures that are computed in the meantime are not stored. The time of an earlier mark stays: a
    changed one would make MongoDB compute the keys of all indexes of clients.
    """
    return {"$min": {"figuresChangedAt": now()}, "$inc": {"scheduleChanges": 1}}
