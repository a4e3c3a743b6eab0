"""Which exercises of a company names mean; resolution.py compares the names."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.text import normalize
from coaching_service.library.exercises import search_entries, service, store
from coaching_service.library.exercises.models import (
    ExerciseMatch,
    ResolvedName,
)
from coaching_service.library.exercises.resolution import Candidate, resolve
from coaching_service.library.exercises.search import without_apostrophes
from coaching_service.library.exercises.use_counts import load_use_counts

_MIN_SURE_SCORE = 85.0  # of a match that is taken without asking


async def resolve_names(ctx: Context, names: Sequence[str]) -> list[ResolvedName]:
    """Return what names of exercises mean, in the same order."""
    entries, use_counts = await gather_reads(
        ctx, search_entries.load_search_entries(ctx, {}, "all"), load_use_counts(ctx)
    )
    # Up to a second for 50 unknown names: in a thread, other requests continue meanwhile.
    resolutions = await asyncio.to_thread(lambda: [resolve(entries, name, use_counts) for name in names])
    candidates = [each for resolution in resolutions for each in (resolution.match, *resolution.alternatives) if each]
    names_by_id = await service.load_names(ctx, [candidate.exercise_id for candidate in candidates])

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


async def choose_matches(ctx: Context, resolved: Sequence[ResolvedName]) -> list[ExerciseMatch | None]:
    """Return the one exercise that each resolved name means, in the same order; None if there is none or several.

    It has exactly this name, or resembles it most and with a score of at least 85; of exercises with the same name it
    is the company's own.
    """
    candidates = [_best_candidates(each) for each in resolved]
    several = [match["_id"] for matches in candidates if len(matches) > 1 for match in matches]
    own = await store.find_own_ids(ctx, several) if several else set()

    def choose(matches: Sequence[ExerciseMatch]) -> ExerciseMatch | None:
        chosen = matches if len(matches) == 1 else [match for match in matches if match["_id"] in own]
        return chosen[0] if len(chosen) == 1 else None

    return [choose(matches) for matches in candidates]


def _best_candidates(resolved: ResolvedName) -> list[ExerciseMatch]:
    """Return the exercises that have exactly this name, else those that resemble it most and have the same name."""
    candidates = [each for each in (resolved["match"], *resolved["alternatives"]) if each is not None]
    if exact := [each for each in candidates if normalize(each["name"]) == normalize(resolved["name"])]:
        return exact
    best = max((each["score"] for each in candidates), default=0.0)
    if resolved["match"] is None or best < _MIN_SURE_SCORE:
        return []
    # The match comes first: the search ranks it before others of the same score.
    first = next(each for each in candidates if each["score"] == best)
    return [each for each in candidates if normalize(each["name"]) == normalize(first["name"])]


async def list_deleted_names(ctx: Context, name: str) -> list[str]:
    """Return the names of the company's own exercises that were deleted and have all words of `name`."""
    words = set(normalize(without_apostrophes(name)).split())
    names = await store.find_deleted_names(ctx)
    return [each for each in names if words <= set(normalize(without_apostrophes(each)).split())]
