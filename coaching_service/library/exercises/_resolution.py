"""Finding the exercises that names mean, with scores of how much they resemble the name.

A name means the exercise that has exactly this name or alias, else the most similar one, if its score is at least 85
and nothing tells them apart: each word of the name is in the name of the exercise, except for one typing error, or is
its muscle, tag or equipment; and no part of the body and no number of it is missing. Leg curl and biceps curl resemble
each other, and so do 45 and 30 degrees, but mean other exercises.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, pairwise

from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize, without_apostrophes
from coaching_service.library.exercises._name_words import FILLERS, NameWords, is_part_of_body, one_spelling
from coaching_service.library.exercises._search import ABBREVIATIONS, search
from coaching_service.library.exercises._search_index import MIN_TYPO_LENGTH, Line, SearchIndex, Vocabulary, numbers_of

MAX_NAME_LENGTH = 80  # longer names mean only the exercise that has exactly this name
MAX_ALTERNATIVES = 3
MIN_SCORE = 85.0  # of a match
_MIN_SCORE_OF_ALTERNATIVE, _MIN_SCORE_OF_SIMILAR = 40.0, 60.0
_MAX_FOUND, _MAX_COMPARED, _MAX_SCORED = 12, 300, 12
_SAME_MOVEMENT, _OTHER_PART = 10.0, 10.0  # in points of the score
_CACHED_NAMES = 8192


@dataclass(frozen=True)
class Candidate:
    """An exercise that a name may mean; `score` from 0 to 100 states how much its name or an alias resembles it.

    `is_sure`: nothing tells them apart. `has_name`: it is the name of the exercise.
    """

    exercise_id: ObjectId
    score: float
    is_sure: bool
    has_name: bool
    is_own: bool
    name: str


@dataclass(frozen=True)
class Resolution:
    """The exercise that a name means, or None if that is not sure, and others that it may mean, the best first."""

    match: Candidate | None
    alternatives: list[Candidate]


@dataclass(frozen=True)
class _Name:
    """A name that a person has written: as typed, and with its abbreviations written out."""

    text: str
    spellings: tuple[NameWords, ...]

    @classmethod
    def of(cls, name: str) -> _Name:
        typed = NameWords.of(name)
        expanded = tuple(part for word in typed.typed for part in ABBREVIATIONS.get(word, (word,)))
        spellings = (typed,) if expanded == typed.typed else (typed, replace(typed, typed=expanded))
        return cls(" ".join((*typed.typed, *typed.measures)), spellings)


def resolve(index: SearchIndex, text: str, use_counts: Mapping[ObjectId, int]) -> Resolution:
    """Return what a name means among the exercises; `use_counts` states how often the company uses an exercise.

    Of several exercises with this name, it means the company's own, if that is one.
    """
    name = _Name.of(text)
    if not name.text:
        return Resolution(None, [])
    if len(text) > MAX_NAME_LENGTH:
        joined = Line.of(without_apostrophes(normalize(text)).replace("-", " ")).joined
        return Resolution(_choose([_compare(index, number, name) for number in index.named(joined)]), [])
    matching = [_compare(index, number, name) for number in search(index, name.text, use_counts).numbers[:_MAX_FOUND]]
    match = _choose(matching)
    alternatives = [each for each in matching[: MAX_ALTERNATIVES + 1] if each.score >= _MIN_SCORE_OF_ALTERNATIVE]
    if len(alternatives) <= MAX_ALTERNATIVES and match is None:
        known = {each.exercise_id for each in matching}
        similar = [each for each in _find_similar(index, name) if each.exercise_id not in known]
        match = None if any(each.is_sure for each in matching) else _choose(similar)
        alternatives += similar
    return Resolution(match, [each for each in alternatives if each is not match][:MAX_ALTERNATIVES])


def resolve_known(
    index: SearchIndex, text: str, use_counts: Mapping[ObjectId, int], known: Sequence[int], *, loosely: bool
) -> Resolution:
    """Return what a name means, first among the exercises of one client: `known` are their numbers in the index.

    Without an exercise of the client that is sure, the name means the only one that has all its words. But an exercise
    of the library that has exactly this name comes first; and if the name means none of the library, because several
    have its words, it stays open. `loosely`: the name is of one of the client's exercises, so several that have all its
    words are alternatives, and the library comes last.
    """
    name = _Name.of(text)
    if not name.text or len(text) > MAX_NAME_LENGTH:
        return resolve(index, text, use_counts)
    compared = {number: _compare(index, number, name) for number in known}
    match = _choose([*compared.values()])
    with_words = [candidate for number, candidate in compared.items() if _has_words_of(index, number, name)]
    near = sorted(with_words, key=lambda candidate: -candidate.score)
    if match is None and loosely and near:
        match = near[0] if len(near) == 1 else None
        return Resolution(match, [each for each in near if each is not match][:MAX_ALTERNATIVES])
    if match is not None:
        return Resolution(match, [each for each in near if each is not match][:MAX_ALTERNATIVES])
    library = resolve(index, text, use_counts)
    own = {candidate.exercise_id for candidate in near}
    others = [each for each in library.alternatives if each.exercise_id not in own]
    if library.match is None:
        numbers = {entry["_id"]: number for number, entry in enumerate(index.entries)}
        is_open = any(_has_words_of(index, numbers[each.exercise_id], name) for each in others)
    else:
        is_open = library.match.has_name
    if len(near) == 1 and not is_open:
        return Resolution(near[0], [])
    return Resolution(library.match, [*near, *others][:MAX_ALTERNATIVES])


def _has_words_of(index: SearchIndex, number: int, name: _Name) -> bool:
    """Return whether an exercise has all words and numbers of a name, at least one word of them in its name."""
    others = {one_spelling(word) for word in index.other_words(number)} | FILLERS
    for line in index.lines(number):
        written = _words_of(line.text)
        for spelling in name.spellings:
            words = set(spelling.words)
            if words & set(written.words) and words <= {*written.words, *others} and spelling.has_same_numbers(written):
                return True
    return False


def _choose(candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the candidate that a name means; None if there is none, or several with the same name."""
    matching = [each for each in candidates if each.has_name and each.is_sure]
    if not matching:
        sure = [each for each in candidates if each.is_sure]
        best = max(sure, key=lambda each: each.score, default=None)  # the first of several
        matching = [each for each in sure if best is not None and each.name == best.name]
    if len(matching) > 1:
        matching = [each for each in matching if each.is_own]
    return matching[0] if len(matching) == 1 else None


