"""Finding the exercises that names mean.

A name means, in this order: the exercise that has exactly this name, in any order of its words; the one that has it as
an alias, unless one on the client's calendar has all its words; the only one there that has them; and the only one of
the library, where one that differs only by typing errors and its equipment comes first. Where several do, it means
none. One word of a name, or some of an alias, mean only what is on the calendar. Words of muscles and tags name no
exercise. Leg curl and biceps curl resemble each other, and so do 45 and 30 degrees, but mean other exercises: numbers
and units have to be the same, and no part of the body may be missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache, reduce
from itertools import islice, pairwise
from operator import and_, or_

from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize, without_apostrophes
from coaching_service.library.exercises import _name_words, _search_index

MAX_NAME_LENGTH = 80  # longer names mean only the exercise that has exactly this name
MAX_ALTERNATIVES = 3
_MIN_SCORE_OF_ALTERNATIVE, _MIN_SCORE_OF_SIMILAR = 40.0, 60.0
_MAX_FOUND, _MAX_COMPARED, _MAX_SCORED = 12, 300, 12
_SAME_MOVEMENT, _OTHER_PART = 10.0, 10.0  # in points of the score
EXACT_SCORE, _MAX_OTHER_SCORE = 100.0, 99.9
_CACHED_NAMES = 8192


class Fit(IntEnum):
    """How the words of a name are those of an exercise, the best first.

    `TYPED`: exactly. `SAME`: in another order, or but for small words such as "with". `NEAR`: but for typing errors and
    the equipment of the exercise. `WORDS`: the exercise has more. `UNSURE`: among these is a part of the body, or there
    are typing errors too. `OTHER`: the exercise does not have all words of the name.
    """

    TYPED, SAME, NEAR, WORDS, UNSURE, OTHER = range(6)


@dataclass(frozen=True)
class Candidate:
    """An exercise that a name may mean; `score` from 0 to 100 states how much its name or an alias resembles it.

    `name_fit` is of its name (in each language), `fit` of the best of its name and aliases.
    """

    exercise_id: ObjectId
    score: float
    fit: Fit
    name_fit: Fit
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
    spellings: tuple[_name_words.NameWords, ...]

    @classmethod
    def of(cls, name: str) -> _Name:
        typed = _name_words.NameWords.of(name)
        expanded = tuple(_search_index.expand(typed.raw))
        spellings = (typed,) if expanded == typed.typed else (typed, replace(typed, typed=expanded))
        return cls(" ".join((*typed.typed, *typed.measures)), spellings)


def resolve(
    index: _search_index.SearchIndex,
    text: str,
    use_counts: Mapping[ObjectId, int],
    known: Collection[int] = (),
    *,
    loosely: bool = False,
) -> Resolution:
    """Return what a name means among the exercises; `use_counts` states how often the company uses an exercise.

    `known` are the numbers in the index of the exercises on the client's calendar. `loosely`: the name is of one of
    these, so they come before the rest of the library. Of several exercises with one name, it means the company's own.
    """
    name = _Name.of(text)
    if not name.text:
        return Resolution(None, [])
    if len(text) > MAX_NAME_LENGTH:
        joined = _search_index.Line.of(without_apostrophes(normalize(text)).replace("-", " ")).joined
        exact = _compare_all(index, index.named(joined), name)
        return Resolution(_choose([each for each in exact if each.fit <= Fit.SAME]), [])
    found = _search_index.search(index, name.text, use_counts).numbers[:_MAX_FOUND]
    numbers = dict.fromkeys([*found, *islice(_find_with_words(index, name), _MAX_COMPARED), *known])
    compared = [each for each in _compare_all(index, numbers, name) if each.fit < Fit.OTHER]
    known_ids = {index.entries[number]["_id"] for number in known}
    planned = [each for each in compared if each.exercise_id in known_ids]
    match, candidates = _decide(compared, planned, is_one_word=len(name.spellings[-1].typed) == 1, loosely=loosely)
    ranked = [*candidates]
    if len(ranked) <= MAX_ALTERNATIVES and match is None:
        ranked += _find_similar(index, name)
    listed = dict.fromkeys(
        each.exercise_id for each in ranked if match is None or each.exercise_id != match.exercise_id
    )
    by_id = {each.exercise_id: each for each in ranked if each.score >= _MIN_SCORE_OF_ALTERNATIVE}
    return Resolution(match, [by_id[each] for each in listed if each in by_id][:MAX_ALTERNATIVES])


def _decide(
    compared: Sequence[Candidate], planned: Sequence[Candidate], *, is_one_word: bool, loosely: bool
) -> tuple[Candidate | None, Sequence[Candidate]]:
    """Return the exercise that a name means, if any, and those that it may mean."""
    if loosely and planned:
        usable = [each for each in planned if each.fit <= Fit.SAME] or planned
        return _choose(_alike(usable)), planned
    if named := [each for each in compared if each.name_fit <= Fit.SAME]:
        return _choose(named), compared
    planned = [each for each in planned if each.fit <= Fit.WORDS]
    if named := [each for each in compared if each.fit <= Fit.SAME]:
        meant = planned
        if any(each.name_fit == Fit.NEAR for each in named):
            # Deadlift is the Barbell Deadlift without its equipment: a Romanian Deadlift is another movement.
            meant = [each for each in planned if each.is_own or each.fit <= Fit.NEAR]
        # Without one of these, two on the calendar are a question: Curl, of a client with two other curls.
        named = [each for each in named if each in planned] or meant or (named if len(planned) < 2 else [])
        return _choose(named), [*(named or planned), *compared]
    usable = planned or [each for each in compared if each.fit <= Fit.WORDS]
    if is_one_word:  # several have it and only differ in more than their equipment: press, curl
        usable = _alike(usable)
    match = _choose(usable)
    # Beyond the calendar, a part of an alias means nothing, nor does one word that is only a part of a name.
    if match is not None and not planned and match.fit > Fit.NEAR:
        match = match if match.name_fit <= (Fit.NEAR if is_one_word else Fit.UNSURE) else None
    return match, [*planned, *compared]


def _alike(candidates: Iterable[Candidate]) -> list[Candidate]:
    return [each if each.fit <= Fit.SAME else replace(each, fit=Fit.WORDS) for each in candidates]


def _choose(candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the only candidate that fits best, or the own one of several with one name; None for several."""
    best = min((each.fit for each in candidates), default=None)
    fitting = [each for each in candidates if each.fit == best]
    if len(fitting) > 1 and len({each.name for each in fitting if each.is_own} | {fitting[0].name}) == 1:
        fitting = [each for each in fitting if each.is_own]
    return fitting[0] if len(fitting) == 1 else None


