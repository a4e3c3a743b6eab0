"""Searching clients by part of a name, surname or e-mail, at a cost that depends on the matches, not on all clients."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypedDict

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Documents, Filter
from coaching_service.core.list_parts import ListPart
from coaching_service.core.text import SUFFIX_LENGTH, apostrophe_pattern, longest_part, normalize, suffixes
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


class Match(NamedTuple):
    """How clients are found: by the suffix index, or in a scan of clients."""

    indexed: Filter
    scanned: Filter


def match_text(term: str) -> Match | None:
    """Return how clients are found who contain `term` literally, with any kind of apostrophe; None if none can."""
    normalized = normalize(term)
    if "\0" in normalized:
        return None
    scanned = {"search": {"$regex": apostrophe_pattern(normalized)}}
    part = longest_part(normalized)
    indexed = _by_suffix(part)
    return Match(indexed if part == normalized and len(part) <= SUFFIX_LENGTH else indexed | scanned, scanned)


def substring_filter(term: str) -> Filter | None:
    """Return the filter for clients who contain `term` literally, for a scan of all clients; None if none can."""
    match = match_text(term)
    return match.scanned if match is not None else None


def match_words(text: str) -> Match | None:
    """Return how clients are found who contain every word of `text`, with any kind of apostrophe; None if none can."""
    words = normalize(text).split()
    if not words or "\0" in text:
        return None
    scanned: Filter = {"$and": [{"search": {"$regex": apostrophe_pattern(word)}} for word in words]}
    return Match(_by_suffix(max(map(longest_part, words), key=len)) | scanned, scanned)


def _by_suffix(normalized: str) -> Filter:
    return {"suf": {"$regex": "^" + re.escape(normalized[:SUFFIX_LENGTH])}}


async def search_page(
    ctx: Context,
    customers: Documents[Customer],
    where: Filter,
    match: Match | None,
    *,
    listed: Filter,
    count_listed: Callable[[], Awaitable[int]],
    list_part: ListPart,
    by_suffix: str,
    by_order: str,
) -> tuple[list[Customer], int]:
    """Return the clients of `where` that `match` for one part of the list, and how many there are in total.

    Each query examines at most 1,001 keys and four times the number of matches: few matches are fetched by suffix and
    sorted; many are first searched for in the order of the complete list (`listed`), among at most twice their number,
    if so many of all that it has (`count_listed`) are likely to contain enough.
    """
    if match is None:
        return [], 0
    matching = where | match.indexed
    total = await customers.count(ctx, matching, hint=by_suffix)
    wanted = min(list_part.limit, max(0, total - list_part.skip))
    if wanted == 0:
        return [], total
    if total > FEW_MATCHES and (list_part.skip + list_part.limit) * await count_listed() <= total * total:
        stages: list[Document] = [
            {"$sort": dict.fromkeys(list_part.sort, 1)},
            {"$limit": 2 * total},
            {"$match": where | match.scanned},
            {"$skip": list_part.skip},
            {"$limit": list_part.limit},
            {"$project": customers.projection(None, list_part.private)},
        ]
        docs: list[Customer] = await customers.aggregate(ctx, list_part.within(listed), *stages, hint=by_order)
        if len(docs) == wanted:
            return docs, total
    clients = await customers.find(
        ctx,
        list_part.within(matching),
        sort=list_part.sort,
        skip=list_part.skip,
        limit=list_part.limit,
        including=list_part.private,
        hint=by_suffix,
    )
    return clients, total
