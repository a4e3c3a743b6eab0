"""Which exercises of a company names mean; resolution.py compares the names."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import Unprepared, gather_reads
from coaching_service.core.text import normalize, without_apostrophes
from coaching_service.library.exercises import _search_entries, service, store
from coaching_service.library.exercises._resolution import Candidate, Resolution, resolve
from coaching_service.library.exercises.name_models import ExerciseMatch, ResolvedExerciseName
from coaching_service.library.exercises.use_counts import load_use_counts


async def resolve_names(ctx: Context, names: Sequence[str]) -> list[ResolvedExerciseName]:
    """Return what names of exercises mean, in the same order.

    A transaction ends, and is repeated when they are resolved (see Unprepared): it holds nothing meanwhile.
    """
    if not names:
        return []
    if ctx.session is None:
        return await _resolve(ctx, names)
    if missing := [name for name in names if name not in ctx.resolved_names]:
        raise Unprepared(lambda outside: _prepare(outside, missing))
    return [cast("ResolvedExerciseName", ctx.resolved_names[name]) for name in names]


async def _prepare(ctx: Context, names: Sequence[str]) -> None:
    ctx.resolved_names.update(zip(names, await _resolve(ctx, names), strict=True))


async def _resolve(ctx: Context, names: Sequence[str]) -> list[ResolvedExerciseName]:
    index, use_counts = await gather_reads(ctx, _search_entries.load_index(ctx, {}, "all"), load_use_counts(ctx))

    def resolve_each() -> list[Resolution]:
        return [resolve(index, name, use_counts) for name in names]

    # A millisecond for each name: in a thread, other requests continue meanwhile.
    resolutions = resolve_each() if ctx.thread is not None else await asyncio.to_thread(resolve_each)
    candidates = [each for resolution in resolutions for each in (resolution.match, *resolution.alternatives) if each]
    names_by_id = await service.get_names(ctx, [candidate.exercise_id for candidate in candidates])

    def describe(candidate: Candidate) -> ExerciseMatch:
        exercise = names_by_id[candidate.exercise_id]
        return {"_id": exercise["_id"], "name": exercise["name"], "score": candidate.score}

    return [
        {
            "name": name,
            "match": describe(resolution.match) if resolution.match else None,
            "alternatives": [describe(candidate) for candidate in resolution.alternatives],
        }
        for name, resolution in zip(names, resolutions, strict=True)
    ]


async def find_deleted_names(ctx: Context, names: Sequence[str]) -> dict[str, list[str]]:
    """Return, for each of `names`, the company's own exercises that were deleted and have all its words."""
    deleted = {name: _words_of(name) for name in await store.find_deleted_names(ctx)} if names else {}
    return {name: [each for each, words in deleted.items() if _words_of(name) <= words] for name in names}


def _words_of(name: str) -> set[str]:
    return set(normalize(without_apostrophes(name)).split())
