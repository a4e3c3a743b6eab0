"""Exercises that are suggested while a name is typed, the most planned first."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.text import normalize, without_apostrophes
from coaching_service.library.exercises import _search_entries, store
from coaching_service.library.exercises._search import search
from coaching_service.library.exercises.listing import list_exercises, present_all
from coaching_service.library.exercises.models import Exercise
from coaching_service.library.exercises.use_counts import load_use_counts


async def suggest_exercises(ctx: Context, keywords: str, size: int) -> list[Exercise]:
    """Return at most `size` exercises that match `keywords` as in a list, or of all exercises if there are none.

    An exercise of exactly this name is first, then those that the company plans most often, then the others in the
    order of a list.
    """
    keywords = keywords.strip()
    return await _suggest_matches(ctx, keywords, size) if keywords else await _suggest_used(ctx, size)


async def _suggest_matches(ctx: Context, keywords: str, size: int) -> list[Exercise]:
    index, use_counts = await gather_reads(ctx, _search_entries.load_index(ctx, {}, "all"), load_use_counts(ctx))
    name = without_apostrophes(normalize(keywords))
    exact = {entry["_id"] for entry in index.entries if entry["search"].partition("\n")[0] == name}
    ids = search(index, keywords, use_counts).ids
    ids = sorted(ids, key=lambda each: (each not in exact, -use_counts.get(each, 0)))
    return await present_all(ctx, await store.find_by_ids(ctx, ids[:size]))


async def _suggest_used(ctx: Context, size: int) -> list[Exercise]:
    use_counts, by_name = await gather_reads(ctx, load_use_counts(ctx), list_exercises(ctx, page=1, size=size))
    ids = sorted(use_counts, key=lambda each: (-use_counts[each], each))
    # Some of the exercises that were used may have been deleted since.
    used = await present_all(ctx, (await store.find_by_ids(ctx, ids[: 2 * size]))[:size])
    known = {exercise["_id"] for exercise in used}
    return [*used, *(exercise for exercise in by_name["docs"] if exercise["_id"] not in known)][:size]
