"""Finding the exercises that names mean: in the order of the search, with scores of how much they resemble the name.

A name means the first exercise that the search finds if its score is at least 75. If not all words of the name occur in
any exercise, it means the most similar one only with a score of at least 90: exercises that differ in one word, such as
leg curl and leg extension, resemble each other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz

from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.library.exercises.models import SearchEntry
from coaching_service.library.exercises.search import ABBREVIATIONS, search, split_words, without_apostrophes

MAX_ALTERNATIVES = 3
_MIN_SCORE, _MIN_SCORE_WITHOUT_SEARCH = 75.0, 90.0  # of a match
_MIN_SCORE_OF_ALTERNATIVE, _MIN_SCORE_OF_SIMILAR = 40.0, 60.0
_PUNCTUATION = re.compile(r"[^\w\s-]|_")


@dataclass(frozen=True)
class Candidate:
    """An exercise that a name may mean; `score` from 0 to 100 states how much its name or an alias resembles it."""

    exercise_id: ObjectId
    score: float


@dataclass(frozen=True)
class Resolution:
    """The exercise that a name means, or None if that is not sure, and others that it may mean, the best first."""

    match: Candidate | None
    alternatives: list[Candidate]


def resolve(entries: Sequence[SearchEntry], name: str, use_counts: Mapping[ObjectId, int]) -> Resolution:
    """Return what `name` means among the exercises; `use_counts` states how often the company uses an exercise."""
    text = _PUNCTUATION.sub(" ", without_apostrophes(name))
    readings = _readings(text)
    found_ids = search(entries, text, use_counts).ids[: MAX_ALTERNATIVES + 1] if readings else []
    if found_ids:
        by_id = {entry["_id"]: entry for entry in entries}
        candidates = [_score(by_id[exercise_id], readings) for exercise_id in found_ids]
        return _resolution(candidates, _MIN_SCORE)
    scored = [_score(entry, readings) for entry in entries] if readings else []
    similar = [candidate for candidate in scored if candidate.score >= _MIN_SCORE_OF_SIMILAR]
    return _resolution(sorted(similar, key=lambda candidate: -candidate.score), _MIN_SCORE_WITHOUT_SEARCH)


def _resolution(candidates: Sequence[Candidate], min_score: float) -> Resolution:
    match = candidates[0] if candidates and candidates[0].score >= min_score else None
    others = [each for each in candidates if each is not match and each.score >= _MIN_SCORE_OF_ALTERNATIVE]
    return Resolution(match, others[:MAX_ALTERNATIVES])


def _readings(text: str) -> list[list[str]]:
    """Return the words of a name as it was typed, and with its abbreviations written out; none without words."""
    words = split_words(normalize(text))
    expanded = [part for word in words for part in ABBREVIATIONS.get(word, (word,))]
    return [each for each in ([words] if expanded == words else [words, expanded]) if each]


def _score(entry: SearchEntry, readings: Sequence[Sequence[str]]) -> Candidate:
    """Return an exercise with the highest score of its name and aliases.

    Words that are not in a name, but are a muscle, a tag or the equipment of the exercise, are left out of the
    comparison: leg press machine means the leg press.
    """
    lines = [split_words(_PUNCTUATION.sub(" ", line)) for line in entry["search"].split("\n")]
    count = entry["names"] + entry["aliases"]
    names, others = lines[:count], {word for line in lines[count:] for word in line}
    scores = []
    for reading in readings:
        for name in names:
            compared = [word for word in reading if word in name or word not in others]
            scores.append(_similarity(compared, name))
    return Candidate(entry["_id"], max(scores))


def _similarity(words: Sequence[str], name: Sequence[str]) -> float:
    """Return how much two names resemble each other, from 0 to 100, in any order and spacing of their words."""
    sorted_ratio = fuzz.ratio(" ".join(sorted(words)), " ".join(sorted(name)))
    return round(max(sorted_ratio, fuzz.ratio("".join(words), "".join(name))), 1)
