"""Searching clients by part of a name, surname or e-mail, at a cost that depends on the matches, not on all clients."""

from __future__ import annotations

from typing import TypedDict

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Documents, Filter
from coaching_service.core.text import SUFFIX_LENGTH, escape_regex, normalize, suffixes
from coaching_service.core.walking import Walk
from coaching_service.people.customers.models import Customer

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
    full_name, normalized_email = normalize(f"{name} {surname or ''}"), normalize(email or "")
    return {
        "sortName": normalize(name),
        "sortSurname": normalize(surname or ""),
        "search": f"{full_name}\n{normalized_email}",
        "suf": suffixes(full_name, normalized_email),
    }


def suffix_filter(term: str) -> Filter | None:
    """Return the filter for clients who contain `term` literally, served by the suffix index; None if none can."""
    normalized = normalize(term)
    if "\0" in normalized:
        return None
    condition: Filter = {"suf": {"$regex": "^" + escape_regex(normalized[:SUFFIX_LENGTH])}}
    if len(normalized) > SUFFIX_LENGTH:
        condition["search"] = {"$regex": escape_regex(normalized)}
    return condition


def substring_filter(term: str) -> Filter | None:
    """Return the filter for clients who contain `term` literally, for a scan of all clients; None if none can."""
    normalized = normalize(term)
    return None if "\0" in normalized else {"search": {"$regex": escape_regex(normalized)}}


async def search_page(
    ctx: Context,
    customers: Documents[Customer],
    where: Filter,
    term: str,
    *,
    listed: Filter,
    walk: Walk,
    by_suffix: str,
    by_order: str,
) -> tuple[list[Customer], int]:
    """Return the clients of `where` that contain `term` for one part of the list, and how many there are in total.

    Each query examines at most 1,001 keys and four times the number of matches: few matches are fetched by suffix and
    sorted; many are first searched for in the order of the complete list (`listed`), among at most twice their number.
    """
    if (matches := suffix_filter(term)) is None:
        return [], 0
    matching = where | matches
    total = await customers.count(ctx, matching, hint=by_suffix)
    wanted = min(walk.limit, max(0, total - walk.skip))
    if wanted == 0:
        return [], total
    if total > FEW_MATCHES:
        stages: list[Document] = [
            {"$sort": dict.fromkeys(walk.sort, 1)},
            {"$limit": 2 * total},
            {"$match": where | {"search": {"$regex": escape_regex(normalize(term))}}},
            {"$skip": walk.skip},
            {"$limit": walk.limit},
            {"$project": customers.projection(None, walk.private)},
        ]
        docs: list[Customer] = await customers.aggregate(ctx, walk.within(listed), *stages, hint=by_order)
        if len(docs) == wanted:
            return docs, total
    clients = await customers.find(
        ctx,
        walk.within(matching),
        sort=walk.sort,
        skip=walk.skip,
        limit=walk.limit,
        including=walk.private,
        hint=by_suffix,
    )
    return clients, total
