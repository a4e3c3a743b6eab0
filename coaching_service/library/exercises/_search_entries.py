"""What is searched of exercises, with the aliases that a company has added."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter, Ownership
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.text import normalize, without_apostrophes
from coaching_service.library.exercises import override_store, store
from coaching_service.library.exercises._search_index import SearchIndex, index_of
from coaching_service.library.exercises.models import SearchEntry


async def load_index(ctx: Context, condition: Filter, ownership: Ownership) -> SearchIndex:
    """Return the index of the exercises that meet a condition, with the aliases that the company has added.

    What is not cached of it is made on a thread: other requests continue meanwhile.
    """
    entries = await _load_entries(ctx, condition, ownership)
    return index_of(entries) if ctx.thread is not None else await asyncio.to_thread(index_of, entries)


async def _load_entries(ctx: Context, condition: Filter, ownership: Ownership) -> list[SearchEntry]:
    entries, own_aliases = await gather_reads(
        ctx, store.find_search_entries(ctx, condition, ownership=ownership), override_store.find_aliases(ctx)
    )
    complete = [_with_aliases(entry, own_aliases.get(entry["_id"])) for entry in entries]
    return [{**entry, "search": without_apostrophes(entry["search"])} for entry in complete]


def _with_aliases(entry: SearchEntry, added: Sequence[str] | None) -> SearchEntry:
    """Return what is searched of an exercise with the aliases that the company has added."""
    if not added:
        return entry
    lines, last = entry["search"].split("\n"), entry["names"] + entry["aliases"]
    search_text = "\n".join([*lines[:last], *map(normalize, added), *lines[last:]])
    return {**entry, "search": search_text, "aliases": entry["aliases"] + len(added), "isCommon": False}
