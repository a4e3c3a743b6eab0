"""Which exercises of a company names mean; _resolution.py compares the names."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from coaching_service.core.database.context import Context, Unprepared, gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize, without_apostrophes
from coaching_service.library.exercises import _search_index, service, store
from coaching_service.library.exercises._resolution import EXACT_SCORE, Candidate, Resolution, resolve
from coaching_service.library.exercises.name_models import ExerciseMatch, ResolvedExerciseName
from coaching_service.library.exercises.use_counts import load_use_counts


@dataclass(frozen=True)
class KnownExercises:
    """The exercises of a client or workout, which `load` returns: names mean these first (see `resolve_known`)."""

    owner_id: ObjectId
    load: Callable[[Context], Awaitable[Collection[ObjectId]]]
    loosely: bool

    def key(self, name: str) -> str:
        """Return what the meaning of a name is remembered by."""
        return f"{self.owner_id} {self.loosely} {name}"


async def resolve_names(
    ctx: Context, names: Sequence[str], known: KnownExercises | None = None
) -> list[ResolvedExerciseName]:
    """Return what names of exercises mean, in the same order, first among `known` exercises.

    A transaction ends, and is repeated when they are resolved (see Unprepared): it holds nothing meanwhile.
    """
    if not names:
        return []
    if ctx.session is None:
        return await _resolve(ctx, names, known)
    keys = [name if known is None else known.key(name) for name in names]
    if missing := {key: name for key, name in zip(keys, names, strict=True) if key not in ctx.resolved}:
        raise Unprepared(lambda outside: _prepare(outside, missing, known))
    return [cast("ResolvedExerciseName", ctx.resolved[key]) for key in keys]


def is_exact(about: ResolvedExerciseName) -> bool:
    """Return whether a name is the name or an alias of the exercise that it means."""
    return about["match"] is not None and about["match"]["score"] == EXACT_SCORE


async def _prepare(ctx: Context, names: Mapping[str, str], known: KnownExercises | None) -> None:
    ctx.resolved.update(zip(names, await _resolve(ctx, [*names.values()], known), strict=True))


async def _resolve(ctx: Context, names: Sequence[str], known: KnownExercises | None) -> list[ResolvedExerciseName]:
    index, use_counts = await gather_reads(ctx, _search_index.load_index(ctx, {}, "all"), load_use_counts(ctx))
    known_ids = frozenset(await known.load(ctx)) if known is not None else frozenset()

    def resolve_each() -> list[Resolution]:
        numbers = [number for number, entry in enumerate(index.entries) if entry["_id"] in known_ids]
        loosely = known is not None and known.loosely
        return [resolve(index, name, use_counts, numbers, loosely=loosely) for name in names]

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