def _find_similar(index: SearchIndex, name: _Name) -> list[Candidate]:
    """Return exercises with names that resemble a name, the best first.

    The last word, such as curl or press, counts more than others, and so does a part of the body that was not named.
    """
    words = {word for spelling in name.spellings for word in (*spelling.typed, *spelling.measures)}
    numbers = [*islice(numbers_of(index.with_most(map(index.resembling, words), _MAX_SCORED)), _MAX_COMPARED)]
    if numbers:
        lines = {(number, at): line.sorted for number in numbers for at, line in enumerate(index.lines(number))}
        targets = {" ".join(sorted(spelling.all_words)) for spelling in name.spellings}
        near = [
            each for target in targets for each in process.extract(target, lines, scorer=fuzz.ratio, limit=_MAX_SCORED)
        ]
        scored = {number for _, _, (number, _) in near}
    else:  # perhaps a typing error in words that are written as one
        joined = process.extract(
            "".join(name.spellings[0].typed),
            index.joined_names,
            scorer=fuzz.ratio,
            score_cutoff=_MIN_SCORE_OF_SIMILAR,
            limit=_MAX_SCORED,
        )
        scored = {number for each, _, _ in joined for number in index.named(each)}
    candidates = [_compare(index, number, name) for number in scored]
    similar = [each for each in candidates if each.score >= _MIN_SCORE_OF_SIMILAR]
    parts = {part for spelling in name.spellings for part in spelling.parts}
    last_words = {spelling.words[-1] for spelling in name.spellings if spelling.words}

    def rank(candidate: Candidate) -> tuple[float, str]:
        written = _words_of(candidate.name)
        bonus = 0 if last_words.isdisjoint(written.words) else _SAME_MOVEMENT
        return (_OTHER_PART if written.parts - parts else 0) - bonus - candidate.score, candidate.name

    return sorted(similar, key=rank)


