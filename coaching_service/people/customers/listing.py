"""Lists of clients: filtered, by page or cursor; and the groups of clients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from rapidfuzz import fuzz, process

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import ALL_ENTRIES, ListPart, ListSelection
from coaching_service.core.pagination import Page, page_document, skip_of
from coaching_service.core.text import apostrophe_spellings, normalize, straighten
from coaching_service.people.customers import list_store, service, store
from coaching_service.people.customers.models import (
    Customer,
    CustomerDetails,
    CustomerGroup,
    CustomerIdentity,
    CustomerProfile,
    SortFigure,
)
from coaching_service.people.customers.service import full_name


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
    selection: ListSelection = ALL_ENTRIES,
    after: str | None = None,
) -> Page[CustomerProfile]:
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
    order = selection.order(store.ORDER)
    list_part = ListPart(
        ctx, "customers", filters, order, page=page, size=size, after=after, private=store.PRIVATE_ORDER
    )
    if email is not None:
        ids = await list_store.find_ids_by_email(ctx, email.strip())
        where["_id"] = {"$in": ids if selection.ids is None else [each for each in ids if each in selection.ids]}
    if where.keys() & {"_id", "externalId"}:
        stored, total = await list_store.find_selected_page(ctx, where, list_part, contains=contains)
    else:
        stored, total = await list_store.find_page(
            ctx, where, list_part, contains=contains, words=words, unfiltered=unfiltered and selection.is_all
        )
    return list_part.present(stored, total, partial(service.to_response, ctx))


async def list_customers_by(
    ctx: Context,
    figure: SortFigure,
    *,
    descending: bool,
    archived: bool,
    page: int,
    size: int,
    groups: list[str] | None = None,
    trainers: list[ObjectId | None] | None = None,
) -> Page[CustomerProfile]:
    """Return one page of the clients in the coach's scope by a stored figure.

    Those without it are last. Clients in any of `groups`, of any of `trainers` as in `list_customers`.
    """
    where, unfiltered = build_list_filter(ctx, archived, groups, trainers)
    skip = skip_of(page, size)
    stored, total = await list_store.find_page_by(
        ctx, where, figure, descending=descending, skip=skip, limit=size, unfiltered=unfiltered
    )
    return page_document([service.to_response(ctx, customer) for customer in stored], total, page, size)


def build_list_filter(
    ctx: Context, archived: bool, groups: list[str] | None, trainers: list[ObjectId | None] | None
) -> tuple[Filter, bool]:
    """Return the filter of a list, and whether it selects all archived or all active clients of the company."""
    where: Filter = {store.ARCHIVED: archived} | service.limit_to_scope(ctx)
    if groups:
        where[store.GROUPS] = {"$in": [each for group in groups for each in apostrophe_spellings(group)]}
    allowed: set[ObjectId | None] | None = set(trainers) if trainers else None
    if ctx.caller.customers_scope == "assigned":
        allowed = {ctx.caller.id} if allowed is None else allowed & {ctx.caller.id}
    if allowed is not None:
        where[store.TRAINER] = {"$in": list(allowed)}
    return where, len(where) == 1


async def list_groups(ctx: Context) -> list[CustomerGroup]:
    """Return the groups of the clients in the coach's scope with the number of clients in each, by name."""
    return await list_store.count_groups(ctx, service.limit_to_scope(ctx))


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
        where, _ = build_list_filter(ctx, archived, None, None)
        for client in await list_store.list_sort_names(ctx, where, _COMPARED):
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
    groups = [group["name"] for group in await list_groups(ctx)]
    by_text = {_comparable(group): group for group in groups}
    known = [group for group in groups if _comparable(group) in {_comparable(name) for name in names}]
    unknown = [name for name in names if _comparable(name) not in by_text]
    nearest = [
        by_text[text]
        for name in unknown
        for text, _, _ in process.extract(_comparable(name), list(by_text), scorer=fuzz.WRatio, limit=_SUGGESTED)
    ]
    return GroupNames(known, unknown, list(dict.fromkeys(nearest))[:_SUGGESTED])


def _comparable(text: str) -> str:
    return straighten(normalize(text))


# --- Full names of clients, as they are compared and as they tell clients apart ---------------------------------------


def full_name_key(client: CustomerDetails | Customer | CustomerIdentity) -> str:
    """Return what is the same for clients with the same full name."""
    return normalize(full_name(client))


def distinct_names(clients: Sequence[CustomerIdentity]) -> dict[ObjectId, str]:
    """Return the full names; of clients with the same name, with the address or identifier that tells them apart."""
    counts = Counter(full_name_key(each) for each in clients)
    names: dict[ObjectId, str] = {}
    for each in clients:
        distinction = each["email"] or each.get("externalId") or each["_id"]
        is_unique = counts[full_name_key(each)] == 1
        names[each["_id"]] = full_name(each) if is_unique else f"{full_name(each)} ({distinction})"
    return names