def _find_with_words(index: _search_index.SearchIndex, name: _Name) -> Iterable[int]:
    """Return the numbers of the exercises that may have all words of a name."""

    def find(word: str) -> int:
        words = {*_name_words.spellings_of(word)} | (
            {*index.vocabulary.with_one_typo(word)} if not word.isdigit() else set()
        )
        return reduce(or_, map(index.containing, words), 0)

    matching = 0
    for spelling in name.spellings:
        words = [word for word in spelling.typed if word not in _name_words.FILLERS] or spelling.typed
        matching |= reduce(and_, map(find, (*words, *spelling.numbers)), index.all)
    return _search_index.numbers_of(matching)


def _find_similar(index: _search_index.SearchIndex, name: _Name) -> list[Candidate]:
    """Return exercises with names that resemble a name, the best first.

    The last word, such as curl or press, counts more than others, and so does a part of the body that was not named.
    """
    words = {word for spelling in name.spellings for word in (*spelling.typed, *spelling.measures)}
    numbers = [
        *islice(_search_index.numbers_of(index.with_most(map(index.resembling, words), _MAX_SCORED)), _MAX_COMPARED)
    ]
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


def _compare_all(index: _search_index.SearchIndex, numbers: Iterable[int], name: _Name) -> list[Candidate]:
    return [_compare(index, number, name) for number in numbers]


def _compare(index: _search_index.SearchIndex, number: int, name: _Name) -> Candidate:
    """Compare an exercise with a name: the best of its names and aliases counts."""
    entry, lines = index.entries[number], index.lines(number)
    equipment = {_name_words.one_spelling(word) for word in index.other_words(number)} & _name_words.EQUIPMENT
    fits, score = [], 0.0
    for line in lines:
        written = _words_of(line.text)
        fits.append(min(_fit(each, written, equipment, index.vocabulary) for each in name.spellings))
        for spelling in name.spellings:
            words = [word for word in spelling.all_words if word in written.all_words or word not in equipment]
            score = max(score, _similarity(words, written.all_words))
    fit = min(fits)
    score = EXACT_SCORE if fit <= Fit.SAME else min(score, _MAX_OTHER_SCORE)
    return Candidate(entry["_id"], score, fit, min(fits[: entry["names"]]), entry["isOwn"], lines[0].text)


def _fit(
    name: _name_words.NameWords,
    written: _name_words.NameWords,
    equipment: Collection[str],
    vocabulary: _search_index.Vocabulary,
) -> Fit:
    """Return how a name fits a name or alias of an exercise; hyphens and spaces within words are left out."""
    if not name.has_same_numbers(written):
        return Fit.OTHER
    missing, added = Counter(written.words), Counter(name.words)
    missing.subtract(name.words)
    added.subtract(written.words)
    _remove_joined(missing, added, written.words)
    _remove_joined(added, missing, name.words)
    if name.typed != written.typed and name.words and all(map(_name_words.is_part_of_body, name.words)):
        return Fit.UNSURE if {*name.words} <= {*written.words} else Fit.OTHER  # biceps is no biceps curl
    if name.words == written.words:
        return Fit.TYPED
    unlike = [word for word in (+added).elements() if word not in _name_words.FILLERS]
    typos = {word: same for word in unlike for same in +missing if _is_typo(word, same, vocabulary)}
    missing.subtract(typos.values())
    if any(word not in typos and word not in equipment for word in unlike):
        return Fit.OTHER
    if len(name.words) - (+added).total() + len(typos) <= 0:
        return Fit.OTHER
    extra = {
        word for word in +missing if word not in _name_words.FILLERS or len(word) == 1
    }  # the A-Skip is no other skip
    if any(map(_name_words.is_part_of_body, extra)) or (extra and typos):
        return Fit.UNSURE
    if extra - set(equipment):
        return Fit.WORDS
    return Fit.NEAR if extra or unlike else Fit.SAME


_words_of = lru_cache(_CACHED_NAMES)(_name_words.NameWords.of)


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


def _remove_joined(separate: Counter[str], joined: Counter[str], words: Sequence[str]) -> None:
    """Remove successive words that the other name writes as one (push up and pushup)."""
    for first, second in pairwise(words):
        if joined[first + second] > 0 and separate[first] > 0 and separate[second] > 0:
            joined[first + second] -= 1
            separate.subtract((first, second))


def _is_typo(word: str, other: str, vocabulary: _search_index.Vocabulary) -> bool:
    """Return whether a word that is in no exercise is another one with one typing error."""
    if _name_words.is_part_of_body(word) or word in vocabulary:
        return False
    spellings = (word, f"{word}s")  # as typed, perhaps: its ending was taken for a plural
    return any(
        len(each) >= _search_index.MIN_TYPO_LENGTH and OSA.distance(each, other, score_cutoff=1) <= 1
        for each in spellings
    )