def _compare(index: SearchIndex, number: int, name: _Name) -> Candidate:
    """Compare an exercise with a name: the best of its names and aliases counts.

    Words that are not in it, but are a muscle, a tag or the equipment of the exercise, are left out of the comparison:
    leg press machine means the leg press.
    """
    entry, lines = index.entries[number], index.lines(number)
    others = {one_spelling(word) for word in index.other_words(number)}
    results = []
    for at, line in enumerate(lines):
        written = _words_of(line.text)
        for spelling in name.spellings:
            compared = [word for word in spelling.all_words if word in written.all_words or word not in others]
            score = _similarity(compared, written.all_words)
            is_sure = (
                score >= MIN_SCORE
                and spelling.has_same_numbers(written)
                and _has_same_words(spelling.words, written.words, others, index.vocabulary)
            )
            has_name = at == 0 and spelling.words == written.words
            results.append((is_sure, has_name, score))
    is_sure, has_name, score = max(results)
    return Candidate(entry["_id"], score, is_sure, has_name, entry["isOwn"], lines[0].text)


_words_of = lru_cache(_CACHED_NAMES)(NameWords.of)


def _similarity(words: Sequence[str], name: Sequence[str]) -> float:
    """Return how much two names resemble each other, from 0 to 100, in any order and spacing of their words."""
    spaced = sorted(_join_like(words, name)), sorted(_join_like(name, words))
    sorted_ratio = fuzz.ratio(" ".join(spaced[0]), " ".join(spaced[1]))
    return round(max(sorted_ratio, fuzz.ratio("".join(words), "".join(name))), 1)


def _join_like(words: Sequence[str], other: Collection[str]) -> list[str]:
    """Return the words, with successive ones as one word where the other name writes them so (skull crusher)."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] + word in other:
            joined[-1] += word
        else:
            joined.append(word)
    return joined


def _has_same_words(words: Sequence[str], name: Sequence[str], others: Collection[str], vocabulary: Vocabulary) -> bool:
    """Return whether the words of a name are in an exercise's name, or its `others`, with typing errors.

    The name of the exercise may have more words, but none that is a part of the body.
    """
    missing, added = Counter(name), Counter(words)
    missing.subtract(words)
    added.subtract(name)
    _remove_joined(missing, added, name)
    _remove_joined(added, missing, words)
    for word in [*(+added).elements()]:
        if word in FILLERS or word in others:
            continue
        same = next((each for each in +missing if _is_typo(word, each, vocabulary)), None)
        if same is None:
            return False
        missing[same] -= 1
    return not any(is_part_of_body(word) for word in +missing)


def _remove_joined(separate: Counter[str], joined: Counter[str], words: Sequence[str]) -> None:
    """Remove successive words that the other name writes as one (push up and pushup)."""
    for first, second in pairwise(words):
        if joined[first + second] > 0 and separate[first] > 0 and separate[second] > 0:
            joined[first + second] -= 1
            separate.subtract((first, second))


def _is_typo(word: str, other: str, vocabulary: Vocabulary) -> bool:
    """Return whether a word that is in no exercise is another one with one typing error."""
    if is_part_of_body(word) or word in vocabulary:
        return False
    spellings = (word, f"{word}s")  # as typed, perhaps: its ending was taken for a plural
    return any(len(each) >= MIN_TYPO_LENGTH and OSA.distance(each, other, score_cutoff=1) <= 1 for each in spellings)
