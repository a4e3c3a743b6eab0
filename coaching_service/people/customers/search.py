"""Finding clients by part of a name, surname or e-mail at a cost that follows the hits, not the company's size."""

from __future__ import annotations

from typing import Any

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Documents, Filter
from coaching_service.core.text import SUFFIX_LENGTH, escape_regex, normalize, suffixes

# So many hits are sorted in memory without a thought; beyond, a walk in list order is tried first.
FEW_HITS = 1_000


def search_fields(name: str, surname: str | None, email: str | None) -> Document:
    """The private fields a client is sorted and found by."""
    full_name, address = normalize(f"{name} {surname or ''}"), normalize(email or "")
    return {
        "sortName": normalize(name),
        "sortSurname": normalize(surname or ""),
        "search": f"{full_name}\n{address}",
        "suf": suffixes(full_name, address),
    }


def containing(term: str) -> Filter | None:
    """The condition of holding `term` literally, served by the index of suffixes; None when nothing can hold it."""
    sought = normalize(term)
    if "\0" in sought:
        return None
    condition: dict[str, Any] = {"suf": {"$regex": "^" + escape_regex(sought[:SUFFIX_LENGTH])}}
    if len(sought) > SUFFIX_LENGTH:
        condition["search"] = {"$regex": escape_regex(sought)}
    return condition


def holding_somewhere(term: str) -> Filter | None:
    """The condition of holding `term`, for a walk over all clients; None when nothing can hold it."""
    sought = normalize(term)
    return None if "\0" in sought else {"search": {"$regex": escape_regex(sought)}}


async def found_page(
    ctx: Context,
    customers: Documents[Any],
    where: Filter,
    term: str,
    *,
    listed: Filter,
    order: tuple[str, ...],
    by_suffix: str,
    by_order: str,
    skip: int,
    limit: int,
) -> tuple[list[Document], int]:
    """One page of the clients of `where` that hold `term`, and how many there are.

    Every query examines at most 1,001 keys and four times the clients who hold the term: few hits are fetched by suffix
    and sorted; many are first sought along the order of the whole list (`listed`), no further than twice their number.
    """
    if (hit := containing(term)) is None:
        return [], 0
    sought = where | hit
    total = await customers.count(ctx, sought, hint=by_suffix)
    wanted = min(limit, max(0, total - skip))
    if wanted == 0:
        return [], total
    if total > FEW_HITS:
        walk: list[Document] = [
            {"$sort": dict.fromkeys(order, 1)},
            {"$limit": 2 * total},
            {"$match": where | {"search": {"$regex": escape_regex(normalize(term))}}},
            {"$skip": skip},
            {"$limit": limit},
            {"$project": customers.projection(None)},
        ]
        docs = await customers.aggregate(ctx, listed, *walk, hint=by_order)
        if len(docs) == wanted:
            return docs, total
    return await customers.find(ctx, sought, sort=order, skip=skip, limit=limit, hint=by_suffix), total
