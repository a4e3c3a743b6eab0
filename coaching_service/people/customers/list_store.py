"""Lists of clients in the database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping

from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.database.documents import Filter, PipelineStage
from coaching_service.core.external_identity import HAS_METADATA
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import UPDATED, ListPart
from coaching_service.people.customers import _group_totals, counters, store
from coaching_service.people.customers.models import Customer, CustomerGroup, CustomerIdentity, SortFigure
from coaching_service.people.identities.models import account_key, spellings

# The figures by which lists are sorted: the field, the least value it can have, and the index.
_FIGURES: Mapping[SortFigure, tuple[str, object, str]] = {
    "compliance": (store.rate_field(30), 0, store.BY_RATE[30]),
    "lastTrained": (store.LAST_TRAINED, "", store.BY_LAST_TRAINED),
    "unread": (store.UNREAD, 1, store.UNREAD_INDEX),
}


async def find_page(
    ctx: Context, where: Filter, list_part: ListPart, *, contains: str, words: str, unfiltered: bool
) -> tuple[list[Customer], int]:
    """Return the clients for one part of the list with their sort fields, and how many there are in total.

    They have `contains` in their name, surname or e-mail address, or every word of `words`; empty: any client.
    `unfiltered`: `where` has no condition other than archived or not.
    """
    if contains or words:
        return await store.search_page(
            ctx,
            store.customers,
            where,
            store.match_words(words) if words else store.match_text(contains),
            listed={store.ARCHIVED: where[store.ARCHIVED]},
            count_listed=lambda: counters.read(ctx, archived=where[store.ARCHIVED]),
            list_part=list_part,
            by_suffix=store.BY_SUFFIX,
            by_order=store.INDEX_OF_ORDER[list_part.sort],
        )
    hint = _list_index(where, list_part)
    if unfiltered:
        return await _find_page_of_all(ctx, where, list_part, hint)
    total = _count_filtered(ctx, where, hint)
    clients = store.customers.find(
        ctx,
        list_part.within(where),
        sort=list_part.sort,
        skip=list_part.skip,
        limit=list_part.limit,
        including=store.PRIVATE_ORDER,
        hint=hint,
    )
    docs, count = await gather_reads(ctx, clients, total)
    return docs, count


async def _find_page_of_all(ctx: Context, where: Filter, list_part: ListPart, hint: str) -> tuple[list[Customer], int]:
    """Return the clients for one part of the list of all with their sort fields, and how many there are in total.

    One command reads both: a second one costs the service more than presenting the clients.
    """
    order: PipelineStage = {"$sort": dict.fromkeys(list_part.sort, 1)}
    docs = await store.customers.aggregate(
        ctx,
        list_part.within(where),
        order,
        {"$skip": list_part.skip},
        {"$limit": list_part.limit},
        {"$project": store.customers.projection(None, list_part.private)},
        counters.add_total(ctx, archived=where[store.ARCHIVED]),
        order,  # documents without sort fields are first; without this stage, MongoDB does not promise any order
        hint=hint,
    )
    total: int = docs.pop(0)["total"] if docs and docs[0]["_id"] is None else 0
    return docs, total


async def find_page_by(
    ctx: Context, where: Filter, figure: SortFigure, *, descending: bool, skip: int, limit: int, unfiltered: bool
) -> tuple[list[Customer], int]:
    """Return at most `limit` clients of `where` by a stored figure, then by name, and how many there are in total.

    Those without the figure are last. `unfiltered` as for `find_page`.
    """
    field, least, index = _FIGURES[figure]
    hint = store.BY_GROUP if store.GROUPS in where else store.BY_TRAINER if store.TRAINER in where else index
    counted = counters.read(ctx, archived=where[store.ARCHIVED]) if unfiltered else _count_filtered(ctx, where, hint)
    if descending:
        order = store.BY_UNREAD if figure == "unread" else tuple(f"-{name}" for name in (field, *store.ORDER))
        clients = store.customers.find(ctx, where, sort=order, skip=skip, limit=limit, hint=hint)
        docs, total = await gather_reads(ctx, clients, counted)
        return docs, total
    having, order = where | {field: {"$gte": least}}, (field, *store.ORDER)
    docs, total, known = await gather_reads(
        ctx,
        store.customers.find(ctx, having, sort=order, skip=skip, limit=limit, hint=hint),
        counted,
        store.customers.count(ctx, having, limit=skip + limit, hint=hint),
    )
    if len(docs) < limit:
        lacking, following = where | {field: None}, max(0, skip - known)
        docs += await store.customers.find(ctx, lacking, sort=order, skip=following, limit=limit - len(docs), hint=hint)
    return docs, total


async def _count_filtered(ctx: Context, where: Filter, hint: str) -> int:
    """Return how many clients match `where`: the stored number for the clients of one group."""
    is_group = where.keys() == {store.ARCHIVED, store.GROUPS} and len(set(where[store.GROUPS]["$in"])) == 1
    if is_group and await _group_totals.are_complete(ctx):
        return await _group_totals.read(ctx, where[store.GROUPS]["$in"][0], archived=where[store.ARCHIVED])
    return await store.customers.count(ctx, where, hint=hint)


def _list_index(where: Filter, list_part: ListPart) -> str:
    """Return the index that serves a list: the changes since a time are few, as are clients of a group or trainer."""
    if UPDATED in where:
        return store.UPDATE_INDEX
    if store.GROUPS in where:
        return store.BY_GROUP
    if store.TRAINER in where:
        return store.BY_TRAINER
    return store.METADATA_INDEX if HAS_METADATA in where else store.INDEX_OF_ORDER[list_part.sort]


async def list_sort_names(ctx: Context, where: Filter, limit: int) -> list[Customer]:
    """Return the sort fields of at most `limit` clients of `where`, in list order."""
    hint = store.BY_TRAINER if store.TRAINER in where else store.BY_ORDER
    return await store.customers.find(ctx, where, sort=store.ORDER, limit=limit, fields=store.ORDER, hint=hint)


async def find_selected_page(
    ctx: Context, where: Filter, list_part: ListPart, *, contains: str
) -> tuple[list[Customer], int]:
    """Return the clients of `where` for one part of the list, and how many there are in total.

    `where` names a few clients by `_id` or `externalId`. `contains` is part of a name, surname or e-mail address;
    empty: any.
    """
    if (containing := store.substring_filter(contains)) is None:
        return [], 0
    where = where | containing if contains else where
    hint = store.EXTERNAL_ID_INDEX if "externalId" in where else store.BY_ID
    return await list_part.read(ctx, store.customers, where, hint=hint)


def iterate_all(ctx: Context) -> AsyncIterator[Customer]:
    """Iterate over all clients of the company, archived ones too: what a roster of them has."""
    fields = ("name", "surname", "email", "phone", "birthday", "timezone", "externalId")
    of_role = ("customerRoleData.groups", "customerRoleData.isArchived", "customerRoleData.assignedTo")
    return store.customers.stream_own(ctx, (*fields, *of_role))


async def find_identities(ctx: Context) -> list[CustomerIdentity]:
    """Return names, addresses and external identifiers of all clients."""
    return await store.customers.find(ctx, {}, fields=("name", "surname", "email", "externalId"), hint=store.BY_ID)


async def find_versions(ctx: Context, ids: Collection[ObjectId]) -> dict[ObjectId, int]:
    """Return the versions of some clients, but for those who have signed in, which is a change too."""
    fields = ("version", "customerRoleData.firstLoginDate")
    found = await store.customers.find(ctx, {"_id": {"$in": list(ids)}}, fields=fields, hint=store.BY_ID)
    return {each["_id"]: each["version"] + (each["customerRoleData"]["firstLoginDate"] is not None) for each in found}


async def find_by_emails(ctx: Context, emails: Collection[str]) -> list[Customer]:
    """Return names and e-mail addresses of the clients with one of these addresses, without regard to case."""
    where, fields = {"email": {"$in": list(emails)}}, ("name", "surname", "email", store.TRAINER, store.CONSENT)
    return (
        await store.customers.find(ctx, where, fields=fields, hint=store.EMAIL_INDEX, ignore_case=True)
        if emails
        else []
    )


async def find_by_sort_names(ctx: Context, names: Collection[str]) -> list[Customer]:
    """Return names and trainers of the clients whose normalized `name` is one of these, archived ones too."""
    where: Filter = {store.ARCHIVED: {"$in": [False, True]}, "sortName": {"$in": list(names)}}
    fields = ("name", "surname", store.TRAINER, store.CONSENT)
    return await store.customers.find(ctx, where, fields=fields, hint=store.BY_ORDER)


async def find_ids_by_email(ctx: Context, email: str) -> list[ObjectId]:
    """Return the identifiers of the clients with an e-mail address, whatever case and spelling its domain has."""
    if not email:
        return []
    where: Filter = {"email": {"$in": spellings(email)}}
    clients = await store.customers.find(ctx, where, fields=("email",), hint=store.EMAIL_INDEX, ignore_case=True)
    # The order of the index also ignores other differences, such as of width.
    return [each["_id"] for each in clients if account_key(each["email"] or "") == account_key(email)]


async def count_groups(ctx: Context, where: Filter) -> list[CustomerGroup]:
    """Return the groups of the clients of `where`, each with the number of clients in it, by name.

    The numbers of all clients, without a condition, are stored.
    """
    if not where and await _group_totals.are_complete(ctx):
        return await _group_totals.list_all(ctx)
    stages: list[PipelineStage] = [
        {"$project": {"group": {"$setUnion": [f"${store.GROUPS}", []]}, "_id": 0}},
        {"$unwind": "$group"},
        {"$group": {"_id": "$group", "count": {"$sum": 1}}},
        {"$sort": {"_id": 1}},
        {"$project": {"_id": 0, "name": "$_id", "count": 1}},
    ]
    if store.TRAINER not in where:
        return await store.customers.aggregate(ctx, where, *stages)
    return await store.customers.aggregate(
        ctx, where | {store.ARCHIVED: {"$in": [False, True]}}, *stages, hint=store.BY_TRAINER
    )
